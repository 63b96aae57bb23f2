public import Crypto
public import EventLoop
public import RouseClient

/// Connections of the client library over this machine's sockets: libuv and OpenSSL, on a thread
/// of their own or on a loop that many phones share.
public final class SocketTransport: RouseTransport {
    /// Runs a body on the loop; false: the loop has ended.
    typealias Perform = @Sendable (@escaping @Sendable (Loop) -> Void) -> Bool

    /// `nil`: the loop is another's.
    private let thread: LoopThread?
    private let perform: Perform
    private let endpoint: SyncEndpoint
    private let sockets: Sockets

    /// - Parameter trustedCertificates: the authorities in PEM; `nil`: the system's.
    /// - Throws: `TLSError` of the certificates; `StreamError`: there are no descriptors left.
    public init(_ endpoint: SyncEndpoint, trustedCertificates: [UInt8]?) throws {
        self.endpoint = endpoint
        let (thread, sockets) = try LoopThread.startReturning(name: "client") { _ in
            Sockets(
                try TLSContext.client(
                    trustedCertificates: trustedCertificates, protocols: ["rouse/1"],
                    minimumVersion: .tls13))
        }
        self.thread = thread
        self.sockets = sockets
        perform = { thread.perform($0) }
    }

    /// On a loop that goes on when this ends. Made on the loop.
    public init(_ endpoint: SyncEndpoint, on door: LoopDoor, tls: TLSContext) {
        self.endpoint = endpoint
        thread = nil
        sockets = Sockets(tls)
        perform = { door.perform($0) }
    }

    deinit { drop() }

    /// As when the process is killed: its sockets go without a good-bye, and no other comes. Who
    /// waits for what happens on one is told that it is closed.
    public func drop() {
        onSockets { sockets in
            sockets.isDropped = true
            let open = sockets.open.values
            sockets.open = [:]
            for connection in open { connection.socket.vanish() }
            for connection in open { connection.owner.drop() }
        }
        thread?.stop()
    }

    /// The phone's network comes or goes: without it every connection ends, and each one that is
    /// tried.
    public func network(isUp: Bool) {
        onSockets { sockets in
            sockets.hasNetwork = isUp
            guard !isUp else { return }
            let open = sockets.open.values
            sockets.open = [:]
            for connection in open { connection.socket.vanish() }
            for connection in open { connection.owner.finish(last: .closed(why: "no network")) }
        }
    }

    /// While it is held nothing is read of what the server sends, and nothing of it is handed on.
    public func hold(_ isHeld: Bool) {
        onSockets { sockets in
            sockets.isHeld = isHeld
            for connection in sockets.open.values { connection.owner.hold(isHeld) }
        }
    }

    public func connect() -> any RouseConnection {
        SocketConnection(endpoint, perform, sockets)
    }

    private func onSockets(_ body: @escaping @Sendable (Sockets) -> Void) {
        _ = perform { [sockets] _ in body(sockets) }
    }
}

/// What lives on the loop.
private final class Sockets: @unchecked Sendable {
    // @unchecked: used in bodies that the loop performs, and nowhere else.
    let tls: TLSContext
    let traffic = Traffic()
    var open: [ObjectIdentifier: (socket: ClientConnection, owner: SocketConnection)] = [:]
    /// To go on with on the next connection, once.
    var session: TLSSession?
    var isDropped = false
    var hasNetwork = true
    var isHeld = false

    init(_ tls: TLSContext) { self.tls = tls }

    func takeSession() -> TLSSession? {
        defer { session = nil }
        return session
    }
}

/// One connection, between its loop and whoever asks for its events.
private final class SocketConnection: RouseConnection, @unchecked Sendable {
    // @unchecked: what changes is guarded by `lock`.
    private let lock = Lock()
    private let perform: SocketTransport.Perform
    private let sockets: Sockets
    private var waiting: [TransportEvent] = []
    private var waitingBytes = 0
    /// Enough waits: the socket is not read.
    private var isFull = false
    /// Nothing is handed on.
    private var isHeld = false
    private var hasEnded = false
    private var asking: Asking?

    /// Bytes that may wait; then nothing is read until they are taken.
    private static let waitingMax = 256 * 1024

    private typealias Asking = CheckedContinuation<TransportEvent?, Never>

    static let lost = TransportEvent.closed(why: "the transport has ended")

    init(
        _ endpoint: SyncEndpoint, _ perform: @escaping SocketTransport.Perform,
        _ sockets: Sockets
    ) {
        self.perform = perform
        self.sockets = sockets
        let isDialling = perform { [self] loop in dial(endpoint, loop) }
        if !isDialling { finish(last: Self.lost) }
    }

    private func dial(_ endpoint: SyncEndpoint, _ loop: Loop) {
        guard !sockets.isDropped else { return finish(last: Self.lost) }
        guard sockets.hasNetwork else { return finish(last: .closed(why: "no network")) }
        let socket = ClientConnection(
            loop: loop, endpoint: endpoint, tls: sockets.tls, resuming: sockets.takeSession(),
            traffic: sockets.traffic
        ) { [self] _, event in heard(event) }
        sockets.open[ObjectIdentifier(self)] = (socket, self)
        if sockets.isHeld { hold(true) }
    }

    var events: AsyncStream<TransportEvent> { AsyncStream { await self.next() } }

    func send(_ bytes: [UInt8]) { onSocket { $0.send(bytes) } }

    func close() {
        onSocket(forgets: true) { $0.leave() }
        finish(last: nil)
    }

    /// On the loop; what is asked for before the socket is there finds it: bodies are in order.
    private func onSocket(
        forgets: Bool = false, _ body: @escaping @Sendable (ClientConnection) -> Void
    ) {
        let key = ObjectIdentifier(self)
        // The socket is in the table for as long as this object is held by it.
        let isHeard = perform { [self] _ in
            guard let socket = sockets.open[key]?.socket else { return }
            if forgets { sockets.open[key] = nil }
            body(socket)
        }
        if !isHeard { finish(last: Self.lost) }
    }

    // MARK: From the loop

    private func heard(_ event: ClientConnection.Event) {
        // Its owner was told that it is closed when the loop took no more orders for it.
        if lock.withLock({ hasEnded }) {
            sockets.open.removeValue(forKey: ObjectIdentifier(self))?.socket.leave()
            return
        }
        switch event {
        case .connected: tell(.connected)
        case .received(let bytes):
            let socket = sockets.open[ObjectIdentifier(self)]?.socket
            if let offered = socket?.takeSession() { sockets.session = offered }
            if tell(.received(bytes), bytes: bytes.count) { socket?.isHeld = true }
        case .closed(let why):
            sockets.open[ObjectIdentifier(self)] = nil
            finish(last: .closed(why: why))
        }
    }

    func hold(_ isHeld: Bool) {
        let (told, isOpen) = lock.withLock { () -> ((Asking, TransportEvent?)?, Bool) in
            self.isHeld = isHeld
            guard !isHeld, let asking, !waiting.isEmpty else { return (nil, !isHeld && !isFull) }
            self.asking = nil
            let event = take()
            return ((asking, event), !isFull)
        }
        sockets.open[ObjectIdentifier(self)]?.socket.isHeld = !isOpen
        if let told { told.0.resume(returning: told.1) }
    }

    /// - Returns: whether enough waits now.
    @discardableResult
    private func tell(_ event: TransportEvent, bytes: Int = 0) -> Bool {
        let (asked, isFull) = lock.withLock { () -> (Asking?, Bool) in
            if hasEnded { return (nil, false) }
            if !isHeld, let asking {
                self.asking = nil
                return (asking, false)
            }
            waiting.append(event)
            waitingBytes += bytes
            self.isFull = waitingBytes > Self.waitingMax
            return (nil, self.isFull)
        }
        asked?.resume(returning: event)
        return isFull
    }

    /// What was read and not handed on is not heard of any more.
    func drop() {
        lock.withLock { (waiting, waitingBytes) = ([], 0) }
        finish(last: Self.lost)
    }

    /// Nothing comes after `last`.
    func finish(last: TransportEvent?) {
        let told = lock.withLock { () -> (Asking, TransportEvent?)? in
            if hasEnded { return nil }
            hasEnded = true
            if let last { waiting.append(last) } else { waiting = [] }
            guard let asking else { return nil }
            self.asking = nil
            return (asking, waiting.isEmpty ? nil : take())
        }
        if let told { told.0.resume(returning: told.1) }
    }

    // MARK: To whoever asks

    /// The oldest of those that wait. Under the lock.
    private func take() -> TransportEvent {
        let event = waiting.removeFirst()
        if case .received(let bytes) = event { waitingBytes -= bytes.count }
        if waitingBytes == 0 { isFull = false }
        return event
    }

    private func next() async -> TransportEvent? {
        await withCheckedContinuation { continuation in
            let (event, isRead) = lock.withLock { () -> (TransportEvent??, Bool) in
                precondition(asking == nil, "the events of a connection are iterated once")
                if waiting.isEmpty, hasEnded { return (.some(nil), false) }
                // What was read before its end is handed on, also while it is held.
                if waiting.isEmpty || isHeld && !hasEnded {
                    asking = continuation
                    return (nil, false)
                }
                let wasFull = isFull
                let event = take()
                return (.some(event), wasFull && !isFull)
            }
            if isRead { onSocket { [self] in if !sockets.isHeld { $0.isHeld = false } } }
            if let event { continuation.resume(returning: event) }
        }
    }
}

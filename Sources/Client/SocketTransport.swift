public import Crypto
public import EventLoop
public import RouseClient

/// Connections of the client library over this machine's sockets: libuv and OpenSSL, on a thread
/// of their own.
public final class SocketTransport: RouseTransport {
    private let thread: LoopThread
    private let endpoint: SyncEndpoint
    private let sockets: Sockets

    /// - Parameter trustedCertificates: the authorities in PEM; `nil`: the system's.
    /// - Throws: `TLSError` of the certificates; `StreamError`: there are no descriptors left.
    public init(_ endpoint: SyncEndpoint, trustedCertificates: [UInt8]?) throws {
        self.endpoint = endpoint
        (thread, sockets) = try LoopThread.startReturning(name: "client") { _ in
            Sockets(
                try TLSContext.client(
                    trustedCertificates: trustedCertificates, protocols: ["rouse/1"],
                    minimumVersion: .tls13))
        }
    }

    deinit { thread.stop() }

    /// As when the process is killed: its sockets go without a good-bye, and no other comes.
    public func drop() {
        thread.perform { [sockets] _ in
            for connection in sockets.open.values { connection.vanish() }
            sockets.open = [:]
        }
        thread.stop()
    }

    public func connect() -> any RouseConnection {
        SocketConnection(endpoint, on: thread, sockets)
    }
}

/// What lives on the loop.
private final class Sockets: @unchecked Sendable {
    // @unchecked: used in bodies that the loop performs, and nowhere else.
    let tls: TLSContext
    let traffic = Traffic()
    var open: [ObjectIdentifier: ClientConnection] = [:]
    /// To go on with on the next connection, once.
    var session: TLSSession?

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
    private let thread: LoopThread
    private let sockets: Sockets
    private var waiting: [TransportEvent] = []
    private var waitingBytes = 0
    private var isHeld = false
    private var hasEnded = false
    private var asking: Asking?

    /// Bytes that may wait; then nothing is read until they are taken.
    private static let waitingMax = 256 * 1024

    private typealias Asking = CheckedContinuation<TransportEvent?, Never>

    init(_ endpoint: SyncEndpoint, on thread: LoopThread, _ sockets: Sockets) {
        self.thread = thread
        self.sockets = sockets
        let isDialling = thread.perform { [self] loop in
            sockets.open[ObjectIdentifier(self)] = ClientConnection(
                loop: loop, endpoint: endpoint, tls: sockets.tls, resuming: sockets.takeSession(),
                traffic: sockets.traffic
            ) { [self] _, event in heard(event) }
        }
        if !isDialling { tell(.closed(why: "the loop has ended")) }
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
        thread.perform { [self] _ in
            guard let connection = sockets.open[key] else { return }
            if forgets { sockets.open[key] = nil }
            body(connection)
        }
    }

    // MARK: From the loop

    private func heard(_ event: ClientConnection.Event) {
        switch event {
        case .connected: tell(.connected)
        case .received(let bytes):
            let connection = sockets.open[ObjectIdentifier(self)]
            if let offered = connection?.takeSession() { sockets.session = offered }
            if tell(.received(bytes), bytes: bytes.count) { connection?.isHeld = true }
        case .closed(let why):
            sockets.open[ObjectIdentifier(self)] = nil
            finish(last: .closed(why: why))
        }
    }

    /// - Returns: whether enough waits now.
    @discardableResult
    private func tell(_ event: TransportEvent, bytes: Int = 0) -> Bool {
        let (asked, isFull) = lock.withLock { () -> (Asking?, Bool) in
            if hasEnded { return (nil, false) }
            if let asking {
                self.asking = nil
                return (asking, false)
            }
            waiting.append(event)
            waitingBytes += bytes
            isHeld = waitingBytes > Self.waitingMax
            return (nil, isHeld)
        }
        asked?.resume(returning: event)
        return isFull
    }

    /// Nothing comes after `last`.
    private func finish(last: TransportEvent?) {
        let asked = lock.withLock { () -> Asking? in
            if hasEnded { return nil }
            hasEnded = true
            if let last, asking == nil { waiting.append(last) }
            if last == nil { waiting = [] }
            defer { asking = nil }
            return asking
        }
        asked?.resume(returning: last)
    }

    // MARK: To whoever asks

    private func next() async -> TransportEvent? {
        await withCheckedContinuation { continuation in
            let (event, isRead) = lock.withLock { () -> (TransportEvent??, Bool) in
                precondition(asking == nil, "the events of a connection are iterated once")
                if waiting.isEmpty {
                    if hasEnded { return (.some(nil), false) }
                    asking = continuation
                    return (nil, false)
                }
                let event = waiting.removeFirst()
                if case .received(let bytes) = event { waitingBytes -= bytes.count }
                let isRead = isHeld && waitingBytes == 0
                if isRead { isHeld = false }
                return (.some(event), isRead)
            }
            if isRead { onSocket { $0.isHeld = false } }
            if let event { continuation.resume(returning: event) }
        }
    }
}

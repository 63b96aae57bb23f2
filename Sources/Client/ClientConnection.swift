import Crypto
import EventLoop

/// One connection of a client, from dialling to its end: socket and TLS. Loop-confined.
/// What it hears goes to its owner until `leave`, nothing after it.
final class ClientConnection {
    enum Event {
        case connected
        /// What was read together.
        case received([UInt8])
        /// The connection is gone, or never came about.
        case closed(String)
    }

    private let loop: Loop
    private let traffic: Traffic
    private let handler: (ClientConnection, Event) -> Void
    private var dialing: Dialing?
    private var stream: Stream?
    private var engine: TLSEngine?
    private var isGone = false
    private var hasConnected = false
    private var lingerTimer: LoopTimer?

    /// While it is held nothing is read.
    var isHeld = false {
        didSet {
            guard isHeld != oldValue, !isGone, engine != nil else { return }
            if isHeld { stream?.stopReading() } else { stream?.startReading() }
        }
    }

    /// How long bytes the server still sends are read after the good-bye, in milliseconds: closing
    /// at once would reset the connection, and the server could lose the good-bye.
    private static let linger: UInt64 = 2_000

    init(
        loop: Loop, endpoint: SyncEndpoint, tls: TLSContext, resuming session: TLSSession?,
        traffic: Traffic, handler: @escaping (ClientConnection, Event) -> Void
    ) {
        self.loop = loop
        self.traffic = traffic
        self.handler = handler
        dialing = Stream.connect(
            loop: loop, host: endpoint.host, port: endpoint.port,
            sourceAddress: endpoint.sourceAddress
        ) { [weak self] result in
            guard let self else {
                if case .success(let stream) = result { stream.close() }
                return
            }
            self.dialing = nil
            switch result {
            case .success(let stream): self.dialled(stream, endpoint, tls, session)
            case .failure(let error): self.end("\(error)")
            }
        }
    }

    private func dialled(
        _ stream: Stream, _ endpoint: SyncEndpoint, _ tls: TLSContext, _ session: TLSSession?
    ) {
        guard !isGone else { return stream.close() }
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.end("ended by the server") }
        stream.onFailure = { [unowned self] error in self.end("\(error)") }
        // The stream keeps this connection alive until it is closed.
        stream.onClosed = { self.streamClosed() }
        stream.setNoDelay(true)
        do {
            let engine = try tls.makeEngine(serverName: endpoint.serverName, resuming: session)
            self.engine = engine
            try engine.startHandshake()
            flush()
            if !isHeld { stream.startReading() }
        } catch {
            end("\(error)")
        }
    }

    /// What the server offered to go on with on the next connection, once.
    func takeSession() -> TLSSession? { engine?.takeSession() }

    /// Whether it goes on with the TLS session of an earlier one.
    var isResumed: Bool { engine?.isResumed ?? false }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let engine, !isGone else { return }
        traffic.received += UInt64(bytes.count)
        var plaintext: [UInt8] = []
        do {
            try engine.received(bytes) { plaintext += $0 }
        } catch {
            flush()
            return end("\(error)")
        }
        flush()
        if engine.isHandshakeComplete && !hasConnected {
            hasConnected = true
            handler(self, .connected)
        }
        if !isGone, !plaintext.isEmpty { handler(self, .received(plaintext)) }
        if engine.peerClosed { end("ended by the server") }
    }

    /// Bytes that may wait to be sent: far more than a client has to say. A server that asks and
    /// takes no answer must not fill this device's memory.
    private static let unsentMax = 16 << 20

    /// Sends bytes; what cannot be sent is noticed as the end of the connection.
    func send(_ bytes: [UInt8]) {
        guard !isGone, let engine else { return }
        guard stream.map({ $0.unsentBytes <= Self.unsentMax }) ?? true else {
            return end("the server takes nothing")
        }
        do {
            try bytes.withUnsafeBytes { try engine.send($0) }
            flush()
        } catch {
            end("\(error)")
        }
    }

    /// Nothing is heard of it any more; what was sent still leaves.
    func leave() {
        guard !isGone else { return }
        isGone = true
        dialing?.cancel()
        dialing = nil
        guard let stream, let engine else { return streamClosed() }
        engine.close()
        engine.takeOutput { write($0, to: stream) }
        stream.shutdown()
        lingerTimer = loop.timer { stream.close() }
        lingerTimer?.start(afterMilliseconds: Self.linger)
        stream.onEnd = { stream.close() }
        stream.onFailure = { _ in }
        if isHeld { stream.startReading() }
    }

    /// As a device whose app is killed: no good-bye, the socket just goes.
    func vanish() {
        isGone = true
        dialing?.cancel()
        dialing = nil
        stream?.close()
    }

    private func flush() {
        guard let engine, let stream else { return }
        engine.takeOutput { write($0, to: stream) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer, to stream: Stream) {
        traffic.sent += UInt64(bytes.count)
        _ = stream.write(bytes)
    }

    private func end(_ why: String) {
        guard !isGone else { return }
        isGone = true
        stream?.close()
        handler(self, .closed(why))
    }

    private func streamClosed() {
        lingerTimer?.close()
        lingerTimer = nil
        stream?.onEnd = nil
        stream = nil
        engine = nil
    }
}

import APNsSimulator
import Crypto
import EventLoop
import Model
import Wire

/// A device that is there in thousands: it logs in, syncs once, and answers what the server asks.
/// It keeps no store and never connects again. Loop-confined.
final class LoadDevice {
    enum Event {
        /// Logged in and in sync.
        case ready
        /// The connection has ended, which nobody here wants.
        case ended(String)
    }

    private let app: String
    private let user: String
    private let issuer: IdentityIssuer
    private let handler: (Event) -> Void
    private var dialing: Dialing?
    private var stream: EventLoop.Stream?
    private var engine: TLSEngine?
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    private var isConnected = false
    private var isReady = false
    private var isGone = false

    init(
        loop: Loop, port: UInt16, source: String, tls: TLSContext, app: String, user: String,
        issuer: IdentityIssuer, handler: @escaping (Event) -> Void
    ) {
        self.app = app
        self.user = user
        self.issuer = issuer
        self.handler = handler
        dialing = EventLoop.Stream.connect(
            loop: loop, host: "127.0.0.1", port: port, sourceAddress: source
        ) { [unowned self] result in
            self.dialing = nil
            switch result {
            case .success(let stream): self.dialled(stream, tls)
            case .failure(let error): self.end("\(error)")
            }
        }
    }

    private func dialled(_ stream: EventLoop.Stream, _ tls: TLSContext) {
        self.stream = stream
        stream.onBytes = { [unowned self] bytes in self.received(bytes) }
        stream.onEnd = { [unowned self] in self.end("ended by the server") }
        stream.onFailure = { [unowned self] error in self.end("\(error)") }
        // The stream keeps this device until it is closed.
        stream.onClosed = { self.engine = nil }
        stream.setNoDelay(true)
        do {
            let engine = try tls.makeEngine(serverName: "localhost")
            self.engine = engine
            try engine.startHandshake()
            flush()
            stream.startReading()
        } catch {
            end("\(error)")
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) {
        guard let engine, !isGone else { return }
        do {
            try engine.received(bytes) { decoder.append($0) }
            if engine.isHandshakeComplete, !isConnected {
                isConnected = true
                sayHello()
            }
            while !isGone, let frame = try decoder.next() { take(frame) }
        } catch {
            return end("\(error)")
        }
        flush()
        if engine.peerClosed { end("ended by the server") }
    }

    private func sayHello() {
        guard let device = DeviceID(Random.bytes(16)) else { return end("no device id") }
        send(
            .hello(
                Hello(
                    versionMin: 1, versionMax: 1, app: app, device: device, role: .app,
                    clientName: "rouse load", clientVersion: "1", features: ["live"],
                    appState: AppState(phase: .foreground))))
    }

    private func take(_ frame: Frame) {
        switch frame.body {
        case .challenge(let challenge):
            let now = SystemClock.wallMilliseconds() / 1_000
            guard let token = issuer.token(for: user, nonce: challenge.nonce, now: now) else {
                return end("no identity token could be made")
            }
            send(.authenticate(Authenticate(identityToken: token)))
        case .welcome:
            decoder.limits = .afterWelcome
            send(.sync(SyncFrame(mode: .advance, reason: .connect)), request: 1)
        case .delta(let delta):
            send(.ack(Ack(applied: delta.to?.seq ?? 0)))
            if !isReady {
                isReady = true
                handler(.ready)
            }
        case .ping: send(.pong(Pong()), request: frame.request)
        case .error(let error): end("ERROR \(error.code)")
        case .close(let close): end("CLOSE \(close.code)")
        default: break
        }
    }

    private func send(_ body: FrameBody, request: UInt16 = 0) {
        guard let engine, !isGone else { return }
        do {
            try Frame(body, request: request).encoded.withUnsafeBytes { try engine.send($0) }
            flush()
        } catch {
            end("\(error)")
        }
    }

    private func flush() {
        guard let engine, let stream else { return }
        engine.takeOutput { _ = stream.write($0) }
    }

    /// Says good-bye and goes.
    func leave() {
        send(.close(Close(code: Code.goingAway.rawValue)))
        vanish()
    }

    /// The socket just goes.
    func vanish() {
        isGone = true
        dialing?.cancel()
        dialing = nil
        stream?.close()
    }

    private func end(_ why: String) {
        guard !isGone else { return }
        vanish()
        handler(.ended(why))
    }
}

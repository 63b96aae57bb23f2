import APNsSimulator
import Crypto
import EventLoop
import Model
import Wire

/// A device that is there in thousands: it logs in, syncs once, takes what is new and answers what
/// the server asks. It keeps no store and never connects again. Loop-confined.
final class LoadDevice {
    enum Event {
        /// Logged in and in sync.
        case ready
        /// What a page after that brought.
        case entries([Entry])
        /// The connection has ended, which nobody here wants.
        case ended(String)
    }

    private let app: String
    private let user: String
    private let issuer: IdentityIssuer
    private let socket: LoadSocket
    private let handler: (Event) -> Void
    private var decoder = FrameDecoder(limits: .beforeWelcome)
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
        socket = LoadSocket(loop: loop, port: port, source: source, tls: tls)
        socket.onConnected = { [weak self] in self?.sayHello() }
        socket.onBytes = { [weak self] bytes in self?.received(bytes) }
        socket.onEnded = { [weak self] why in self?.end(why) }
    }

    private func received(_ bytes: [UInt8]) {
        decoder.append(bytes)
        do {
            while !isGone, let frame = try decoder.next() { take(frame) }
        } catch {
            end("\(error)")
        }
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
            if isReady {
                handler(.entries(delta.entries))
            } else {
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
        guard !isGone else { return }
        socket.send(Frame(body, request: request).encoded)
    }

    /// Says good-bye and goes.
    func leave() {
        send(.close(Close(code: Code.goingAway.rawValue)))
        vanish()
    }

    /// The socket just goes.
    func vanish() {
        isGone = true
        socket.vanish()
    }

    private func end(_ why: String) {
        guard !isGone else { return }
        vanish()
        handler(.ended(why))
    }
}

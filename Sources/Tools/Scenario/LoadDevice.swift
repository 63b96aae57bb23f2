import APNsSimulator
import Crypto
import EventLoop
import Model
import Wire

/// A device that is there in thousands: it logs in, syncs once, takes what is new and answers what
/// the server asks. It keeps no store and does not connect again by itself. Loop-confined.
final class LoadDevice {
    enum Event {
        /// Logged in and in sync.
        case ready
        /// What a page after that brought.
        case entries([Entry])
        /// The connection has ended, which nobody here wants.
        case ended(String)
    }

    /// What a device keeps between connections.
    struct Standing {
        let device: DeviceID
        var token: [UInt8] = []
        var cursor: Cursor?
    }

    /// Entries that came before it was in sync.
    private(set) var syncedEntries = 0
    /// For the next connection of the same device.
    private(set) var standing: Standing?
    private let app: String
    private let user: String
    private let issuer: IdentityIssuer
    private let socket: LoadSocket
    private let handler: (Event) -> Void
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    /// The HELLO held the first SYNC.
    private var syncsInline = false
    private var isReady = false
    private var isGone = false

    /// - Parameter standing: of an earlier connection; `nil`: a new device.
    init(
        loop: Loop, port: UInt16, source: String, tls: TLSContext, app: String, user: String,
        issuer: IdentityIssuer, standing: Standing? = nil,
        handler: @escaping (Event) -> Void
    ) {
        self.standing = standing
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
        let new = DeviceID(Random.bytes(16)).map { Standing(device: $0) }
        guard let own = standing ?? new else { return end("no device id") }
        standing = own
        var hello = Hello(
            versionMin: 1, versionMax: 1, app: app, device: own.device, role: .app,
            clientName: "rouse load", clientVersion: "1", features: ["live"],
            sessionToken: own.token, appState: AppState(phase: .foreground))
        if let cursor = own.cursor {
            hello.sync = SyncFrame(
                cursor: cursor, applied: cursor.seq, mode: .advance, reason: .connect)
        }
        syncsInline = hello.sync != nil
        send(.hello(hello), request: syncsInline ? 1 : 0)
    }

    private func take(_ frame: Frame) {
        switch frame.body {
        case .challenge(let challenge):
            // What a tool measures of a device that returns would be another's figure.
            guard standing?.token.isEmpty ?? true else {
                return end("the session token was not taken")
            }
            let now = SystemClock.wallMilliseconds() / 1_000
            guard let token = issuer.token(for: user, nonce: challenge.nonce, now: now) else {
                return end("no identity token could be made")
            }
            send(.authenticate(Authenticate(identityToken: token)))
        case .welcome(let welcome):
            decoder.limits = .afterWelcome
            standing?.token = welcome.sessionToken
            guard !syncsInline else { return }
            send(.sync(SyncFrame(mode: .advance, reason: .connect)), request: 1)
        case .delta(let delta):
            if let to = delta.to { standing?.cursor = to }
            send(.ack(Ack(applied: delta.to?.seq ?? 0)))
            if isReady { return handler(.entries(delta.entries)) }
            syncedEntries += delta.entries.count
            // What is left of it is pushed.
            guard !delta.more else { return }
            isReady = true
            handler(.ready)
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

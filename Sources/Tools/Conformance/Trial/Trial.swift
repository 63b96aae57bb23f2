import Crypto
import Model
import Wire

/// Where the server under test is, and what every case needs to reach it.
struct ServerUnderTest: Sendable {
    var host: String
    var port: UInt16
    var serverName: String
    /// PEM; `nil`: the system's authorities.
    var authorityPEM: String?
    var credentials: ConformanceCredentials
    var issuer: TokenIssuer
    var vectors: FramingVectors?
    /// Tells the server to drain.
    var drain: (@Sendable () throws -> Void)?
}

/// One run of one case: its connections, its users, its clock. Of one thread.
final class Trial {
    let server: ServerUnderTest
    let delivery: Delivery
    let clock: CaseClock
    let transcript = Transcript()
    private let tls: TLSContext
    private let mark: String
    private var peers = 0
    /// What all cases of the run have seen of the invariants.
    let witness: Witness
    private let watch: TrialWatch

    init(
        server: ServerUnderTest, delivery: Delivery, seconds: Int, patience: Duration,
        witness: Witness, name: String
    ) throws {
        self.server = server
        self.witness = witness
        watch = TrialWatch(witness, name: name)
        self.delivery = delivery
        clock = CaseClock(seconds: seconds, patience: patience)
        mark = Hex.encode(Random.bytes(6))
        tls = try TLSContext.client(
            trustedCertificates: server.authorityPEM.map { Array($0.utf8) },
            protocols: ["rouse/1"], minimumVersion: .tls13)
    }

    var app: String { server.credentials.app }
    var issuer: TokenIssuer { server.issuer }

    /// Whether the credentials say that the server does not do what the clause says.
    func lacks(_ clause: String) -> Bool { server.credentials.without?[clause] != nil }

    /// A user nobody else has: `anna` becomes `anna-` and the trial's mark.
    func user(_ name: String) -> String { "\(name)-\(mark)" }

    func newID<Noun>() -> Identifier<Noun> {
        // 16 bytes always make an identifier.
        Identifier(Random.bytes(16)) ?? Identifier(high: 1, low: 1)
    }

    // MARK: Connections

    /// TCP and TLS are done, nothing is sent.
    func connect(_ delivery: Delivery? = nil) throws -> Peer {
        peers += 1
        let name = "\(peers)"
        let socket = try settingUp("connect") {
            try SecureSocket(
                host: server.host, port: server.port, serverName: server.serverName, tls: tls,
                deadline: clock.stepDeadline)
        }
        transcript.add(name, "connected")
        return Peer(
            socket: socket, delivery: delivery ?? self.delivery, clock: clock,
            transcript: transcript, name: name, watch: watch)
    }

    /// Tries TLS with other application protocols.
    ///
    /// - Returns: whether the server took them.
    func handshake(protocols: [String]) throws -> Bool {
        let context = try TLSContext.client(
            trustedCertificates: server.authorityPEM.map { Array($0.utf8) },
            protocols: protocols, minimumVersion: .tls13)
        do {
            let socket = try SecureSocket(
                host: server.host, port: server.port, serverName: server.serverName, tls: context,
                deadline: clock.stepDeadline)
            // A server's refusal may reach a TLS 1.3 client after its own part is done.
            defer { socket.cut() }
            do {
                return try socket.read(deadline: .now + .milliseconds(300)) != nil
            } catch TransportError.timedOut {
                return true
            }
        } catch {
            return false
        }
    }

    /// A plain HELLO of this app.
    func hello(
        _ device: DeviceID, role: Role = .app, features: [String] = [], token: [UInt8] = []
    ) -> Hello {
        Hello(
            versionMin: 1, versionMax: 1, app: app, device: device, role: role,
            clientName: "conform", clientVersion: "1", features: features, sessionToken: token,
            appState: AppState(phase: .foreground))
    }

    /// A connection that has got its CHALLENGE.
    func challenged(
        _ device: DeviceID? = nil, _ delivery: Delivery? = nil
    ) throws -> (Peer, Challenge) {
        try settingUp("to CHALLENGE") {
            let peer = try connect(delivery)
            try peer.send(.hello(hello(device ?? newID())), request: 1)
            return (peer, try peer.expect(.challenge))
        }
    }

    /// A device that has logged in and is in sync.
    ///
    /// - Parameters:
    ///   - features: `["live"]` for DELTAs unasked.
    ///   - delivery: how its bytes go; logins that are not the case's matter go whole.
    func device(
        of user: String, id: DeviceID? = nil, role: Role = .app, features: [String] = [],
        isSynced: Bool = true, delivery: Delivery? = nil
    ) throws -> Device {
        try settingUp("\(user) logs in") {
            let device = Device(trial: self, user: user, id: id ?? newID(), role: role)
            device.features = features
            device.delivery = delivery ?? .whole
            try device.logIn()
            if isSynced { try device.syncToHead() }
            return device
        }
    }

    /// Two users with a device each, and a conversation both have.
    func pair(
        features: [String] = [], delivery: Delivery? = nil
    ) throws -> (Device, Device, ConversationID) {
        let anna = try device(of: user("anna"), delivery: delivery)
        let ben = try device(of: user("ben"), features: features, delivery: delivery)
        let conversation = try settingUp("a conversation") {
            let conversation = try anna.createConversation(with: [ben.user])
            try ben.pump(until: "the conversation") { $0.knows(conversation) }
            return conversation
        }
        return (anna, ben, conversation)
    }
}

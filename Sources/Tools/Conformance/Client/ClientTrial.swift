import Crypto
import EventLoop
import FoundationEssentials
import Model
import Wire

/// How a client under test is started, and what its connections are made of.
struct ClientUnderTest: Sendable {
    /// The command line of the driver; `{host}`, `{port}` and the like are replaced.
    var words: [String]
    var certificatePEM: String
    var privateKeyPEM: String
    /// The authority's certificate, a file for the driver.
    var authorityFile: URL
    /// The issuer's private key, a file for the driver.
    var issuerFile: URL
    var issuer: PublicKey
}

/// One run of one case against a client: a driver of its own, a server that does what the case
/// says, and a feed for it. Of one thread.
final class ClientTrial {
    static let app = "conform"
    static let keyID = "conform"

    let clock: CaseClock
    let transcript = Transcript()
    let user = "anna"
    var feed = ScriptedFeed()
    /// Session tokens that let the client in.
    var tokens: Set<[UInt8]> = []
    /// The highest mutation number taken.
    var floor: UInt64 = 0
    /// What was answered to mutations, by number.
    var results: [UInt64: MutationResult] = [:]
    /// Numbers that another life of the device has taken.
    var foreign: Set<UInt64> = []
    /// Mutations in the order they came first.
    var taken: [Mutation] = []
    private let place: ClientUnderTest
    private let tls: TLSContext
    private let listener: ListeningSocket
    private let folder: URL
    private var driver: ClientDriver?
    private var links = 0

    init(_ place: ClientUnderTest, seconds: Int, patience: Duration) throws {
        self.place = place
        clock = CaseClock(seconds: seconds, patience: patience)
        tls = try TLSContext.server(
            certificateChain: Array(place.certificatePEM.utf8),
            privateKey: Array(place.privateKeyPEM.utf8), protocols: ["rouse/1"])
        listener = try ListeningSocket()
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-client-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try startDriver()
    }

    deinit {
        driver?.kill()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The last words of the driver's standard error.
    var log: String {
        let text = try? String(
            contentsOf: folder.appendingPathComponent("driver.log"), encoding: .utf8)
        return String((text ?? "").suffix(600))
    }

    // MARK: The driver

    private func startDriver() throws {
        let store = folder.appendingPathComponent("store")
        try FileManager.default.createDirectory(at: store, withIntermediateDirectories: true)
        driver = try ClientDriver(
            place.words,
            replacing: [
                "host": "127.0.0.1", "port": "\(listener.port)", "name": "localhost",
                "ca": place.authorityFile.path, "key": place.issuerFile.path, "kid": Self.keyID,
                "app": Self.app, "user": user, "dir": store.path,
            ],
            log: folder.appendingPathComponent("driver.log"))
    }

    /// An event for the client; the answer.
    @discardableResult
    func tell(_ line: String) throws -> ClientDriver.Answer {
        transcript.add("driver", "<- \(line)")
        guard let driver else { throw CaseEnd.inconclusive("the driver does not run") }
        return try driver.tell(line, deadline: clock.stepDeadline)
    }

    /// What the client holds.
    func state() throws -> ClientDriver.Answer { try tell("state") }

    /// The client's process is killed and started again; what it has stored stays.
    func restart() throws {
        transcript.add("driver", "killed, started again")
        driver?.kill()
        try startDriver()
    }

    func kill() {
        transcript.add("driver", "killed")
        driver?.kill()
    }

    /// Texts of a conversation as the client holds them, those that were not deleted.
    func texts(in conversation: ConversationID) throws -> [String] {
        let held = try state().conversations ?? []
        return held.first { $0.id == conversation.description }?.messages
            .filter { $0.deleted != true }.sorted { $0.position < $1.position }.map(\.text) ?? []
    }

    /// Asks for the state until the condition holds.
    func waitState(
        _ what: String, within time: Duration? = nil,
        _ condition: (ClientDriver.Answer) -> Bool
    ) throws {
        let deadline = try clock.deadline(within: time)
        while true {
            if condition(try state()) { return }
            guard ContinuousClock.now < deadline else {
                throw CaseEnd.failed("the client's state: \(what) did not come about")
            }
            WorkThread.sleep(milliseconds: 50)
        }
    }

    // MARK: Connections

    /// The client's next connection, with TLS.
    ///
    /// - Parameter delivery: how the server's bytes go.
    func accept(_ delivery: Delivery = .whole, within time: Duration? = nil) throws -> Link {
        let socket = try acceptSocket(within: time)
        links += 1
        let secure: SecureSocket
        do {
            secure = try SecureSocket(accepted: socket, tls: tls, deadline: clock.stepDeadline)
        } catch {
            throw CaseEnd.failed("the client's TLS handshake did not come through: \(error)")
        }
        transcript.add("\(links)", "connected")
        let peer = Peer(
            socket: secure, delivery: delivery, clock: clock, transcript: transcript,
            name: "\(links)")
        return Link(peer, trial: self)
    }

    private func acceptSocket(within time: Duration?) throws -> BlockingSocket {
        do {
            return try listener.accept(deadline: try clock.deadline(within: time))
        } catch let error as TransportError {
            guard error == .timedOut else { throw CaseEnd.inconclusive("accept: \(error)") }
            try clock.check()
            throw CaseEnd.failed("the client did not connect")
        }
    }

    /// The client's next attempt to connect fails.
    func refuse(within time: Duration? = nil) throws {
        let socket = try acceptSocket(within: time)
        socket.close()
        transcript.add("server", "refused a connection")
    }

    /// No attempt to connect comes within the time.
    func expectNoConnection(for time: Duration, _ why: String) throws {
        do {
            _ = try listener.accept(deadline: try clock.deadline(within: time))
        } catch TransportError.timedOut {
            return try clock.check()
        }
        throw CaseEnd.failed("the client connected \(why)")
    }

    /// A client that has come to the foreground, logged in, and is in sync.
    func open(
        features: [String] = ["live"], _ change: (inout Welcome) -> Void = { _ in }
    ) throws -> Link {
        try settingUp("a session") {
            try tell("foreground")
            let link = try accept()
            try link.logIn(features: features, change)
            try link.settle()
            return link
        }
    }

    func newMessage() -> MessageID { ScriptedFeed.newID() }

    // MARK: Mutations

    /// What a server does with a mutation: the stored result, or the first.
    func take(_ mutation: Mutation) -> MutationResult {
        if let result = results[mutation.number] { return result }
        if foreign.contains(mutation.number) {
            return MutationResult(number: mutation.number, code: Code.numberTaken.rawValue)
        }
        taken.append(mutation)
        floor = max(floor, mutation.number)
        var result = MutationResult(number: mutation.number)
        switch mutation.operation {
        case .sendMessage(let send):
            if let conversation = send.conversation, let message = send.message {
                let text = String(decoding: send.parts.first?.content ?? [], as: UTF8.self)
                feed.say(text, in: conversation, by: user, id: message)
                result.object = message.bytes
                result.position = UInt64(feed.texts(in: conversation).count)
            }
        case .createConversation(let create):
            if let conversation = create.conversation {
                feed.addConversation(conversation, of: [user] + create.participants)
                result.object = conversation.bytes
            }
        default: break
        }
        results[mutation.number] = result
        return result
    }

    // MARK: Identity tokens

    /// What is wrong with the token a client answered a nonce with (SES-9); `nil`: nothing.
    func fault(of token: String, nonce: [UInt8]) -> String? {
        struct Claims: Decodable {
            let sub: String
            let aud: String
            let nonce: String
            let exp: Double
        }
        guard let parsed = try? CompactToken(token, maximumBytes: 8_192) else {
            return "it is no token"
        }
        guard parsed.keyIdentifier == Self.keyID, parsed.verify(with: place.issuer) else {
            return "it is not signed by the app's backend"
        }
        guard
            let claims = try? JSONDecoder().decode(Claims.self, from: Data(parsed.payloadJSON))
        else { return "claims are missing" }
        if claims.sub != user { return "it is for \(claims.sub)" }
        if claims.aud != Self.app { return "it is for the app \(claims.aud)" }
        if claims.nonce != Base64URL.encode(nonce) { return "it is over another nonce" }
        if claims.exp < Date().timeIntervalSince1970 { return "it has expired" }
        return nil
    }
}

import APNsSimulator
import Crypto
import EventLoop
import Failpoints
import Foundation
import Glibc
import Model
import Testing

@testable import Scenario

/// One server of its own that may die at a point, its app's backend and operator, and its
/// devices in the simulator. Whatever is asked of it is asked again after its death. Lives on
/// one thread.
final class Story {
    static let patience = 180.0

    let world: World
    let name: String
    let point: Failpoint?
    let server: ServerProcess
    let control: SimulatorClient
    private let loop: Loop
    /// The server has died at the point.
    private(set) var hasDied = false
    private(set) var apiKey = ""
    private(set) var devices: [String: String] = [:]
    /// The conversation that a client made.
    var talk = ""
    /// The message that is published at a time.
    var scheduled = ""
    /// The simulator's log up to here is not about this story.
    let logStart: UInt64
    /// What was published, in the order of the answers.
    private(set) var published: [Published] = []

    /// Changes of the backend, to be asked for again at the end.
    private(set) var changes: [Change] = []

    struct Change {
        let method: String
        let path: String
        let body: (any Encodable)?
        let key: String
        let answer: [UInt8]
    }

    struct Published {
        let text: String
        let conversation: String
        let key: String
        let id: String
        let position: UInt64
    }

    var topic: String { "com.example.\(name)" }

    init(_ world: World, name: String, point: Failpoint?) throws {
        self.world = world
        self.name = name
        self.point = point
        logStart = world.logSeen
        server = try world.makeServer(name)
        server.drainSeconds = 1
        let control = try SimulatorClient(path: world.simulator.control)
        self.control = control
        var app = ControlRequest(.appAdd)
        app.topic = "com.example.\(name)"
        app.team = World.team
        try control.call(app)
        // Last: a loop must be closed, also where something before it fails.
        loop = try Loop()
    }

    func end() {
        // They would come back for ever, and another story's server may get this one's port.
        for device in devices.keys { _ = try? tell(device, .deviceForceQuit) }
        server.kill()
        loop.close()
    }

    // MARK: The server's life

    /// Armed until it has died at its point.
    func start() throws {
        guard let point, !hasDied else { return try server.start(settings: Self.settings) }
        var settings = Self.settings
        settings[Failpoint.variable] = point.name
        do {
            try server.start(settings: settings)
        } catch {
            try noteDeath()
            try server.start(settings: Self.settings)
        }
    }

    /// Webhooks go to the receiver here, and what a killed server had under way soon goes again.
    private static let settings = [
        "ROUSE_WEBHOOKS_ALLOW_NETWORKS": "127.0.0.1/32", "ROUSE_WEBHOOKS_TIMEOUT": "2",
        "ROUSE_WEBHOOKS_RETRY": "1", "ROUSE_WEBHOOKS_RETRY_MAX": "1",
    ]

    /// Starts the server again if it has died at its point; any other end is an error.
    func revive() throws {
        guard !server.isRunning else { return }
        try noteDeath()
        try server.start(settings: Self.settings)
    }

    private func noteDeath() throws {
        let log = (try? String(contentsOf: server.logFile, encoding: .utf8)) ?? ""
        guard let point, !hasDied, server.wasKilled,
            log.contains("failpoint \(point.name): killed")
        else { throw StoryError("the server has ended:\n\(server.lastLogLines(8))") }
        hasDied = true
    }

    /// SIGTERM; it ends by itself, or dies at its point on the way. Then it is started again.
    func drainAndStart() throws {
        server.drain()
        if server.wasKilled { try noteDeath() }
        try start()
    }

    /// Waits until it is so.
    func wait(_ what: String, until isSo: () throws -> Bool) throws {
        let deadline = Date().addingTimeInterval(Self.patience)
        var pause: UInt32 = 30_000
        while try !isSo() {
            guard Date() < deadline else { throw StoryError("not in time: \(what)") }
            usleep(pause)
            // Two processors look after all stories.
            pause = min(pause + pause / 2, 400_000)
            try revive()
        }
    }

    // MARK: Requests

    private struct Answer {
        let status: Int
        let body: [UInt8]
    }

    /// `nil`: there was no answer.
    private func once(
        _ method: String, _ path: String, _ body: [UInt8], key: String?, isAdmin: Bool
    ) -> Answer? {
        var headers: [(String, String)] = []
        if !isAdmin { headers.append(("authorization", "Bearer \(apiKey)")) }
        if let key { headers.append(("idempotency-key", key)) }
        var outcome: Result<HTTPCall.Answer, ScenarioError>?
        loop.updateNow()
        HTTPCall(
            loop: loop,
            place: isAdmin
                ? .socket(path: server.adminSocket)
                : .tcp(host: "127.0.0.1", port: server.apiPort),
            method: method, path: path, headers: headers, body: body
        ) { [loop] result in
            outcome = result
            loop.stop()
        }
        if outcome == nil { loop.run() }
        guard case .success(let answer) = outcome else { return nil }
        return Answer(status: answer.status, body: answer.body)
    }

    /// Asks until there is an answer, the same each time.
    ///
    /// - Parameter or: what a repetition may be answered if the first has had its effect.
    @discardableResult
    func ask(
        _ method: String, _ path: String, _ body: (any Encodable)? = nil, key: String? = nil,
        isAdmin: Bool = false, or repeated: Int? = nil
    ) throws -> [UInt8] {
        // The same bytes each time: an Idempotency-Key stands for one body.
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let bytes = try body.map { Array(try encoder.encode($0)) } ?? []
        var answer: Answer?
        var tries = 0
        try wait("\(method) \(path) is answered") {
            tries += 1
            answer = once(method, path, bytes, key: key, isAdmin: isAdmin)
            return answer != nil
        }
        guard let answer else { throw StoryError("no answer") }
        guard answer.status < 300 || tries > 1 && answer.status == repeated else {
            throw StoryError(
                "\(method) \(path): \(answer.status) "
                    + String(decoding: answer.body, as: UTF8.self))
        }
        return answer.body
    }

    func operate(
        _ method: String, _ path: String, _ body: (any Encodable)? = nil, or repeated: Int? = nil
    ) throws -> [UInt8] {
        try ask(method, path, body, isAdmin: true, or: repeated)
    }

    static func decoded<Value: Decodable>(_ type: Value.Type, _ body: [UInt8]) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: Data(body))
    }

    /// Makes an app with all its keys.
    ///
    /// - Returns: the API key's id and secret.
    func makeApp(_ app: String, grace: UInt64) throws -> (id: String, secret: String) {
        struct Made: Decodable {
            let id: String
            let secret: String
        }
        _ = try operate("POST", "/apps", ["app": app], or: 409)
        _ = try operate(
            "PATCH", "/apps/\(app)",
            [
                "grace_seconds": grace, "silent_budget": 32, "silent_spacing_seconds": 0,
                "doubt_misses": 0,
            ])
        _ = try operate(
            "PUT", "/apps/\(app)/issuer-keys/\(World.issuerKeyID)",
            ["public_key_pem": world.issuer.publicKeyPEM])
        let made = try Self.decoded(
            Made.self, try operate("POST", "/apps/\(app)/api-keys"))
        _ = try operate(
            "PUT", "/apps/\(app)/push/production",
            AppBackend.Push(
                keyID: World.pushKeyID, team: World.team, privateKeyPEM: world.signer.pem,
                topics: [topic], host: "127.0.0.1", port: world.simulator.port,
                trustedCertificatesPEM: world.authorityPEM))
        return (made.id, made.secret)
    }

    func use(apiKey: String) { self.apiKey = apiKey }

    /// Publishes under a key of its own.
    @discardableResult
    func publish(_ text: String, to conversation: String) throws -> Published {
        let key = "key-\(published.count)"
        let answer = try send(text, to: conversation, key: key)
        let made = Published(
            text: text, conversation: conversation, key: key, id: answer.id,
            position: answer.position)
        published.append(made)
        return made
    }

    /// Changes something under a key of its own; the same request is judged at the end.
    @discardableResult
    func change(
        _ method: String, _ path: String, _ body: (any Encodable)? = nil
    ) throws -> [UInt8] {
        let key = "change-\(changes.count)"
        let answer = try ask(method, path, body, key: key)
        changes.append(Change(method: method, path: path, body: body, key: key, answer: answer))
        return answer
    }

    func send(
        _ text: String, to conversation: String, key: String
    ) throws -> PublishedMessage {
        struct New: Encodable {
            let parts: [[String: String]]
            let push: [String: String]
        }
        let body = try ask(
            "POST", "/v1/conversations/\(conversation)/messages",
            New(
                parts: [["mime_type": "text/plain", "text": text]],
                push: ["title": "backend", "body": text]), key: key)
        return try Self.decoded(PublishedMessage.self, body)
    }

    /// What the server says of a device now; `nil`: nothing, or it does not know it.
    func facts(_ device: String) throws -> DeviceFacts? {
        guard let id = devices[device],
            let answer = once("GET", "/v1/devices/\(id)", [], key: nil, isAdmin: false),
            answer.status == 200
        else { return nil }
        return try Self.decoded(DeviceFacts.self, answer.body)
    }

    /// Whether the server answers that it has no such device, or only a trace of it.
    func isForgotten(_ device: String) throws -> Bool {
        guard let id = devices[device],
            let answer = once("GET", "/v1/devices/\(id)", [], key: nil, isAdmin: false)
        else { return false }
        if answer.status == 404 { return true }
        return try !Self.decoded(DeviceFacts.self, answer.body).pushToken.isHeld
    }

    func wakes(_ device: String) throws -> [WakeFacts] {
        struct List: Decodable { let wakes: [WakeFacts] }
        guard let id = devices[device] else { return [] }
        return try Self.decoded(List.self, try ask("GET", "/v1/devices/\(id)/wakes")).wakes
    }

    // MARK: Devices

    func addDevice(_ device: String, user: String, locale: String? = nil) throws {
        var request = ControlRequest(.deviceCreate, device: "\(name)-\(device)")
        request.topic = topic
        request.user = user
        request.app = "story"
        request.host = "127.0.0.1"
        request.serverName = "localhost"
        request.port = server.devicePort
        request.trust = world.authorityFile
        request.issuerKey = world.issuerFile
        request.issuerKid = World.issuerKeyID
        request.locale = locale
        devices[device] = try control.call(request).deviceId
    }

    @discardableResult
    func tell(
        _ device: String, _ command: ControlRequest.Command,
        _ change: (inout ControlRequest) -> Void = { _ in }
    ) throws -> ControlResponse {
        var request = ControlRequest(command, device: "\(name)-\(device)")
        change(&request)
        return try control.call(request)
    }

    func status(_ device: String) throws -> DeviceReport {
        guard let status = try tell(device, .deviceStatus).status else {
            throw StoryError("the simulator tells nothing of \(device)")
        }
        return status
    }

    func messages(_ device: String, in conversation: String) throws -> [StoredMessage] {
        try tell(device, .deviceMessages) { $0.conversation = conversation }.messages ?? []
    }

    func waitHolds(_ device: String, _ text: String, in conversation: String) throws {
        try wait("\(device) holds \(text)") {
            try messages(device, in: conversation).contains { $0.text == text }
        }
    }

    func waitShows(_ device: String, _ message: Published) throws {
        try wait("\(device) shows the alert of \(message.text)") {
            let screen = try tell(device, .deviceScreen).screen ?? []
            let shown = screen.filter {
                !$0.isLocal && ($0.identifier == message.id || $0.body.hasPrefix(message.text))
            }
            // A push that was sent again takes the place of the first.
            guard shown.count <= 1 else {
                throw StoryError("\(device) shows \(message.text) \(shown.count) times")
            }
            return shown.first?.identifier == message.id
        }
    }

    /// Until the server says so of the device.
    func waitServer(
        _ device: String, _ what: String, where fits: (DeviceFacts) -> Bool
    ) throws {
        do {
            try wait("the server says of \(device): \(what)") {
                try facts(device).map(fits) ?? false
            }
        } catch let error as StoryError {
            throw StoryError(
                "\(error); it says \(try facts(device) as Any), of its wakes \(try wakes(device))")
        }
    }
}

extension Story {
    /// Plays acts that no kill interrupts, with an app; what goes wrong is told with the server's
    /// last words.
    ///
    /// - Parameter grace: of the app, in seconds.
    static func play(
        _ name: String, grace: UInt64, _ acts: (Story) throws -> Void
    ) throws {
        let world = try World()
        defer { world.clear() }
        let story = try Story(world, name: name, point: nil)
        defer { story.end() }
        do {
            try story.start()
            story.use(apiKey: try story.makeApp("story", grace: grace).secret)
            try acts(story)
        } catch {
            Issue.record("\(error)\n\(story.server.lastLogLines(12))")
        }
    }
}

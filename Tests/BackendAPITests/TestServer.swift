import BackendAPI
import Crypto
import EventLoop
import Feed
import Foundation
import Model
import SQLiteStore
import StoreService
import Telemetry
import Testing
import Wake
import Wire

/// A whole backend API over a real store in a directory of its own.
final class TestServer {
    let faults = Faults()
    let store: StoreService
    let api: BackendAPI
    let directory: URL
    /// What the server says of itself in `/readyz`.
    let reasons = Reasons()
    static let boot = BootID(high: 1, low: 1)
    /// Every exchange with the backend API, in order.
    private(set) var transcript: [Exchange] = []
    private let driver: StoreDriver
    private let logger: Log

    final class Reasons: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var texts: [String] = []
        var all: [String] { lock.withLock { texts } }
        func set(_ reasons: [String]) { lock.withLock { texts = reasons } }
    }

    /// - Parameters:
    ///   - wakes: rows the store begins with.
    ///   - hold: called on the thread of the backend API for each `/readyz`.
    ///   - load: what the agent is told; `nil`: there is no agent.
    ///   - about: what operators are told of the process.
    ///   - examine: the doctor of push credentials; `nil`: nobody is there to look at them.
    ///   - log: where its log goes, at the level debug; -1: nowhere.
    init(
        duties: [StoreDuty] = [], wakes: [WakeHistoryRecord] = [], log: Int32 = -1,
        hasAdminSocket: Bool = true, hasConsole: Bool = false, appRequests: RateLimit = .none,
        appCallsMax: Int? = nil, appAnswerBytesMax: Int? = nil,
        load: (@Sendable () -> NodeLoad)? = nil, about: ServerFacts = ServerFacts(),
        holding hold: (@Sendable () -> Void)? = nil,
        examining examine: CredentialExamination? = nil
    ) throws {
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-api-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let path = directory.appendingPathComponent("store.db").path
        store = try StoreService.start(
            duties: duties, boot: Self.boot, epochHalf: 5,
            open: { [faults] in
                let store = try SQLiteStore(path: path, tables: Schema.tables)
                try store.write { transaction throws(StoreError) in
                    for wake in wakes { try transaction.put(wake) }
                }
                return FaultyStore(store, faults)
            }, onCommit: { _ in })
        driver = try StoreDriver(store)
        var configuration = BackendAPI.Configuration(
            adminSocket: hasAdminSocket ? path + ".admin" : nil)
        if hasConsole { configuration.console = .init(port: 0) }
        configuration.agent = load.map { .init(port: 0, load: $0) }
        configuration.appRequests = appRequests
        if let appCallsMax { configuration.appCallsMax = appCallsMax }
        if let appAnswerBytesMax { configuration.appAnswerBytesMax = appAnswerBytesMax }
        logger = Log(level: .debug, descriptor: log)
        api = try BackendAPI.start(
            configuration: configuration, store: store,
            notReady: { [reasons] in
                hold?()
                return reasons.all
            }, about: about, examine: examine, metrics: Metrics(),
            log: logger)
    }

    deinit { stop() }

    private var isStopped = false

    func stop() {
        if isStopped { return }
        isStopped = true
        faults.failWrites(nil)
        api.stop()
        driver.stop()
        store.stop()
        // Before the descriptor is another file's.
        logger.flush()
        try? FileManager.default.removeItem(at: directory)
    }

    var adminSocket: String { directory.appendingPathComponent("store.db.admin").path }

    /// A request to the backend API.
    @discardableResult
    func send(
        _ method: String, _ path: String, key: String? = nil, headers: [String: String] = [:],
        isMisshapen: Bool = false, _ body: String = ""
    ) throws -> Exchange {
        var headers = headers
        if let key { headers["authorization"] = "Bearer \(key)" }
        if !body.isEmpty, headers["content-type"] == nil {
            headers["content-type"] = "application/json"
        }
        var exchange = try HTTPClient.send(
            method, path, headers: headers, body: body, to: .port(api.port))
        exchange.isMisshapen = isMisshapen
        transcript.append(exchange)
        return exchange
    }

    /// Bytes that are no whole request of `HTTPClient`.
    @discardableResult
    func sendRaw(_ text: String, _ method: String, _ path: String) throws -> Exchange {
        let answer = try HTTPClient.raw(text, to: .port(api.port))
        var exchange = try HTTPClient.exchange(method, path, [:], "", answer)
        exchange.isRaw = true
        transcript.append(exchange)
        return exchange
    }

    func note(_ exchange: Exchange) { transcript.append(exchange) }

    /// A request to the admin API.
    @discardableResult
    func admin(_ method: String, _ path: String, _ body: String = "") throws -> Exchange {
        try HTTPClient.send(
            method, path, headers: body.isEmpty ? [:] : ["content-type": "application/json"],
            body: body, to: .path(adminSocket))
    }

    /// Makes an app and gives its API key.
    func makeApp(_ name: String) throws -> String {
        let made = try admin("POST", "/apps", #"{"app":"\#(name)"}"#)
        try #require(made.status == 201, "\(made.body)")
        let key = try admin("POST", "/apps/\(name)/api-keys")
        return try #require(try key.json["secret"].string)
    }

    /// Gives an app a push credential for the development environment.
    func addPushCredential(to app: String) throws {
        let credential = [
            "key_id": "ABC1234567", "team": "TEAM123456",
            "private_key_pem": PrivateKey.generate(.p256).pem,
        ]
        var body =
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(credential))
            as? [String: Any]
        body?["topics"] = ["org.example.app"]
        let text = try JSONSerialization.data(withJSONObject: try #require(body))
        let set = try admin(
            "PUT", "/apps/\(app)/push/development", String(decoding: text, as: UTF8.self))
        try #require(set.status == 200, "\(set.body)")
    }

    /// Carries out requests directly, in one transaction if the writer is idle.
    func commit(_ requests: [StoreRequest]) throws -> [StoreAnswer] {
        try driver.commit(requests).map { result in
            guard case .committed(let outcome) = result else {
                throw Unexpected(text: "\(result)")
            }
            return outcome.answer
        }
    }

    /// Asks for a commit and does not wait.
    func post(_ request: StoreRequest) { driver.post(request) }

    struct Unexpected: Error {
        let text: String
    }

    /// Logs a device in.
    func openDevice(
        _ app: String, user: String, push: PushRegistration? = nil, device: DeviceID? = nil
    ) throws -> DeviceID {
        let random = Random.bytes(16)
        let device = try device ?? #require(DeviceID(random))
        let request = StoreRequest.openSession(
            OpenSession(
                app: AppID(app), device: device, role: .app, credential: .identity(UserID(user)),
                newTokenHash: Digest.sha256(random), freshEpochHalf: 7,
                boot: Self.boot, clientName: "Example", clientVersion: "3.1",
                appState: AppState(notifications: .on, backgroundRefresh: .off), push: push))
        let answer = try #require(try commit([request]).first)
        guard case .opened = answer else { throw Unexpected(text: "\(answer)") }
        return device
    }
}

/// Asks the store from the test's thread.
final class StoreDriver {
    private let thread: LoopThread
    private let questions: Mailbox<Batch>

    private struct Batch: Sendable {
        let requests: [StoreRequest]
        let results: Results
    }

    private final class Results: @unchecked Sendable {
        // @unchecked: written on the driver's thread before the latch opens, read after it.
        let latch: Latch
        var all: [StoreResult?]

        init(_ count: Int) {
            latch = Latch(count: count)
            all = Array(repeating: nil, count: count)
        }
    }

    init(_ store: StoreService) throws {
        (thread, questions) = try LoopThread.startReturning(name: "driver") { loop in
            var open: [UInt64: (Results, Int)] = [:]
            let client = store.client(on: loop) { reply in
                guard let (results, index) = open.removeValue(forKey: reply.ticket) else { return }
                results.all[index] = reply.result
                results.latch.arrive()
            }
            return Mailbox<Batch>(loop: loop, limit: nil) { batches in
                for batch in batches {
                    for (index, request) in batch.requests.enumerated() {
                        open[client.commit(request)] = (batch.results, index)
                    }
                }
            }
        }
    }

    func commit(_ requests: [StoreRequest]) throws -> [StoreResult] {
        let results = Results(requests.count)
        questions.post(Batch(requests: requests, results: results))
        try #require(results.latch.wait(seconds: 120), "the store did not answer")
        return results.all.compactMap { $0 }
    }

    func post(_ request: StoreRequest) {
        questions.post(Batch(requests: [request], results: Results(1)))
    }

    func stop() {
        thread.stop()
        thread.join()
    }
}

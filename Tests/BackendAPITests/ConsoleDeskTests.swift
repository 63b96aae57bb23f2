import Crypto
import EventLoop
import Feed
import HTTP1
import Model
import StoreService
import Telemetry
import Testing

@testable import BackendAPI

/// The console's desk without a socket, by a clock of the test's own.
@Suite struct ConsoleDeskTests {
    private let server: TestServer

    init() throws { server = try TestServer() }

    private func login(_ token: String) -> HTTPRequest {
        HTTPRequest(
            method: "POST", path: "/console/login", pathSegments: ["console", "login"],
            headers: HTTPHeaders([("content-type", "application/json")]),
            body: Array(#"{"token":"\#(token)"}"#.utf8), peerAddress: "192.0.2.1")
    }

    private func apps(_ cookie: String, isWatching: Bool = false) -> HTTPRequest {
        get(["console", "api", "apps"], cookie, isWatching: isWatching)
    }

    private func session(_ cookie: String, isWatching: Bool) -> HTTPRequest {
        get(["console", "session"], cookie, isWatching: isWatching)
    }

    private func get(_ path: [String], _ cookie: String, isWatching: Bool) -> HTTPRequest {
        var headers = [("cookie", "\(ConsoleDesk.cookieName)=\(cookie)")]
        if isWatching { headers.append(("x-rouse-watching", "1")) }
        return HTTPRequest(
            method: "GET", path: "/" + path.joined(separator: "/"), pathSegments: path,
            headers: HTTPHeaders(headers), peerAddress: "192.0.2.1")
    }

    @Test("wrong tokens that come together cost the store one reading, and delay no right one")
    func wrongTokens() throws {
        defer { server.stop() }
        let token = try server.consoleToken("admin").secret
        let desk = try DeskThread(server)
        defer { desk.stop() }
        let before = server.faults.readCount
        let wrong = (0..<200).map { login("rct_wrong\($0)") }
        let answers = try desk.ask(wrong + [login(token)])
        #expect(answers.last?.status == 200)
        #expect(answers.dropLast().allSatisfy { [401, 429].contains($0.status) })
        // The first begins one at once; all others came meanwhile.
        #expect(server.faults.readCount - before == 2)
        // What cannot be read is said to each.
        server.faults.failReads(.unavailable("test"))
        let failed = try desk.ask([login(token), login("rct_wrong"), login(token)])
        #expect(failed.map(\.status) == [503, 503, 503])
        server.faults.failReads(nil)
        #expect(try desk.ask([login(token)]).map(\.status) == [200])
    }

    @Test("a page that looks by itself keeps no session alive; a person who asks does")
    func watching() throws {
        defer { server.stop() }
        let token = try server.consoleToken("read-only").secret
        let desk = try DeskThread(server)
        defer { desk.stop() }
        func enter() throws -> String {
            let answer = try #require(try desk.ask([login(token)]).first)
            let line = try #require(
                answer.headers.first { $0.0.lowercased() == "set-cookie" }
            ).1
            return String(line.dropFirst("rouse_console=".count).prefix { $0 != ";" })
        }
        func status(_ request: HTTPRequest) throws -> Int? { try desk.ask([request]).first?.status }
        let almost = ConsoleSessions.idleMax - 1
        let watched = try enter()
        desk.pass(almost)
        #expect(try status(apps(watched, isWatching: true)) == 200)
        #expect(try status(session(watched, isWatching: true)) == 200)
        desk.pass(1)
        #expect(try status(apps(watched, isWatching: true)) == 401)
        #expect(try status(session(watched, isWatching: true)) == 204)
        let used = try enter()
        desk.pass(almost)
        #expect(try status(apps(used)) == 200)
        desk.pass(almost)
        #expect(try status(apps(used, isWatching: true)) == 200)
        desk.pass(1)
        #expect(try status(apps(used)) == 401)
    }
}

/// A desk on a thread of its own, over the store of a server.
private final class DeskThread {
    private let thread: LoopThread
    private let questions: Mailbox<Batch>
    private let clock = Clock()

    private final class Clock: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var milliseconds: UInt64 = 1_000_000
        var now: UInt64 { lock.withLock { milliseconds } }
        func pass(_ more: UInt64) { lock.withLock { milliseconds += more } }
    }

    private struct Batch: Sendable {
        let requests: [HTTPRequest]
        let answers: Answers
    }

    private final class Answers: @unchecked Sendable {
        // @unchecked: written on the desk's thread before the latch opens, read after it.
        let latch: Latch
        var all: [HTTPResponse?]

        init(_ count: Int) {
            latch = Latch(count: count)
            all = Array(repeating: nil, count: count)
        }
    }

    init(_ server: TestServer) throws {
        let store = server.store
        let clock = clock
        (thread, questions) = try LoopThread.startReturning(name: "desk") { loop in
            let metrics = Metrics()
            let desk = ConsoleDesk(
                loop: loop, store: store,
                surroundings: Surroundings(
                    apps: store.apps, health: store.health, metrics: metrics, notReady: { [] }),
                instruments: Instruments(metrics, Log(level: .error, descriptor: -1)),
                now: { clock.now })
            return Mailbox<Batch>(loop: loop, limit: nil) { batches in
                for batch in batches {
                    guard !batch.requests.isEmpty else {
                        desk.close()
                        batch.answers.latch.arrive()
                        continue
                    }
                    // All are there before the store has answered one.
                    for (index, request) in batch.requests.enumerated() {
                        desk.take(request) { response, _ in
                            batch.answers.all[index] = response
                            batch.answers.latch.arrive()
                        }
                    }
                }
            }
        }
    }

    func pass(_ milliseconds: UInt64) { clock.pass(milliseconds) }

    func ask(_ requests: [HTTPRequest]) throws -> [HTTPResponse] {
        let answers = Answers(max(1, requests.count))
        questions.post(Batch(requests: requests, answers: answers))
        try #require(answers.latch.wait(seconds: 120), "the desk did not answer")
        return answers.all.compactMap { $0 }
    }

    func stop() {
        _ = try? ask([])
        thread.stop()
        thread.join()
    }
}

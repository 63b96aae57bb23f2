import EventLoop
import Foundation
import HTTP1
import Model
import StoreService
import Telemetry
import Testing

@testable import BackendAPI

/// What one app's answers leave to the others, and to the loop.
@Suite struct AnswerTurnsTests {
    @Test("what came back at once is carried out app by app, a bounded part of it in a turn")
    func appsTakeTurns() throws {
        let part = 128 * 1024
        let done = Latch()
        let seen = Seen()
        let thread = try LoopThread.start(name: "turns") { loop in
            let counter = TurnCounter(loop)
            let holder = Holder()
            holder.turns = AnswerTurns<String>(loop: loop) { item in
                seen.note(turn: counter.turn, item, part)
                holder.turns?.note(bytes: part)
                if seen.all.count < 8 { return }
                counter.end()
                done.arrive()
            }
            for number in 0..<6 { holder.turns?.add("a\(number)", of: AppID("a")) }
            holder.turns?.add("b", of: AppID("b"))
            holder.turns?.add("none", of: nil)
        }
        #expect(done.wait(seconds: 60))
        thread.stop()
        thread.join()
        #expect(seen.all.map(\.name) == ["a0", "a1", "a2", "b", "none", "a3", "a4", "a5"])
        #expect(seen.largestTurn == 2 * part)
    }

    @Test("an app's large answers do not come in one turn of the API's loop")
    func largeAnswers() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let made = try server.send(
            "POST", "/v1/conversations", key: key, #"{"participants":["anna"]}"#)
        let room = "/v1/conversations/\(try #require(try made.json["id"].string))/messages"
        let text = String(repeating: "x", count: 60_000)
        for _ in 0..<8 {
            let sent = try server.send(
                "POST", room, key: key, #"{"parts":[{"mime_type":"text/plain","text":"\#(text)"}]}"#
            )
            try #require(sent.status == 201)
        }
        let request = HTTPRequest(
            method: "GET", path: room,
            pathSegments: room.split(separator: "/").map { String($0) },
            headers: HTTPHeaders([("authorization", "Bearer \(key)")]), peerAddress: "192.0.2.1")
        let seen = Seen()
        let (asked, read, done) = (Latch(), Latch(), Latch())
        let store = server.store
        let thread = try LoopThread.start(name: "desk") { loop in
            let metrics = Metrics()
            let counter = TurnCounter(loop)
            let desk = CallDesk(
                loop: loop, table: BackendAPI.backendRoutes, store: store,
                surroundings: Surroundings(
                    apps: store.apps, health: store.health, metrics: metrics, notReady: { [] }),
                instruments: Instruments(metrics, Log(level: .error, descriptor: -1)))
            // Not before this has returned.
            loop.nextTurn {
                for number in 0..<10 {
                    desk.take(request) { response, taken in
                        seen.note(turn: counter.turn, "\(number)", response.body.count)
                        taken()
                        if seen.all.count < 10 { return }
                        counter.end()
                        loop.nextTurn {
                            desk.close()
                            done.arrive()
                        }
                    }
                }
                asked.arrive()
                // The answers of the store come together.
                _ = read.wait(seconds: 60)
            }
        }
        asked.wait()
        // It is read after those.
        #expect(try server.send("GET", room, key: key).status == 200)
        read.arrive()
        #expect(done.wait(seconds: 60))
        thread.stop()
        thread.join()
        #expect(seen.all.allSatisfy { $0.bytes > 400_000 })
        #expect(seen.largestTurn <= 256 * 1024 + 1024 * 1024)
    }

    private final class Holder { var turns: AnswerTurns<String>? }

    /// Counts the turns of a loop, which it keeps from waiting meanwhile. Loop-confined.
    private final class TurnCounter {
        private(set) var turn = 0
        private var isOver = false

        init(_ loop: Loop) { count(loop) }

        private func count(_ loop: Loop) {
            loop.nextTurn { [unowned loop] in
                self.turn += 1
                if !self.isOver { self.count(loop) }
            }
        }

        func end() { isOver = true }
    }

    private final class Seen: @unchecked Sendable {
        // @unchecked: written on the loop's thread before a latch opens, read after it.
        private(set) var all: [(turn: Int, name: String, bytes: Int)] = []

        func note(turn: Int, _ name: String, _ bytes: Int) { all.append((turn, name, bytes)) }

        var largestTurn: Int {
            Dictionary(all.map { ($0.turn, $0.bytes) }, uniquingKeysWith: +).values.max() ?? 0
        }
    }
}

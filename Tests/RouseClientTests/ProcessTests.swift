import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// A process of an app as its host has it: whose executor it runs on, what it tells the log, and
/// what it knows of the process before it.
@Suite struct ProcessTests {
    @Test("a wake is not over while what an earlier process sent is unanswered")
    func anEarlierOutbox() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.isMute = true }
        let first = stage.process()
        let changes = await first.changes()
        await first.scene(.active)
        for await change in changes where change == .inSync { break }
        try await first.send("Are you there?", to: Stage.room)
        await first.scene(.suspending)
        let (began, closed) = (stage.clock.now, stage.closes)
        let later = stage.process()
        let laterChanges = await later.changes()
        let wake = Task { await later.woken(by: nil, within: 30_000) }
        // Only then may time pass: a connection without an answer so far would end by itself.
        for await change in laterChanges where change == .inSync { break }
        for _ in 0..<1_000 { await Task.yield() }
        #expect(stage.closes == closed, "it was done before the server had answered")
        for await moment in stage.clock.asked where moment == began + 28_000 {
            stage.clock.advance(to: moment)
            break
        }
        #expect(await wake.value == .noData)
        #expect(stage.closes == closed + 1)
    }

    @Test("what came as the person left is told, though it was in front when it was stored")
    func storedWhileLeaving() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate, at: .delivered, after: 1))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        await rouse.onScreen(.everything)
        await rouse.scene(.active)
        // It is stored, and the system does not answer yet what stands on the screen.
        for await _ in stage.phone.isAtGate { break }
        await rouse.scene(.background(remaining: 5_000))
        opened.finish()
        await rouse.scene(.suspending)
        #expect(stage.phone.screen == [1])
    }

    private actor Seat {
        /// Ends the process if the client does not run where this does.
        func standing(of rouse: Rouse) -> RouseStanding { rouse.assumeIsolated { $0.standing } }
    }

    @Test("it runs on the executor that it is given, and its log is in order")
    func onAnExecutor() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        let seat = Seat()
        let words = Mutex<[String]>([])
        let phone = stage.phone
        let rouse = stage.process(on: seat) { record in
            let word =
                switch record {
                case .event(.opened): "opened"
                case .event(.synced): "synced"
                case .applied(let entries): "applied \(entries.count)"
                case .left: "left \(phone.screen)"
                default: ""
                }
            if !word.isEmpty { words.withLock { $0.append(word) } }
        }
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(words.withLock { $0 } == ["opened", "applied 1", "synced", "left [1]"])
        let standing = await seat.standing(of: rouse)
        #expect(standing.cursor?.seq == 11 && !standing.isOpen && !standing.hasUnanswered)
    }
}

extension Stage {
    /// Good-byes so far.
    fileprivate var closes: Int { phone.log.count { $0 == "close" } }
}

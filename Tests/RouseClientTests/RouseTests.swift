import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// The library as an app uses it: callbacks of the system in, the screen and the system's handler
/// as what comes out. Frames are real, the server is scripted.
@Suite struct RouseTests {
    @Test("three messages of one silent push stand on the screen before the system is told")
    func threeOfOnePush() async throws {
        let stage = try Stage()
        for number in 1...3 {
            stage.server.publish(Stage.message(UInt64(number)), unread: UInt32(number))
        }
        let rouse = stage.process()
        let result = await rouse.woken(by: WakeID(high: 9, low: 9), within: 30_000)
        #expect(result == .newData)
        #expect(stage.phone.screen == [1, 2, 3])
        #expect(stage.phone.icon == 3)
        #expect(
            stage.phone.log == ["badge 3", "show Ben: 1", "show Ben: 2", "show Ben: 3", "close"])
        // Nothing more comes with the next.
        #expect(await rouse.woken(by: nil, within: 30_000) == .noData)
        #expect(stage.phone.screen == [1, 2, 3])
    }

    @Test("the app learns that the server does not take its push token")
    func refusedToken() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        try await LiveTests.synced(rouse) { await rouse.scene(.active) }
        let changes = await rouse.changes()
        stage.server.refuseToken()
        for await change in changes {
            #expect(change == .pushTokenRefused)
            break
        }
    }

    @Test("one is read on another device while the app is not in memory: exactly that one goes")
    func readElsewhere() async throws {
        let stage = try Stage()
        for number in 1...3 {
            stage.server.publish(Stage.message(UInt64(number)), unread: UInt32(number))
        }
        _ = await stage.process().woken(by: nil, within: 30_000)
        stage.server.publish(Stage.readMark(through: 1, seq: 14), unread: 2)
        #expect(await stage.process().refreshTask(within: 30_000) == .newData)
        #expect(stage.phone.screen == [2, 3])
        #expect(stage.phone.icon == 2)
    }

    @Test("what is over goes before the icon changes to 0, with which the system's list would go")
    func nothingUnread() async throws {
        let stage = try Stage()
        for number in 1...2 {
            stage.server.publish(Stage.message(UInt64(number)), unread: UInt32(number))
        }
        _ = await stage.process().woken(by: nil, within: 30_000)
        stage.server.publish(Stage.readMark(through: 2, seq: 14), unread: 0)
        #expect(await stage.process().refreshTask(within: 30_000) == .newData)
        let log = stage.phone.log
        let icon = try #require(log.firstIndex(of: "badge 0"))
        #expect(log[..<icon].filter { $0 == "remove" }.count == 2, "\(log)")
        #expect(stage.phone.screen.isEmpty)
    }

    @Test("killed while it shows: the next process shows what the first did not")
    func killedWhileItShows() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate))
        stage.server.publish(Stage.message(1), unread: 1)
        let first = stage.process()
        let began = stage.clock.now
        let wake = Task { await first.woken(by: nil, within: 30_000) }
        for await _ in stage.phone.isAtGate { break }
        // The first process hangs here for good; its disk and its server live on.
        let later = try stage.next(FakePhone())
        later.server.publish(Stage.message(1), unread: 1)
        let second = later.process()
        #expect(await second.woken(by: nil, within: 30_000) == .noData)
        #expect(later.phone.screen == [1])
        await stage.clock.pass([began + 28_000, began + 29_000])
        _ = await wake.value
        opened.finish()
    }

    @Test("a server that says nothing does not cost the app its life: failed, in time")
    func beforeTheDeadline() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.isSilent = true }
        let rouse = stage.process()
        let began = stage.clock.now
        let wake = Task { await rouse.woken(by: nil, within: 20_000) }
        for await moment in stage.clock.asked where moment == began + 18_000 {
            stage.clock.advance(to: moment)
            break
        }
        #expect(await wake.value == .failed)
    }

    @Test(
        "nor does a system that does not answer: what came is said, in time",
        arguments: [FakePhone.Call.show, .delivered])
    func theSystemDoesNotAnswer(_ call: FakePhone.Call) async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate, at: call))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        let began = stage.clock.now
        let wake = Task { await rouse.woken(by: nil, within: 20_000) }
        for await _ in stage.phone.isAtGate { break }
        // What waits has a second more, if the system answers after all. Behind a look of the
        // launch the wake itself waits.
        let ends = [began + 18_000, began + 19_000]
        await stage.clock.pass(call == .show ? ends : [ends[1]])
        #expect(await wake.value == (call == .show ? .newData : .failed))
        opened.finish()
    }

    @Test("what is durable at the deadline is told before the handler is called")
    func toldAtTheDeadline() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        // The system is slow to say what stands.
        let stage = try Stage(phone: FakePhone(gate: gate, at: .delivered, after: 1))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        let (began, phone) = (stage.clock.now, stage.phone)
        let wake = Task {
            let result = await rouse.woken(by: nil, within: 20_000)
            return (result, phone.screen)
        }
        for await _ in phone.isAtGate { break }
        for await moment in stage.clock.asked where moment == began + 18_000 {
            stage.clock.advance(to: moment)
            break
        }
        for _ in 0..<1_000 { await Task.yield() }
        opened.finish()
        let (result, screen) = await wake.value
        #expect(result == .newData && screen == [1])
    }

    @Test("who comes to a deadline a second late waits for nothing, and says what is true")
    func lateForTheDeadline() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate, at: .delivered, after: 1))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        let began = stage.clock.now
        let wake = Task { await rouse.woken(by: nil, within: 20_000) }
        for await _ in stage.phone.isAtGate { break }
        await stage.clock.pass([began + 19_000])
        #expect(await wake.value == .newData)
        opened.finish()
    }

    @Test("what its end of time kept an app from telling, the next wake tells before it is over")
    func toldByTheNextWake() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate, at: .delivered, after: 1))
        stage.server.publish(Stage.message(1), unread: 1)
        let (rouse, phone) = (stage.process(), stage.phone)
        let began = stage.clock.now
        let first = Task { await rouse.woken(by: nil, within: 20_000) }
        for await _ in phone.isAtGate { break }
        let leaving = Task { await rouse.scene(.suspending) }
        await stage.clock.pass([began + 2_000])
        await leaving.value
        #expect(await first.value == .newData && phone.screen.isEmpty)
        let next = Task {
            let result = await rouse.woken(by: nil, within: 20_000)
            return (result, phone.screen)
        }
        opened.finish()
        let (result, screen) = await next.value
        #expect(result == .noData && screen == [1])
    }

    @Test("the deadline of a later wake has a turn of its own, also behind one that was overtaken")
    func aLaterDeadline() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate, at: .delivered, after: 2))
        let rouse = stage.process()
        let (working, ended) = AsyncStream<Void>.makeStream()
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let work = Task {
            await rouse.work {
                beginning.yield()
                for await _ in working {}
                return true
            }
        }
        for await _ in begun { break }
        let (clock, began) = (stage.clock, stage.clock.now)
        // Both before the first is carried out, and so before the system is silent.
        let wakes = await { (rouse: isolated Rouse) in
            [20_000, 30_000].map { time in
                Task { await rouse.woken(by: nil, within: time) }
            }
        }(rouse)
        for await _ in stage.phone.isAtGate { break }
        await clock.pass([began + 18_000, began + 19_000])
        #expect(await wakes[0].value == .noData)
        ended.finish()
        await work.value
        await clock.pass([began + 28_000])
        opened.finish()
        #expect(await wakes[1].value == .newData)
    }

    @Test(
        "its time is over while the system does not answer: good-bye, and the handler is called",
        .timeLimit(.minutes(60)),
        arguments: [FakePhone.Call.show, .delivered])
    func suspendedBehindAHungCall(_ call: FakePhone.Call) async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let phone = FakePhone(gate: gate, at: call, after: call == .delivered ? 1 : 0)
        let stage = try Stage(phone: phone)
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        let began = stage.clock.now
        let wake = Task { await rouse.woken(by: nil, within: 20_000) }
        for await _ in stage.phone.isAtGate { break }
        let leaving = Task { await rouse.scene(.suspending) }
        for await moment in stage.clock.asked where moment == began + 2_000 {
            stage.clock.advance(to: moment)
            break
        }
        await leaving.value
        #expect(await wake.value == .newData)
        #expect(stage.server.feed.withLock { $0.heard.last } == .close)
        opened.finish()
    }

    @Test(
        "a wake that comes behind a call that does not return is answered in time",
        .timeLimit(.minutes(60)))
    func wokenBehindAHungCall() async throws {
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let stage = try Stage(phone: FakePhone(gate: gate))
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        await rouse.scene(.active)
        for await _ in stage.phone.isAtGate { break }
        let wake = Task { await rouse.woken(by: nil, within: 20_000) }
        // What the connection waits for comes before it.
        let (clock, asked) = (stage.clock, stage.clock.asked)
        let ticking = Task { for await moment in asked { clock.advance(to: moment) } }
        #expect(await wake.value == .failed)
        ticking.cancel()
        opened.finish()
    }

    @Test("a page behind a WELCOME may be as large as that allows")
    func aLargePage() async throws {
        let stage = try Stage()
        let body = String(repeating: "x", count: 600)
        for number in 1...60 {
            stage.server.publish(
                Stage.message(UInt64(number), body: body), unread: UInt32(number))
        }
        #expect(await stage.process().woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == Array(1...60))
    }

    private func alerted(_ entry: Entry, editedAt moment: UInt64 = 0) -> Entry {
        var entry = entry
        entry.alerted = true
        if case .message(var state) = entry.body, moment > 0 {
            state.editedMs = moment
            entry.body = .message(state)
        }
        return entry
    }

    @Test("an edit of what the server alerted replaces the alert, and shows nothing anew")
    func anEditOfAnAlert() async throws {
        let stage = try Stage()
        stage.phone.alert(Stage.message(1))
        for number in 1...2 as ClosedRange<UInt64> {
            stage.server.publish(
                alerted(Stage.message(number, body: "better"), editedAt: 5), unread: 2)
        }
        #expect(await stage.process().woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [1])
        #expect(stage.phone.notices.map(\.body) == ["better"])
        #expect(stage.phone.notices.map(\.sound) == [nil])
    }

    @Test("an alert that was on its way when the app was opened is shown in front")
    func anAlertOnItsWay() async throws {
        let stage = try Stage()
        stage.server.publish(alerted(Stage.message(1)), unread: 1)
        let rouse = stage.process()
        await rouse.scene(.active)
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen.isEmpty)
        let alert = DeliveredNotification(
            identifier: "1", object: MessageID(high: 0, low: 1), conversation: Stage.room)
        #expect(await rouse.presents(alert) == .all)
        await rouse.onScreen(.conversation(Stage.room))
        #expect(await rouse.woken(by: nil, within: 30_000) == .noData)
        #expect(await rouse.presents(alert) == .nothing)
        await rouse.onScreen(.nothing)
        stage.server.publish(Stage.readMark(through: 1, seq: 20), unread: 0)
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(await rouse.presents(alert) == .nothing)
    }

    enum Place: CaseIterable { case elsewhere, open, everything, muted }

    @Test(
        "an edit in front: the text that was taken back is gone, what replaces it makes no noise",
        arguments: Place.allCases)
    func anEditInFront(_ place: Place) async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        _ = await rouse.woken(by: nil, within: 30_000)
        if place == .muted { stage.server.publish(Stage.muted(seq: 12), unread: 1) }
        switch place {
        case .elsewhere, .muted: break
        case .open: await rouse.onScreen(.conversation(Stage.room))
        case .everything: await rouse.onScreen(.everything)
        }
        await rouse.scene(.active)
        stage.phone.isInFront(rouse)
        var edited = Stage.message(1, body: "better")
        (edited.seq, edited.version) = (20, 20)
        if case .message(var state) = edited.body {
            state.editedMs = 5
            edited.body = .message(state)
        }
        stage.server.publish(edited, unread: 1)
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [1])
        #expect(stage.phone.notices.map(\.body) == ["1", "better"])
        #expect(stage.phone.banners.isEmpty)
        // Its own of another message has a banner where nobody sees the conversation.
        stage.server.publish(Stage.message(20, body: "new"), unread: 2)
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.banners == (place == .elsewhere ? ["new"] : []))
    }

    @Test("a campaign's push is shown in front, also where the app shows everything itself")
    func aCampaignInFront() async throws {
        let rouse = try Stage().process()
        await rouse.scene(.active)
        await rouse.onScreen(.everything)
        let campaign = DeliveredNotification(identifier: "c", object: MessageID(high: 8, low: 8))
        #expect(await rouse.woken(by: nil, within: 30_000) == .noData)
        #expect(await rouse.presents(campaign) == .all)
        #expect(await rouse.presents(DeliveredNotification(identifier: "own")) == .all)
    }

    @Test("before first unlock the wake fails, and the next one brings everything")
    func locked() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        #expect(await stage.process(isLocked: true).woken(by: nil, within: 30_000) == .failed)
        #expect(stage.server.feed.withLock { $0.heard.isEmpty })
        #expect(await stage.process().woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [1])
    }

    @Test("a process that began before first unlock goes on after it")
    func unlocked() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process(isLocked: true)
        #expect(await rouse.woken(by: nil, within: 30_000) == .failed)
        stage.phone.wasUnlocked.withLock { $0 = true }
        await rouse.unlocked()
        #expect(await rouse.woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [1])
    }

    @Test("in front a change is told after it is durable, and before all is in sync")
    func changes() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        let rouse = stage.process()
        await rouse.onScreen(.conversation(Stage.room))
        let changes = await rouse.changes()
        await rouse.scene(.active)
        var seen: [RouseChange] = []
        for await change in changes {
            if case .entries = change {
                #expect(try await rouse.messages(of: Stage.room, limit: 9).count == 1)
            }
            seen.append(change)
            if change == .inSync { break }
        }
        #expect(seen == [.unread(1), .entries([Stage.message(1)]), .inSync])
        #expect(stage.phone.screen.isEmpty)
    }

    @Test("what the user sends is durable at once, and its result comes by its number")
    func sending() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        let changes = await rouse.changes()
        await rouse.scene(.active)
        for await change in changes where change == .inSync { break }
        let number = try await rouse.send(
            .sendMessage(
                SendMessage(conversation: Stage.room, message: MessageID(high: 0, low: 77))))
        for await change in changes {
            guard case .results(let results) = change else { continue }
            #expect(results.map(\.number) == [number])
            break
        }
    }

    @Test("the app's own work belongs to the wake")
    func ownWork() async throws {
        let stage = try Stage()
        let rouse = stage.process()
        let (gate, opened) = AsyncStream<Void>.makeStream()
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let work = Task {
            await rouse.work {
                beginning.yield()
                for await _ in gate {}
                return true
            }
        }
        for await _ in begun { break }
        let changes = await rouse.changes()
        let wake = Task { await rouse.woken(by: nil, within: 30_000) }
        for await change in changes where change == .inSync { break }
        opened.finish()
        await work.value
        #expect(await wake.value == .newData)
    }
}

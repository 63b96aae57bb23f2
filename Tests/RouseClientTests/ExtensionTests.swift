import AppLife
import MemoryStore
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// The notification service extension: what it decides, what it leaves alone, and that it answers
/// in time. The server hears what it says.
@Suite struct ExtensionTests {
    /// An extension over its own file, beside the app's.
    struct Peeker {
        let stage: Stage
        let own: MemoryStore
        let peeker: RouseExtension

        init(_ stage: Stage, isAppLocked: Bool = false, own: MemoryStore? = nil) {
            self.stage = stage
            let own = own ?? MemoryStore(tables: LocalSchema.tables)
            self.own = own
            let (ownDisk, appDisk) = (FaultyStore(own), FaultyStore(stage.disk))
            peeker = RouseExtension(
                configuration: ClientConfiguration(
                    app: "chess", device: DeviceID(high: 5, low: 5), clientName: "test",
                    clientVersion: "1"),
                transport: stage.server, clock: stage.clock, seed: 1,
                openStore: { TableLocalStore(store: ownDisk) },
                openAppStore: {
                    if isAppLocked { throw LocalStoreError.unavailable("the app has it") }
                    return TableLocalStore(store: appDisk)
                }, identity: { _ in nil })
        }

        func peek(_ number: UInt64) async -> Peek {
            await peeker.peek(
                MessageID(high: 0, low: number), in: Stage.room, within: 30_000)
        }
    }

    @Test("it says what the message says now, and the icon's number; the app's cursor stays")
    func says() async throws {
        let stage = try Stage()
        let peeker = Peeker(stage)
        stage.server.publish(Stage.message(1), unread: 1)
        stage.server.publish(Stage.message(2, body: "a longer text than an alert has"), unread: 2)
        let peek = await peeker.peek(2)
        #expect(peek.notice?.body == "a longer text than an alert has")
        #expect(peek.badge == 2)
        #expect(!peek.isOver)
        let app = try TableLocalStore(store: stage.disk).load()
        #expect(app.cursor == Cursor(epoch: ScriptedServer.epoch, seq: 10))
        #expect(app.sessionToken == [9])
        // What it holds for its device the server hears of, and nothing else.
        let (hello, acks) = stage.server.feed.withLock { ($0.hellos, $0.acks) }
        #expect(hello.map(\.role) == [.extension])
        #expect(hello.map(\.sessionToken) == [[9]])
        #expect(acks.map(\.applied) == [0])
        #expect(acks.map(\.ranges) == [[InclusiveRange(first: 11, last: 12)]])
        // The app gets both itself, and shows them.
        #expect(await stage.process().woken(by: nil, within: 30_000) == .newData)
        #expect(stage.phone.screen == [1, 2])
    }

    @Test("with a token of its own it goes on where it looked last, and keeps no more than that")
    func again() async throws {
        let stage = try Stage()
        let first = Peeker(stage)
        stage.server.publish(Stage.message(1), unread: 1)
        _ = await first.peek(1)
        stage.server.publish(Stage.message(2), unread: 2)
        // The app runs by now, and has its store.
        let second = Peeker(stage, isAppLocked: true, own: first.own)
        let peek = await second.peek(2)
        #expect(peek.notice?.body == "2")
        #expect(peek.badge == 2)
        #expect(stage.server.feed.withLock { $0.hellos.last?.sessionToken } == [7])
        #expect(stage.server.feed.withLock { $0.hellos.last?.sync?.cursor?.seq } == 11)
        let kept = TableLocalStore(store: first.own)
        #expect(try kept.messages(of: Stage.room, limit: 9).map(\.seq) == [12])
    }

    @Test("a process that ended when it had stored the message keeps the next one from nothing")
    func storedAndNotClosed() async throws {
        let stage = try Stage()
        let own = MemoryStore(tables: LocalSchema.tables)
        let before = TableLocalStore(store: own)
        try before.saveSession(token: [7], user: "anna")
        _ = try before.applyHistory(HistoryChange(entries: [Stage.message(1)]))
        stage.server.publish(Stage.message(1), unread: 1)
        let peek = await Peeker(stage, own: own).peek(1)
        #expect(peek.notice?.body == "1")
        #expect(peek.badge == 1)
    }

    @Test("of a message that was read elsewhere or deleted it says that it is over")
    func over() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.message(1), unread: 1)
        stage.server.publish(Stage.message(2), unread: 2)
        stage.server.publish(Stage.readMark(through: 1, seq: 13), unread: 1)
        let read = await Peeker(stage).peek(1)
        #expect(read.isOver)
        #expect(read.badge == 1)
        stage.server.publish(
            Entry(
                seq: 14, conversation: Stage.room, object: MessageID(high: 0, low: 2).bytes,
                version: 14, body: .tombstone(TombstoneState(position: 2))), unread: 0)
        let deleted = await Peeker(stage).peek(2)
        #expect(deleted.isOver)
        #expect(deleted.notice == nil)
        #expect(deleted.badge == 0)
    }

    @Test("of alerts that came together each is looked at, and is over when it was read meanwhile")
    func together() async throws {
        let stage = try Stage()
        for number in 1...4 as ClosedRange<UInt64> {
            stage.server.publish(Stage.message(number, body: "text \(number)"), unread: 4)
        }
        let first = Peeker(stage)
        #expect(await first.peek(1).notice?.body == "text 1")
        let second = await Peeker(stage, own: first.own).peek(2)
        #expect(second.notice?.body == "text 2" && second.badge == 4 && !second.isOver)
        stage.server.publish(Stage.readMark(through: 3, seq: 15), unread: 1)
        let third = await Peeker(stage, own: first.own).peek(3)
        #expect(third.isOver && third.badge == 1)
        var edited = Stage.message(4, body: "better")
        (edited.seq, edited.version) = (16, 16)
        stage.server.publish(edited, unread: 1)
        let fourth = await Peeker(stage, own: first.own).peek(4)
        #expect(fourth.notice?.body == "better" && !fourth.isOver)
        // What came alone again is alone.
        stage.server.publish(Stage.message(7), unread: 2)
        #expect(await Peeker(stage, own: first.own).peek(7).notice?.body == "7")
        let kept = TableLocalStore(store: first.own)
        #expect(try kept.messages(of: Stage.room, limit: 9).map(\.seq) == [17])
    }

    @Test("where nothing is unread an alert of a message is over, be it here or not")
    func nothingUnread() async throws {
        let stage = try Stage()
        stage.server.publish(Stage.readMark(through: 9, seq: 11), unread: 0)
        #expect(await Peeker(stage).peek(1).isOver)
        let sale = await Peeker(stage).peeker.peek(
            MessageID(high: 0, low: 1), in: nil, within: 30_000)
        #expect(!sale.isOver)
    }

    @Test("an alert of what stands already is a repeat, whoever has shown it")
    func repeats() {
        let standing = ["m1", "m2"].map { DeliveredNotification(identifier: $0) }
        #expect(RouseExtension.isRepeat("m2", among: standing))
        #expect(!RouseExtension.isRepeat("m3", among: standing))
        #expect(!RouseExtension.isRepeat("m1", among: []))
    }

    @Test("what does not fit into the page is as the push says, the number too")
    func tooOld() async throws {
        let stage = try Stage()
        for number in 1...5 as ClosedRange<UInt64> {
            stage.server.publish(Stage.message(number), unread: UInt32(number))
        }
        stage.server.feed.withLock { $0.peeked = 2 }
        #expect(await Peeker(stage).peek(1) == Peek())
    }

    @Test("it answers in time, whatever the server does")
    func inTime() async throws {
        let stage = try Stage()
        stage.server.feed.withLock { $0.isSilent = true }
        let began = stage.clock.now
        let peeker = Peeker(stage).peeker
        let object = MessageID(high: 0, low: 1)
        let peek = Task { await peeker.peek(object, in: Stage.room, within: 30_000) }
        for await moment in stage.clock.asked where moment == began + 28_000 {
            stage.clock.advance(to: moment)
            break
        }
        #expect(await peek.value == Peek())
        // A connection that breaks is not waited for.
        let breaking = Task { await peeker.peek(object, in: Stage.room, within: 30_000) }
        for await moment in stage.clock.asked where moment > began + 28_000 { break }
        stage.server.hangUp()
        #expect(await breaking.value == Peek())
    }

    @Test("of a user who logged out it keeps nothing")
    func erased() async throws {
        let stage = try Stage()
        let peeker = Peeker(stage)
        stage.server.publish(Stage.message(1), unread: 1)
        #expect(await peeker.peek(1).notice != nil)
        let store = TableLocalStore(store: peeker.own)
        #expect(try store.load().sessionToken == [7])
        #expect(try !store.messages(of: Stage.room, limit: 9).isEmpty)
        try peeker.peeker.erase()
        let state = try store.load()
        #expect(state.sessionToken.isEmpty && state.user.isEmpty)
        #expect(try store.messages(of: Stage.room, limit: 9).isEmpty)
    }

    @Test("a locked phone, or a backend that does not vouch: as the push says")
    func locked() async throws {
        let stage = try Stage()
        let peeker = RouseExtension(
            configuration: ClientConfiguration(
                app: "chess", device: DeviceID(high: 5, low: 5), clientName: "test",
                clientVersion: "1"),
            transport: stage.server, clock: stage.clock, seed: 1,
            openStore: { throw LocalStoreError.unavailable("not unlocked") },
            openAppStore: { throw LocalStoreError.unavailable("not unlocked") },
            identity: { _ in nil })
        let peek = await peeker.peek(
            MessageID(high: 0, low: 1), in: Stage.room, within: 30_000)
        #expect(peek == Peek())
        #expect(stage.server.feed.withLock { $0.hellos }.isEmpty)
    }
}

import Feed
import MemoryStore
import Model
import Testing
import Wire

struct CursorTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)
    let conversation: ConversationID

    init() throws {
        world = try World()
        conversation = try world.converse(["anna", "bert"])
        try world.publish("one", to: conversation, from: "bert")
    }

    private func sync(
        _ session: SessionKey, _ frame: SyncFrame
    ) throws -> SyncedSession {
        let answer = try world.ask(
            .sync(SyncWrite(session: session, sync: frame, freshEpochHalf: 4711)))
        guard case .synced(let synced) = answer else { throw Unexpected(answer: answer) }
        return synced
    }

    @Test func withoutACursorTheFeedStartsAnew() throws {
        let opened = try world.login("anna", phone, sync: SyncFrame(applied: 3))
        #expect(opened.sync.reset == .noCursor)
        #expect(opened.sync.applied == 0)
        #expect(opened.sync.head == 4)
        #expect(opened.sync.epoch == (try world.page("anna").epoch))
        #expect(opened.sync.epoch.high == 77)
    }

    @Test func theDeviceIsTakenAtItsWord() throws {
        let opened = try world.login("anna", phone)
        #expect(opened.sync.reset == nil)
        func applied(_ seq: UInt64, _ told: UInt64) throws -> UInt64 {
            let cursor = Cursor(epoch: opened.sync.epoch, seq: seq)
            return try sync(opened.session, SyncFrame(cursor: cursor, applied: told)).applied
        }
        #expect(try applied(4, 4) == 4)
        // A restored phone.
        #expect(try applied(2, 2) == 2)
        // What is asked for again is not there.
        #expect(try applied(3, 4) == 3)
        #expect(try applied(4, 1) == 1)
    }

    @Test func aCursorOfAnotherHistoryIsReset() throws {
        let opened = try world.login("anna", phone)
        let other = Cursor(epoch: Epoch(high: 78, low: opened.sync.epoch.low), seq: 1)
        let synced = try sync(opened.session, SyncFrame(cursor: other, applied: 1))
        #expect(synced.reset == .epochChanged)
        #expect(synced.epoch == opened.sync.epoch)
        #expect(synced.applied == 0)
    }

    @Test("SYN-32: what was read in another history is not taken for this one's")
    func readsOfAnotherHistory() throws {
        let opened = try world.login("anna", phone)
        let other = Cursor(epoch: Epoch(high: 78, low: opened.sync.epoch.low), seq: 1)
        let read = ReadReceipt(conversation: conversation, through: 1)
        _ = try sync(opened.session, SyncFrame(cursor: other, applied: 1, reads: [read]))
        #expect(try world.all(ReadMarkRecord.self).isEmpty)
        let own = Cursor(epoch: opened.sync.epoch, seq: 1)
        _ = try sync(opened.session, SyncFrame(cursor: own, applied: 1, reads: [read]))
        #expect(try world.all(ReadMarkRecord.self).map(\.through) == [1])
    }

    @Test("P3: what a phone had stored beside its cursor is not there after it was restored")
    func storedBefore() throws {
        let opened = try world.login("anna", phone)
        func ranges() throws -> [UInt8]? {
            try world.all(DeviceRecord.self).first { $0.device == phone }?.storedRanges
        }
        let cursor = Cursor(epoch: opened.sync.epoch, seq: 2)
        _ = try sync(opened.session, SyncFrame(cursor: cursor, applied: 2))
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: opened.session, applied: 2,
                    ranges: [InclusiveRange(first: 4, last: 4)], completesSync: false)))
        #expect(try ranges()?.isEmpty == false)
        let older = Cursor(epoch: opened.sync.epoch, seq: 1)
        _ = try sync(opened.session, SyncFrame(cursor: older, applied: 1))
        #expect(try ranges()?.isEmpty == true)
    }

    /// What a reset of another epoch is told to wait, for one SYNC of each of `count` devices.
    private func waits(_ count: Int) throws -> [Milliseconds] {
        try (0..<count).map { number in
            let session = try world.login(
                "anna", DeviceID(high: 6, low: UInt64(number) + 1)
            ).session
            let other = Cursor(epoch: Epoch(high: 78, low: 5), seq: 1)
            return try sync(session, SyncFrame(cursor: other, applied: 1)).resetAfter
        }
    }

    @Test("SYN-26: some resets begin at once, each further one has a turn of its own")
    func resetsArePaced() throws {
        world.limits.resetBurst = 3
        world.limits.resetInterval = 100
        #expect(try waits(6) == [0, 0, 0, 100, 200, 300])
        // Other apps and first logins have nothing to do with it.
        let fresh = try world.login("anna", DeviceID(high: 7, low: 1)).session
        let first = try sync(fresh, SyncFrame(applied: 0))
        #expect(first.reset == .noCursor && first.resetAfter == 0)
        world.pass(450)
        #expect(try waits(3) == [0, 50, 150])
        world.pass(10_000)
        #expect(try waits(4) == [0, 0, 0, 100])
        // A clock that was set back holds nobody up.
        world.store.clock = Timestamp(milliseconds: 500_000)
        world.limits.resetWaitMax = 1_000
        #expect(try waits(1) == [0])
    }

    @Test("a restore voids cursors, tokens and every number of before")
    func restored() throws {
        let opened = try world.login("anna", phone)
        let cursor = Cursor(epoch: opened.sync.epoch, seq: 3)
        let head = opened.sync.head
        #expect(try world.all(SessionTokenRecord.self).count == 1)
        #expect(throws: StoreError.corrupt("the epoch drawn is the backup's own")) {
            try world.ask(.restore(epochHalf: 77))
        }
        #expect(
            try world.ask(.restore(epochHalf: 78))
                == .restored(users: 2, tokens: 1, consoleTokens: 0))
        #expect(try world.all(SessionTokenRecord.self).isEmpty)
        let synced = try sync(opened.session, SyncFrame(cursor: cursor, applied: 3))
        #expect(synced.reset == .epochChanged && synced.epoch.high == 78)
        #expect(synced.head == head + world.limits.restoreHeadStep)
        // What was acknowledged of the lost history covers nothing of this one.
        try world.publish("two", to: conversation, from: "bert")
        let lost = Acknowledge(
            session: opened.session, applied: head + 1000, completesSync: false)
        _ = try world.ask(.acknowledge(lost))
        let page = try world.page("anna", after: head + 1000)
        #expect(page.entries.map(\.seq) == [synced.head + 1])
    }

    @Test func aCursorAheadDrawsTheUsersEpochAnew() throws {
        let opened = try world.login("anna", phone)
        let ahead = Cursor(epoch: opened.sync.epoch, seq: 5)
        let message = world.message0("mine", to: conversation, world.fresh())
        let mutation = Mutation(number: 1, operation: .sendMessage(message))
        let synced = try sync(
            opened.session, SyncFrame(cursor: ahead, applied: 5, mutations: [mutation]))
        #expect(synced.reset == .cursorAhead)
        #expect(synced.epoch == Epoch(high: 77, low: 4711))
        // It waits until the device knows the epoch (SYN-33).
        #expect(synced.results.map(\.code) == [Code.unavailable.rawValue])
        #expect(synced.head == 4)
        let old = try sync(opened.session, SyncFrame(cursor: ahead, applied: 5))
        #expect(old.reset == .epochChanged)
    }

    @Test func anAckOnlyRaises() throws {
        let session = try world.login("anna", phone).session
        func acknowledge(_ applied: UInt64) throws -> StoreAnswer {
            try world.ask(
                .acknowledge(Acknowledge(session: session, applied: applied, completesSync: true)))
        }
        #expect(try acknowledge(3) == .acknowledged(head: 4))
        #expect(try acknowledge(2) == .acknowledged(head: 4))
        #expect(try acknowledge(5).refusal == .ackAhead)
        let key: [ColumnValue] = [.app(World.app), .text("anna"), .identifier(phone)]
        #expect(try world.record(DeviceRecord.self, key)?.applied == 3)
    }

    @Test func anExtensionOnlyPeeks() throws {
        let session = try world.login("anna", phone, role: .extension).session
        func refusal(_ frame: SyncFrame) throws -> Code? {
            try world.ask(.sync(SyncWrite(session: session, sync: frame, freshEpochHalf: 1)))
                .refusal
        }
        let mutation = Mutation(number: 1, operation: .forgetDevice(ForgetDevice()))
        #expect(try refusal(SyncFrame(mode: .advance)) == .forbidden)
        #expect(try refusal(SyncFrame(mode: .peek, mutations: [mutation])) == .forbidden)
        #expect(try refusal(SyncFrame(applied: 4, mode: .peek)) == nil)
        #expect(
            try world.ask(.mutate(Mutate(session: session, mutation: mutation))).refusal
                == .forbidden)
        let ack = Acknowledge(session: session, applied: 1, completesSync: false)
        #expect(try world.ask(.acknowledge(ack)).refusal == .forbidden)
        let key: [ColumnValue] = [.app(World.app), .text("anna"), .identifier(phone)]
        #expect(try world.record(DeviceRecord.self, key)?.applied == 0)
    }

    @Test func pagesEndAtTheLastEntryOrTheHead() throws {
        for size in 1...5 {
            try world.publish("more \(size)", to: conversation)
        }
        let head = try world.page("anna").head
        let whole = try world.page("anna")
        #expect(!whole.more && whole.to == head && whole.head == head)
        var after: UInt64 = 0
        var seen: [UInt64] = []
        repeat {
            let page = try world.page("anna", after: after, bytes: 1)
            #expect(page.entries.count == 1)
            #expect(page.from == after)
            #expect(page.to == page.entries.last?.seq)
            #expect(page.more == (page.to < head))
            seen += page.entries.map(\.seq)
            after = page.to
        } while after < head
        #expect(seen == Array(1...head))
        let empty = try world.page("anna", after: head)
        #expect(empty.entries.isEmpty && empty.to == head && !empty.more)
    }

    @Test func aPageKeepsItsBytes() throws {
        for number in 0..<20 {
            let text = String(repeating: "x", count: 100 * number)
            try world.publish(text, to: conversation, push: "y")
        }
        for bytes in [300, 1000, 4000, 16_384] {
            let page = try world.page("anna", bytes: bytes)
            let encoded = Delta(entries: page.entries).encoded.count
            #expect(page.entries.count == 1 || encoded <= bytes)
        }
        #expect(try world.page("anna", bytes: 16_384).entries.count > 10)
    }

    @Test("a page of messages with many small parts is a frame that a client takes (FRM-15)")
    func aPageKeepsTheElementsOfAFrame() throws {
        let parts = (0..<32).map { Part(mimeType: "a/b", content: [UInt8($0)]) }
        for _ in 0..<300 {
            let message = SendMessage(
                conversation: conversation, message: world.fresh(), parts: parts)
            try world.ask(
                .publish(
                    app: World.app, Publication(message: message, sender: ""), idempotency: nil))
        }
        let results = (1...256).map { MutationResult(number: $0) }
        let head = try world.page("anna").head
        var after: UInt64 = 0
        var pages = 0
        while after < head {
            let page = try world.page("anna", after: after, bytes: 248 << 10)
            var decoder = FrameDecoder(limits: .afterWelcome)
            decoder.append(Frame(.delta(Delta(entries: page.entries, results: results))).encoded)
            #expect(throws: Never.self) { try decoder.next() }
            #expect(page.to > after)
            after = page.to
            pages += 1
        }
        #expect(pages == 2)
    }
}

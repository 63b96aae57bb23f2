import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// What one frame, request or turn in the background costs the writer, in rows, at scales that
/// nobody's phone has. Above its ceiling a debug build stops; these say how far below they stay.
struct BoundedWorkTests {
    private let phone = DeviceID(high: 5, low: 1)

    /// Bob's phone without a session, unreachable, with so many messages above its `applied`.
    private func behind(by count: Int, isReachable: Bool = false) throws -> Pushes {
        let pushes = try Pushes()
        let room = try pushes.world.converse(["anna", "bob"])
        let opened = try pushes.open("bob", phone)
        try pushes.acknowledge(opened.session, try pushes.head("bob"))
        try pushes.end(opened.session, within: 0)
        try pushes.run(2_000)
        if !isReachable {
            try pushes.world.publish("0", to: room, from: "anna")
            try pushes.run(62_000)
            #expect(try pushes.view(phone).reachability == .unreachable)
        }
        for number in 0..<count {
            try pushes.world.publish("\(number)", to: room, from: "anna")
        }
        return pushes
    }

    private func alerts(_ pushes: Pushes) throws -> [AlertRecord] {
        try pushes.world.all(AlertRecord.self)
    }

    @Test("an ACK of 256 ranges over 2,000 entries looks at no entry twice")
    func manyRanges() throws {
        let pushes = try behind(by: 2_000, isReachable: true)
        let session = try pushes.open("bob", phone).session
        let head = try pushes.head("bob")
        let ranges = (0..<256).map { InclusiveRange(first: 10 + $0, last: head) }
        try pushes.acknowledge(session, 3, completes: false, ranges: ranges)
        #expect(pushes.world.rows.total < 1_100)
        #expect(try alerts(pushes).isEmpty)
        // Nothing is owed to the device but what the ranges leave out.
        try pushes.end(session, within: 0)
        let told = try pushes.run(66_000)
        #expect(told.count == 5)
        #expect(told.first == "silent")
        #expect(told.last == #"alert "5 (and 5 more)" badge 999 stored"#)
    }

    @Test("ranges of a device without a token are kept, and nothing else is written")
    func rangesWithoutToken() throws {
        let pushes = try Pushes()
        let room = try pushes.world.converse(["anna", "bob"])
        let session = try pushes.world.login("bob", phone).session
        for number in 0..<300 {
            try pushes.world.publish("\(number)", to: room, from: "anna")
        }
        let range = InclusiveRange(first: 4, last: try pushes.head("bob"))
        try pushes.acknowledge(session, 3, completes: false, ranges: [range])
        #expect(pushes.world.rows.written < 5)
        #expect(try alerts(pushes).isEmpty)
        try pushes.end(session, within: 0)
        // It registers a token later: what it has stored is not alerted of.
        let opened = try pushes.open("bob", phone)
        try pushes.end(opened.session, within: 0)
        #expect(try pushes.run(63_000) == [])
    }

    @Test("a device that comes with less than it acknowledged has lost its ranges, too")
    func restoredPhone() throws {
        let pushes = try behind(by: 2, isReachable: true)
        let first = try pushes.open("bob", phone)
        let head = try pushes.head("bob")
        try pushes.acknowledge(
            first.session, 4, completes: false,
            ranges: [InclusiveRange(first: head, last: head)])
        try pushes.end(first.session, within: 0)
        try pushes.run(2_000)
        let cursor = Cursor(epoch: first.sync.epoch, seq: 3)
        let again = try pushes.world.login(
            "bob", phone, push: Pushes.registration(),
            sync: SyncFrame(cursor: cursor, applied: 3, mode: .advance))
        try pushes.end(again.session, within: 0)
        let told = try pushes.run(63_000)
        #expect(told.contains { $0.hasPrefix(#"alert "1"#) }, "\(told)")
    }

    @Test("a device that nobody reaches has a bounded number of alert rows; the count is whole")
    func unreachable() throws {
        let pushes = try behind(by: 1_000)
        #expect(try alerts(pushes).count <= 260)
        #expect(pushes.world.rows.total < 100)
        // P4: the newest is named, and how many there are beside it.
        var told: [String] = []
        for _ in 0..<6 { told += try pushes.run(61_000) }
        #expect(told.last == #"alert "999 (and 1000 more)" badge 999 stored"#, "\(told)")
        // One ACK covers them all.
        let opened = try pushes.open("bob", phone)
        try pushes.acknowledge(opened.session, try pushes.head("bob"))
        #expect(pushes.world.rows.total < 700)
        #expect(try alerts(pushes).isEmpty)
        #expect(try pushes.world.all(WakeRecord.self).isEmpty)
    }

    @Test("alerts that were written before there was a bound are worked off in parts")
    func tenThousandAlerts() throws {
        let pushes = try behind(by: 1)
        let world = pushes.world
        let template = try #require(try alerts(pushes).last)
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<10_000 as Range<UInt64> {
                var row = template
                row.message = MessageID(high: 77, low: number)
                row.number = 0
                row.phase = .queued
                try transaction.put(row)
            }
        }
        let opened = try pushes.open("bob", phone)
        try pushes.acknowledge(opened.session, try pushes.head("bob"))
        #expect(world.rows.total < 3_000)
        // Logged out: the rest is nobody's, and goes with time.
        try world.expectDone(.removeDevice(World.app, UserID("bob"), phone))
        #expect(world.rows.total < 300)
        let left = try alerts(pushes).count
        #expect(left > 9_000)
        // A token comes: what is left goes with it, some at a time.
        let again = try pushes.open("bob", phone)
        #expect(world.rows.total < 2_500)
        #expect(try alerts(pushes).count <= left - 512)
        try pushes.end(again.session, within: 0)
        #expect(try pushes.run(63_000) == [])
    }

    @Test("receipts of a device far below an edit wait; one turn does not look through all above")
    func farBelowAnEdit() throws {
        let world = try World()
        let bob = try world.login("bob", phone).session
        let room = try world.converse(["anna", "bob"])
        let first = try world.publish("first", to: room, from: "anna")
        for number in 0..<3_000 { try world.publish("\(number)", to: room, from: "anna") }
        try world.edit(first.message, "edited")
        func acknowledge(_ applied: UInt64) throws {
            try world.ask(
                .acknowledge(
                    Acknowledge(session: bob, applied: applied, completesSync: false)))
            world.pass(3_000)
            try world.ask(.coalesceReceipts(users: 10))
        }
        try acknowledge(10)
        #expect(world.rows.total < 3_000)
        let told = { try world.page("anna").entries.map(\.word).filter { $0.hasPrefix("receipt") } }
        #expect(try told() == [])
        try acknowledge(try world.head("bob"))
        for _ in 0..<10 {
            world.pass(3_000)
            try world.ask(.coalesceReceipts(users: 10))
        }
        #expect(try told() == ["receipt bob 3001 0"])
    }

    @Test("a write takes 16 read receipts, however much each of them moves")
    func readReceipts() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let sessions = try (0..<32).map { number in
            try pushes.open(
                "bob", DeviceID(high: 5, low: UInt64(number)), token: UInt8(number)
            ).session
        }
        for session in sessions.dropFirst() { try pushes.end(session, within: 0) }
        let rooms = try (0..<17).map { _ in try world.converse(["anna", "bob"]) }
        for room in rooms {
            for number in 0..<50 { try world.publish("\(number)", to: room, from: "anna") }
        }
        try pushes.run(62_000)
        let reads = rooms.map { ReadReceipt(conversation: $0, through: 50) }
        func sync(_ count: Int) throws -> StoreAnswer {
            let frame = SyncFrame(
                cursor: nil, applied: 0, mode: .advance, reads: Array(reads.prefix(count)))
            return try world.ask(
                .sync(SyncWrite(session: sessions[0], sync: frame, freshEpochHalf: 5)))
        }
        #expect(try sync(17).refusal == .limit)
        guard case .synced = try sync(16) else { throw Unexpected(answer: .done) }
        #expect(world.rows.total < 16_384, "\(world.rows)")
    }
}

import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Objects of a page are read together where they lie together, and nobody sees a difference.
///
/// `World.read` compares every page of all tests with one whose objects are read one by one.
struct PageObjectTests {
    private let world: World

    init() throws { world = try World() }

    private func cost(
        _ user: String, after: UInt64 = 0, bytes: Int = 1 << 20, newestFirst: Bool = false
    ) throws -> (page: Page, calls: Int, rows: Int) {
        let query = PageQuery(
            app: World.app, user: UserID(user), device: DeviceID(high: 1, low: 1), after: after,
            bytes: bytes, newestFirst: newestFirst)
        var found: Page?
        var cost = (calls: 0, rows: 0)
        try world.store.read { snapshot throws(StoreError) in
            let counted = MeteredSnapshot(snapshot)
            if case .page(let page) = try Rules.read(
                .page(query), in: counted, now: world.now, limits: world.limits)
            {
                found = page
            }
            cost = (counted.calls, counted.rows)
        }
        return (try #require(found), cost.calls, cost.rows)
    }

    @Test("640 messages of one conversation take 15 scans of entries and as many of messages")
    func oneConversation() throws {
        let id = try world.converse(["anna", "ben"])
        for number in 0..<640 { try world.publish("\(number)", to: id, from: "ben") }
        for newestFirst in [false, true] {
            let (page, calls, rows) = try cost("anna", newestFirst: newestFirst)
            #expect(page.entries.count == 643 && !page.more)
            // User, epoch, alerts, unread; 11 chunks of entries; the first of them in 4 parts, the
            // others in one; the conversation and two participants by their keys; blocks, and the
            // own membership.
            #expect(calls <= 4 + 11 + 14 + 3 + 2, "\(calls) calls")
            // Each entry and each object once.
            #expect(rows <= 2 * 643 + 6, "\(rows) rows")
        }
    }

    @Test("messages of 20 conversations in turn: those of one that follow each other are one scan")
    func manyConversations() throws {
        let ids = try (0..<20).map { _ in try world.converse(["anna", "ben"]) }
        for number in 0..<1_000 {
            try world.publish("\(number)", to: ids[number % 20], from: "ben")
        }
        let (page, calls, rows) = try cost("anna")
        #expect(page.entries.count == 1_060 && !page.more)
        // One by one: 1,081.
        #expect(calls <= 470, "\(calls) calls")
        // Each entry, object and membership once.
        #expect(rows <= 2 * 1_060 + 25 + 20, "\(rows) rows")
    }

    @Test("participants and receipts of a group of 30 are read together")
    func group() throws {
        try world.tamper { transaction throws(StoreError) in
            var app = World.classic(createdAt: world.now)
            app.receiptParticipantsMax = 30
            try transaction.put(app)
        }
        let users = (0..<30).map { "member \($0)" }
        let id = try world.converse(users)
        try world.publish("x", to: id, from: "member 7")
        while case .progressed(_, true) = try world.ask(.continueFanOut(recipients: 256)) {}
        for user in users {
            let session = try world.login(user, DeviceID(high: 2, low: 2)).session
            try world.ask(
                .acknowledge(
                    Acknowledge(
                        session: session, applied: try world.head(user), reads: [],
                        completesSync: true)))
        }
        world.pass(10_000)
        for _ in 0..<50 { try world.ask(.coalesceReceipts(users: 64)) }
        let (page, calls, rows) = try cost("member 7")
        let receipts = page.entries.filter { if case .receipt = $0.body { true } else { false } }
        #expect(receipts.count == 29)
        #expect(page.entries.count == 61)
        #expect(calls < 30, "\(calls) calls")
        #expect(rows < 3 * page.entries.count, "\(rows) rows")
    }

    @Test("alerts of a device are read once, of few entries few, and mark the same entries")
    func alerts() throws {
        let id = try world.converse(["anna", "ben"])
        let device = DeviceID(high: 1, low: 1)
        let sent = try (0..<300).map { try world.publish("\($0)", to: id, from: "ben") }
        try world.tamper { transaction throws(StoreError) in
            for message in sent.prefix(200) {
                var alert = AlertRecord(
                    app: World.app, user: UserID("anna"), device: device,
                    message: message.message, conversation: id, position: message.position,
                    seq: message.position + 3, phase: .sent, openPosition: nil,
                    queuedAt: world.now,
                    expiresAt: world.now + 86_400_000)
                if message.position % 2 == 0 { alert.sentAt = world.now }
                try transaction.put(alert)
            }
        }
        let (page, calls, rows) = try cost("anna")
        #expect(page.entries.count == 303)
        for entry in page.entries {
            guard case .message(let state) = entry.body else { continue }
            #expect(entry.alerted == (state.position <= 200 && state.position % 2 == 0))
        }
        // 16 alerts at first and 16 looked for, then all; blocks, and the own membership.
        #expect(calls <= 4 + 5 + 8 + 3 + 17 + 2, "\(calls) calls")
        #expect(rows <= 2 * 303 + 5 + 200 + 32, "\(rows) rows")
        let (one, _, few) = try cost("anna", after: 100, bytes: 1)
        #expect(one.entries.count == 1 && few < 64 + 16 + 9, "\(few) rows")
        let all = try world.page("anna", device: device)
        #expect(all.entries == page.entries)
    }

    @Test("of a page that ends early, few objects are read for nothing")
    func shortPages() throws {
        let id = try world.converse(["anna", "ben"])
        let long = String(repeating: "x", count: 8_000)
        for _ in 0..<200 { try world.publish(long, to: id, from: "ben", push: "x") }
        var after: UInt64 = 3
        for bytes in [1, 20_000, 40_000, 100_000, 400_000] {
            let (page, _, rows) = try cost("anna", after: after, bytes: bytes)
            #expect(page.more)
            // A chunk of entries for each 64, and messages for the entries given and a few more.
            let entries = page.entries.count + 64
            #expect(rows <= 5 + entries + page.entries.count + 8, "\(bytes): \(rows) rows")
            after = page.to
        }
    }

    @Test("positions far apart cost no rows of what lies between")
    func gaps() throws {
        let id = try world.converse(["anna", "ben"])
        var sent: [MessageRecord] = []
        for number in 0..<120 { sent.append(try world.publish("\(number)", to: id, from: "ben")) }
        // Edited ones move to the end of the feed: every 10th, then pairs with one between.
        for number in stride(from: 0, to: 120, by: 10) + [41, 43, 45, 47] {
            let edit = EditMessage(
                message: sent[number].message,
                parts: [Part(mimeType: "text/plain", content: [65])], push: nil)
            #expect(
                try world.ask(.editMessage(app: World.app, edit, idempotency: nil)).refusal == nil)
        }
        let (page, _, rows) = try cost("anna", after: 123)
        #expect(page.entries.count == 16)
        // 12 + 4 entries and messages, and 3 between the pairs that are in a row.
        #expect(rows <= 5 + 16 + 16 + 4, "\(rows) rows")
    }

    /// Feeds of three people of three conversations under messages, edits, deletions, and rows
    /// that cannot be read, in pages of any size, both ways.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func samePages(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let people = ["anna", "ben", "carl"]
        let ids = try (0..<3).map { _ in try world.converse(people) }
        var sent: [MessageRecord] = []
        for number in 0..<150 {
            let id = ids[Int.random(in: 0..<3, using: &random)]
            let user = people[Int.random(in: 0..<3, using: &random)]
            switch Int.random(in: 0..<10, using: &random) {
            case 0 where !sent.isEmpty:
                let old = sent[Int.random(in: 0..<sent.count, using: &random)]
                let edit = EditMessage(
                    message: old.message,
                    parts: [Part(mimeType: "text/plain", content: [UInt8(number)])], push: nil)
                _ = try world.ask(.editMessage(app: World.app, edit, idempotency: nil))
            case 1 where !sent.isEmpty:
                try world.delete(sent[Int.random(in: 0..<sent.count, using: &random)].message)
            case 2 where number > 50: _ = try world.remove([user], from: id)
            case 3 where number > 50: _ = try world.add([user], to: id)
            default: sent.append(try world.publish("\(number)", to: id))
            }
        }
        let broken = sent[Int.random(in: 0..<sent.count, using: &random)].message
        let lost = sent[Int.random(in: 0..<sent.count, using: &random)].message
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(broken)]
            if var row = try transaction.row(MessageRecord.table, key: key, lock: .wait) {
                row[9] = .integer(-1)
                try transaction.put(MessageRecord.table, row)
            }
            try transaction.delete(MessageRecord.self, [.app(World.app), .identifier(lost)])
        }
        for user in people {
            _ = try world.peek(user)
            var after: UInt64 = 0
            var pages = 0
            repeat {
                let bytes = Int.random(in: 1...6_000, using: &random)
                let page = try world.page(user, after: after, bytes: bytes)
                #expect(page.to > after || !page.more)
                after = max(page.to, after + 1)
                pages += 1
            } while try after < world.head(user) && pages < 1_000
        }
    }
}

/// Counts statements, and the rows they look for or give.
private final class MeteredSnapshot: StoreSnapshot {
    private let inner: any StoreSnapshot
    private(set) var calls = 0
    private(set) var rows = 0

    init(_ inner: any StoreSnapshot) { self.inner = inner }

    func row(
        _ table: Table, key: [ColumnValue], lock: RowLock
    ) throws(StoreError) -> [ColumnValue]? {
        calls += 1
        rows += 1
        return try inner.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let found = try inner.rows(table, scan)
        calls += 1
        rows += max(1, found.count)
        return found
    }
}

/// A view in which nothing can be read ahead: each object of a page is read by its key.
final class PointReads: StoreSnapshot {
    private let base: any StoreSnapshot

    init(_ base: any StoreSnapshot) { self.base = base }

    func row(
        _ table: Table, key: [ColumnValue], lock: RowLock
    ) throws(StoreError) -> [ColumnValue]? {
        try base.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let ahead = [
            MessageRecord.table, ParticipantRecord.table, ReceiptRecord.table, AlertRecord.table,
        ]
        // What is unread is no object of a page.
        guard !ahead.contains(table) || scan.index == "participant_by_unread" else {
            throw .corrupt("read ahead")
        }
        return try base.rows(table, scan)
    }
}

import Feed
import MemoryStore
import Model
import Testing
import Wire

/// What one read may look at, counted in rows: nobody's data may hold up everybody's reads.
@Suite struct ReadBudgetTests {
    private static let anna = UserID("anna")
    let world: World
    let session: SessionKey

    init() throws {
        world = try World()
        session = try world.login("anna", DeviceID(high: 1, low: 1)).session
    }

    /// Reads one part; what it looked at is in `rows`, by table.
    private func part(
        _ query: StoreQuery, rows: inout [String: Int]
    ) throws -> PartialReading {
        var part = PartialReading.whole(.nothing)
        var counted: [String: Int] = [:]
        try world.store.read { snapshot throws(StoreError) in
            let counting = CountingSnapshot(snapshot)
            part = try Rules.readPart(query, in: counting, now: world.now, limits: world.limits)
            counted = counting.rows
        }
        rows = counted
        return part
    }

    private func sum(_ rows: [String: Int]) -> Int { rows.values.reduce(0, +) }

    /// A conversation where ben, whom anna blocks, sent all messages but the first.
    private func blockedConversation(messages: UInt64) throws -> ConversationID {
        let conversation = try world.converse(["anna", "ben"])
        try world.publish("before", to: conversation, from: "ben")
        let block = BlockUser(user: "ben", blocked: true)
        #expect(try world.mutate(session, 1, .blockUser(block)).code == 0)
        let model = try world.publish("hidden", to: conversation, from: "ben")
        try world.tamper { transaction throws(StoreError) in
            for position in 3...messages {
                var message = model
                message.message = MessageID(high: 77, low: position)
                message.position = position
                try transaction.put(message)
            }
            let key: [ColumnValue] = [.app(World.app), .identifier(conversation)]
            guard var record = try transaction.record(ConversationRecord.self, key, lock: .wait)
            else { throw .corrupt("no conversation") }
            record.position = messages
            try transaction.put(record)
        }
        return conversation
    }

    @Test("HIS-5, HIS-6: FETCH over 20,000 messages of a blocked user, page by page")
    func fetch() throws {
        let conversation = try blockedConversation(messages: 20_000)
        for ascending in [false, true] {
            var fetch = Fetch(conversation: conversation, ascending: ascending, limit: 20)
            if ascending { fetch.above = 1 }
            var found: [String] = []
            var covered: UInt64 = 0
            var pages = 0
            while true {
                var rows: [String: Int] = [:]
                let query = HistoryQuery.fetch(World.app, Self.anna, fetch, bytes: 65_536)
                guard
                    case .whole(.history(.page(let page))) = try part(.history(query), rows: &rows)
                else { throw Unexpected(answer: .done) }
                pages += 1
                #expect(sum(rows) < 3_500, "\(rows)")
                found += page.entries.map(\.word)
                covered += page.last - page.first + 1
                guard page.more else { break }
                if ascending { fetch.above = page.last } else { fetch.below = page.first }
            }
            #expect(found == (ascending ? [] : ["message 1"]))
            #expect(covered == (ascending ? 19_999 : 20_000), "positions left out, or twice")
            #expect(pages > 10)
        }
    }

    @Test("HIS-17: a SNAPSHOT stops looking for messages, and says from where it is complete")
    func snapshot() throws {
        let conversation = try blockedConversation(messages: 20_000)
        var rows: [String: Int] = [:]
        let query = HistoryQuery.snapshot(World.app, Self.anna, SnapshotFrame(), bytes: 65_536)
        guard
            case .whole(.history(.snapshotPage(let page))) = try part(.history(query), rows: &rows)
        else { throw Unexpected(answer: .done) }
        #expect(sum(rows) < 3_500, "\(rows)")
        let found = try #require(page.conversations.first { $0.conversation == conversation })
        #expect(found.completeFrom > 18_000 && found.completeFrom < 19_000)
        #expect(!found.entries.contains { $0.word.hasPrefix("message") })
        #expect(page.continuation.isEmpty)
    }

    /// All pages of a snapshot.
    private func snapshotPages() throws -> [(page: SnapshotPage, rows: Int)] {
        var pages: [(page: SnapshotPage, rows: Int)] = []
        var frame = SnapshotFrame()
        while true {
            var rows: [String: Int] = [:]
            let query = HistoryQuery.snapshot(World.app, Self.anna, frame, bytes: 65_536)
            guard
                case .whole(.history(.snapshotPage(let page))) = try part(
                    .history(query), rows: &rows)
            else { throw Unexpected(answer: .done) }
            pages.append((page, sum(rows)))
            guard !page.continuation.isEmpty, pages.count < 100 else { return pages }
            frame.continuation = page.continuation
        }
    }

    @Test("HIS-17: one page of a SNAPSHOT has one budget, however many conversations it holds")
    func snapshotOfBlocked() throws {
        var all: Set<ConversationID> = []
        for _ in 0..<8 {
            let conversation = try world.converse(["anna", "ben"])
            all.insert(conversation)
            try world.publish("before", to: conversation, from: "ben")
        }
        let block = BlockUser(user: "ben", blocked: true)
        #expect(try world.mutate(session, 1, .blockUser(block)).code == 0)
        for conversation in all {
            for number in 0..<60 { try world.publish("h\(number)", to: conversation, from: "ben") }
        }
        world.limits.skippedRows = 100
        let pages = try snapshotPages()
        #expect(pages.count >= 4)
        #expect(pages.allSatisfy { $0.rows < 700 }, "\(pages.map(\.rows))")
        let given = pages.flatMap(\.page.conversations)
        #expect(given.count == 8 && Set(given.compactMap(\.conversation)) == all)
        // None is cut because of what another one on its page was.
        #expect(given.allSatisfy { $0.completeFrom == 1 })
    }

    @Test("HIS-15: a SNAPSHOT passes over conversations out of reach page by page, to its end")
    func snapshotOfLeft() throws {
        let stays = try world.converse(["anna", "ben"])
        for number in UInt64(1)...300 {
            let conversation = try world.converse(["anna", "ben"])
            let end = Mutation.Operation.deleteConversation(
                DeleteConversation(conversation: conversation))
            #expect(try world.mutate(session, number, end).code == 0)
        }
        world.limits.skippedRows = 100
        let pages = try snapshotPages()
        #expect(pages.count >= 3)
        #expect(pages.allSatisfy { $0.rows < 800 }, "\(pages.map(\.rows))")
        #expect(pages.flatMap(\.page.conversations).map(\.conversation) == [stays])
        world.limits.snapshotConversations = 1
        _ = try world.converse(["anna", "ben"])
        let single = try snapshotPages().map(\.page.conversations.count)
        #expect(single.max() == 1 && single.reduce(0, +) == 2)
    }

    @Test("SYN-12: a peek passes over entries that are not for the user, up to a budget")
    func peek() throws {
        world.limits.skippedRows = 100
        let conversation = try world.converse(["anna", "ben"])
        for number in 0..<500 { try world.publish("m\(number)", to: conversation, from: "ben") }
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: conversation))
        #expect(try world.mutate(session, 1, end).code == 0)
        try world.publish("after", to: conversation, from: "ben")
        var rows: [String: Int] = [:]
        let query = PageQuery(
            app: World.app, user: Self.anna, device: session.device, after: 0, bytes: 65_536,
            newestFirst: true)
        guard case .whole(.page(let page)) = try part(.page(query), rows: &rows) else {
            throw Unexpected(answer: .done)
        }
        #expect(rows["entry", default: 0] <= 100 + 2 * 64, "\(rows)")
        #expect(page.more && page.to == page.from)
        #expect(page.entries.map(\.word).filter { $0.hasPrefix("message") } == ["message 501"])
    }

    @Test("a FETCH of one message reads few")
    func fetchOne() throws {
        let conversation = try world.converse(["anna", "ben"])
        for number in 0..<100 { try world.publish("m\(number)", to: conversation) }
        var rows: [String: Int] = [:]
        let fetch = Fetch(conversation: conversation, limit: 1)
        _ = try part(.history(.fetch(World.app, Self.anna, fetch, bytes: 65_536)), rows: &rows)
        #expect(rows["message"] == 2, "\(rows)")
    }

    @Test("SYN-11: a page passes over entries that are not for the user any more, up to a budget")
    func page() throws {
        world.limits.skippedRows = 100
        let conversation = try world.converse(["anna", "ben"])
        for number in 0..<500 { try world.publish("m\(number)", to: conversation, from: "ben") }
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: conversation))
        #expect(try world.mutate(session, 1, end).code == 0)
        try world.publish("after", to: conversation, from: "ben")
        var after: UInt64 = 0
        var words: [String] = []
        var pages = 0
        while true {
            var rows: [String: Int] = [:]
            let query = PageQuery(
                app: World.app, user: Self.anna, device: session.device, after: after, bytes: 65_536
            )
            guard case .whole(.page(let page)) = try part(.page(query), rows: &rows) else {
                throw Unexpected(answer: .done)
            }
            #expect(rows["entry", default: 0] <= 100 + 64, "\(rows)")
            #expect(page.from == after && page.to > after)
            pages += 1
            after = page.to
            words += page.entries.map(\.word)
            guard page.more else { break }
        }
        #expect(try after == world.head("anna") && pages >= 4)
        #expect(words.filter { $0.hasPrefix("message") } == ["message 501"])
    }

    // MARK: - DIGEST

    private func digest() throws -> HistoryQuery {
        let head = try world.head("anna")
        let epoch = try world.page("anna", after: head).epoch
        return .digest(World.app, Self.anna, DigestFrame(cursor: Cursor(epoch: epoch, seq: head)))
    }

    /// 120 conversations of five messages, and 100 users blocked.
    private func busyUser() throws {
        world.limits.digestPart = 100
        for number in 0..<120 {
            let conversation = try world.converse(["anna", "u\(number)"])
            for message in 0..<5 { try world.publish("m\(message)", to: conversation) }
        }
        for number in UInt64(1)...100 {
            let block = BlockUser(user: "x\(number)", blocked: true)
            #expect(try world.mutate(session, number, .blockUser(block)).code == 0)
        }
    }

    @Test("HIS-29: a DIGEST over many conversations and blocks is read in parts")
    func digestInParts() throws {
        try busyUser()
        let query = StoreQuery.history(try digest())
        var next = query
        var parts = 0
        var result: DigestResult?
        while result == nil {
            var rows: [String: Int] = [:]
            switch try part(next, rows: &rows) {
            case .rest(let rest): next = rest
            case .whole(.history(.digest(let whole))): result = whole
            case .whole: throw Unexpected(answer: .done)
            }
            parts += 1
            #expect(sum(rows) < 700, "\(rows)")
            #expect(rows["block", default: 0] <= 100, "blocks are read once")
        }
        #expect(parts > 5)
        #expect(result?.conversations?.count == 120 && result?.messages?.count == 600)
        world.limits.digestPart = 100_000
        #expect(try world.read(query) == .history(.digest(result ?? DigestResult())))
    }

    @Test("HIS-29: what changes between two parts makes the digest say nothing")
    func digestOvertaken() throws {
        try busyUser()
        var rows: [String: Int] = [:]
        guard case .rest(let rest) = try part(.history(try digest()), rows: &rows) else {
            throw Unexpected(answer: .done)
        }
        let conversation = try #require(try world.all(ConversationRecord.self).first)
        try world.publish("new", to: conversation.conversation)
        guard case .history(.digest(let result)) = try world.read(rest) else {
            throw Unexpected(answer: .done)
        }
        #expect(!result.comparable && result.conversations == nil)
    }

    @Test("a DIGEST that passes over thousands of messages has parts, and an end")
    func digestOfBlocked() throws {
        world.limits.digestPart = 500
        _ = try blockedConversation(messages: 5_000)
        let query = StoreQuery.history(try digest())
        var next = query
        var parts = 0
        search: while true {
            var rows: [String: Int] = [:]
            let found = try part(next, rows: &rows)
            parts += 1
            #expect(sum(rows) < 2_000, "\(rows)")
            switch found {
            case .rest(let rest): next = rest
            case .whole(let reading):
                guard case .history(.digest(let result)) = reading else { break search }
                #expect(result.comparable && result.messages?.count == 1)
                break search
            }
        }
        #expect(parts > 5)
        world.limits.digestMessages = 1_000
        guard case .history(.digest(let result)) = try world.read(query) else {
            throw Unexpected(answer: .done)
        }
        #expect(!result.comparable)
    }
}

/// Counts the rows it gives, and looks for, by table.
private final class CountingSnapshot: StoreSnapshot {
    private let inner: any StoreSnapshot
    private(set) var rows: [String: Int] = [:]

    init(_ inner: any StoreSnapshot) { self.inner = inner }

    func row(
        _ table: Table, key: [ColumnValue], lock: RowLock
    ) throws(StoreError) -> [ColumnValue]? {
        rows[table.name, default: 0] += 1
        return try inner.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let found = try inner.rows(table, scan)
        rows[table.name, default: 0] += max(1, found.count)
        return found
    }
}

import Feed
import Foundation
import Model
import PostgresPeer
import PostgresStore
import Testing
import Wire

/// The server's rules where several nodes carry them out at once on one PostgreSQL server.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresRulesTests {
    private static let app = AppID("chess")
    private static let users = (0..<8).map { "user-\($0)" }

    private static func open(_ schema: String) throws -> PostgresStore {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        return try PostgresStore(
            tables: Schema.tables, lockRanks: Schema.lockRanks, options: options)
    }

    private static func conversation(_ number: Int) -> ConversationID {
        ConversationID(high: 1, low: UInt64(number))
    }

    private static func answers(
        _ requests: [StoreRequest], on store: PostgresStore
    ) throws -> [StoreAnswer] {
        try store.commit(requests).map { try $0.get().answer }
    }

    private static func publish(
        _ message: MessageID, to conversation: ConversationID
    ) -> StoreRequest {
        .publish(
            app: app,
            Publication(
                message: SendMessage(
                    conversation: conversation, message: message,
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "line")), sender: ""),
            idempotency: nil)
    }

    /// One node's share: groups of publishes to all conversations, until each was answered.
    ///
    /// - Returns: how often a group met another node's and was tried again by the caller.
    private static func serve(
        _ node: UInt64, groups: Int, rooms: Int, in schema: String
    ) throws -> Int {
        let store = try open(schema)
        defer { store.close() }
        var conflicts = 0
        var number: UInt64 = 0
        for _ in 0..<groups {
            // The other node takes them in the other order.
            let order = node % 2 == 0 ? Array(0..<rooms) : Array((0..<rooms).reversed())
            var left = order.map { room in
                number += 1
                return publish(
                    MessageID(high: 10 + node, low: number), to: conversation(room))
            }
            while !left.isEmpty {
                do throws(StoreError) {
                    let results = try store.commit(left)
                    left = zip(left, results).compactMap { request, result in
                        if case .success = result { return nil }
                        conflicts += 1
                        return request
                    }
                } catch {
                    guard case .conflict = error else { throw error }
                    conflicts += 1
                }
            }
        }
        return conflicts
    }

    @Test("what several nodes publish at once has each its place, in every feed and conversation")
    func concurrentPublishes() async throws {
        let schema = "rules_publish"
        let (nodes, groups, rooms) = (3, 15, 4)
        let store = try Self.open(schema)
        defer { store.close() }
        _ = try Self.answers(
            [
                .start(boot: BootID(high: 1, low: 1), epochHalf: 7),
                .administer(.putApp(AppRecord(app: Self.app, createdAt: store.now()))),
            ]
                + (0..<rooms).map { room in
                    .createConversation(
                        app: Self.app,
                        CreateConversation(
                            conversation: Self.conversation(room), participants: Self.users),
                        idempotency: nil)
                }, on: store)
        try await withThrowingTaskGroup(of: Int.self) { group in
            for node in 0..<nodes {
                group.addTask {
                    try Self.serve(UInt64(node), groups: groups, rooms: rooms, in: schema)
                }
            }
            for try await _ in group {}
        }
        while case .progressed(_, more: true)? = try Self.answers(
            [.continueFanOut(recipients: 512)], on: store
        ).first {}
        let messages = try store.records(MessageRecord.self)
        #expect(messages.count == nodes * groups * rooms)
        for room in 0..<rooms {
            let positions = messages.filter { $0.conversation == Self.conversation(room) }
                .map(\.position).sorted()
            #expect(positions == Array(1...UInt64(nodes * groups)))
        }
        let entries = try store.records(EntryRecord.self)
        for user in try store.records(UserRecord.self) {
            let own = entries.filter { $0.user == user.user }
            #expect(own.map(\.seq) == Array(1...user.head), "\(user.user)")
            // In each conversation the feed has the order of the positions.
            for room in 0..<rooms {
                let places = own.filter {
                    $0.conversation == Self.conversation(room) && $0.kind == .message
                }.map(\.position)
                #expect(places == Array(1...UInt64(nodes * groups)), "\(user.user), \(room)")
            }
        }
        for member in try store.records(ParticipantRecord.self) {
            #expect(member.unread == UInt64(nodes * groups), "\(member.user)")
        }
    }
}

extension PostgresStore {
    /// Every row of the table.
    fileprivate func records<R: Record>(_ type: R.Type) throws -> [R] {
        var rows: [[ColumnValue]] = []
        try read { snapshot throws(StoreError) in
            rows = try snapshot.rows(R.table, Scan(limit: .max))
        }
        return try rows.map { try R(row: $0) }
    }
}

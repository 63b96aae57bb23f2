import Feed
import Model
import Testing
import Wire

/// What a backend is given of what a user wrote.
struct WrittenReadTests {
    private let world: World

    init() throws { world = try World() }

    private func piece(
        by user: String, after: WrittenPlace? = nil, limit: Int = 100, bytes: Int = 1 << 20
    ) throws -> (texts: [String], next: WrittenPlace?) {
        let query = BackendQuery.written(
            UserID(user), after: after, limit: limit, bytes: bytes)
        let reading = try world.read(.backend(World.app, query))
        guard case .backend(.written(let all, let next)) = reading else {
            throw Unexpected(answer: .done)
        }
        let texts = try all.map { message in
            let part = try MessageState(encoded: message.parts).parts.first
            return String(decoding: part?.content ?? [], as: UTF8.self)
        }
        return (texts, next)
    }

    /// All pieces.
    private func written(by user: String, limit: Int, bytes: Int = 1 << 20) throws -> [[String]] {
        var pieces: [[String]] = []
        var after: WrittenPlace?
        for _ in 0..<200 {
            let piece = try piece(by: user, after: after, limit: limit, bytes: bytes)
            pieces.append(piece.texts)
            guard let next = piece.next else { return pieces }
            #expect(next != after, "it goes on")
            after = next
        }
        return pieces
    }

    /// MSG-53: a new user of the name wrote nothing of what stands of the one before.
    @Test func whatStandsOfADeletedUserIsNoneOfTheNewOnes() throws {
        let room = try world.converse(["anna", "bert"])
        try world.publish("old", to: room, from: "anna")
        try world.ask(.deleteUser(app: World.app, UserID("anna"), idempotency: nil))
        while try !world.all(UserDeletionRecord.self).isEmpty {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 100))
        }
        world.pass(1_000)
        #expect(try world.add(["anna"], to: room).refusal == nil)
        #expect(try piece(by: "anna").texts == [])
        try world.delete(try world.publish("gone", to: room, from: "anna").message)
        try world.publish("new", to: room, from: "anna")
        #expect(try piece(by: "anna").texts == ["new", ""])
    }

    @Test func itIsListedByConversationNewestFirst() throws {
        let rooms = try (0..<3).map { _ in try world.converse(["anna", "bert"]) }.sorted()
        for (number, room) in rooms.enumerated() {
            for text in ["1", "2", "3"] {
                try world.publish("\(number).\(text)", to: room, from: "anna")
                try world.publish("other", to: room, from: "bert")
                try world.publish("the app's", to: room)
            }
        }
        let all = (0..<3).flatMap { room in ["3", "2", "1"].map { "\(room).\($0)" } }
        for limit in [1, 2, 4, 100] {
            let pieces = try written(by: "anna", limit: limit)
            #expect(pieces.flatMap { $0 } == all, "\(limit)")
            #expect(pieces.allSatisfy { $0.count <= limit })
        }
        #expect(try written(by: "anna", limit: 100).count == 1)
        let nobody = BackendQuery.written(UserID("nobody"), after: nil, limit: 2, bytes: 100)
        #expect(try world.read(.backend(World.app, nobody)) == .nothing)
    }

    @Test func whatOneHasLeftIsTheOwnStill() throws {
        let left = try world.converse(["anna", "bert"])
        try world.publish("before", to: left, from: "anna")
        let gone = try world.publish("gone", to: left, from: "anna").message
        try world.delete(gone)
        try world.remove(["anna"], from: left)
        #expect(try written(by: "anna", limit: 100) == [["", "before"]])
        let ended = try world.converse(["anna", "bert"])
        try world.publish("ended", to: ended, from: "anna")
        try world.end(ended)
        #expect(try written(by: "anna", limit: 100) == [["", "before"]])
    }

    @Test func aPieceIsBoundedByWhatIsLookedAt() throws {
        let room = try world.converse(["anna", "bert"])
        try world.publish("first", to: room, from: "anna")
        for number in 1...100 { try world.publish("\(number)", to: room, from: "bert") }
        world.limits.listRows = 20
        let pieces = try written(by: "anna", limit: 10)
        #expect(pieces.flatMap { $0 } == ["first"])
        #expect(pieces.count == 6 && pieces.dropLast().allSatisfy(\.isEmpty))
        world.limits.listRows = 1000
        let small = try written(by: "anna", limit: 10, bytes: 16)
        #expect(small.flatMap { $0 } == ["first"])
        #expect(small.count > 2, "content of others counts, too")
    }

    @Test func soIsAUserOfManyConversations() throws {
        for _ in 0..<30 { try world.converse(["anna", "bert"]) }
        let room = try world.converse(["anna"])
        try world.publish("one", to: room, from: "anna")
        world.limits.listRows = 8
        let pieces = try written(by: "anna", limit: 8)
        #expect(pieces.flatMap { $0 } == ["one"] && pieces.count > 3)
    }

    @Test func oneMessageIsAlwaysGiven() throws {
        let room = try world.converse(["anna"])
        for text in ["a long one", "another long one"] {
            try world.publish(text, to: room, from: "anna")
        }
        let pieces = try written(by: "anna", limit: 10, bytes: 1)
        #expect(pieces.filter { !$0.isEmpty } == [["another long one"], ["a long one"]])
    }
}

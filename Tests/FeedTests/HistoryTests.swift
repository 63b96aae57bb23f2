import Feed
import Model
import Testing
import Wire

/// FETCH, SNAPSHOT, peek and DIGEST over a store (history.md).
@Suite struct HistoryTests {
    let world: World
    let conversation: ConversationID

    /// anna and ben, and ten messages of ben's.
    init() throws {
        world = try World()
        try world.login("anna", DeviceID(high: 1, low: 1))
        conversation = try world.converse(["anna", "ben"])
        for number in 1...10 { try world.publish("m\(number)", to: conversation, from: "ben") }
    }

    private func ask(_ fetch: Fetch, as user: String = "anna", bytes: Int = 1 << 16) throws
        -> HistoryReading
    {
        guard
            case .history(let reading) = try world.read(
                .history(.fetch(World.app, UserID(user), fetch, bytes: bytes)))
        else { throw Unexpected(answer: .done) }
        return reading
    }

    private func page(
        _ fetch: Fetch, as user: String = "anna", bytes: Int = 1 << 16
    ) throws -> PageFrame {
        guard case .page(let page) = try ask(fetch, as: user, bytes: bytes) else {
            throw Unexpected(answer: .done)
        }
        return page
    }

    private func snapshot(
        _ user: String = "anna", messages: UInt32 = 0, after continuation: [UInt8] = [],
        bytes: Int = 1 << 16
    ) throws -> SnapshotPage {
        let frame = SnapshotFrame(messages: messages, continuation: continuation)
        guard
            case .history(.snapshotPage(let page)) = try world.read(
                .history(.snapshot(World.app, UserID(user), frame, bytes: bytes)))
        else { throw Unexpected(answer: .done) }
        return page
    }

    private func words(_ page: PageFrame) -> String {
        page.entries.map(\.word).joined(separator: ", ")
            + " [\(page.first)-\(page.last)\(page.more ? " more" : "")/\(page.position)]"
    }

    // MARK: - FETCH

    @Test("MSG-24: an id merged into another's asks for that conversation; for its participants")
    func alias() throws {
        let own: ConversationID = world.fresh()
        let asked: ConversationID = world.fresh()
        for id in [own, asked] {
            _ = try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(
                        conversation: id, participants: ["anna", "ben"], distinct: true),
                    idempotency: nil))
        }
        try world.publish("here", to: own, from: "ben")
        #expect(words(try page(Fetch(conversation: asked))) == "message 1 [1-1/1]")
        let state = try page(Fetch(conversation: asked, object: asked.bytes))
        #expect(state.entries.map(\.conversation).allSatisfy { $0 == own })
        #expect(!state.entries.isEmpty)
        let message = try #require(try page(Fetch(conversation: own)).entries.first)
        #expect(
            words(try page(Fetch(conversation: asked, object: message.object)))
                == "message 1 [1-1/1]")
        #expect(try ask(Fetch(conversation: asked), as: "zoe").isRefused(.notFound))
    }

    @Test("HIS-5, HIS-6: windows, both ways, and the positions they are complete for")
    func windows() throws {
        let newest = Fetch(conversation: conversation, limit: 2)
        #expect(words(try page(newest)) == "message 10, message 9 [9-10 more/10]")
        let older = Fetch(conversation: conversation, below: 9, limit: 2)
        #expect(words(try page(older)) == "message 8, message 7 [7-8 more/10]")
        let last = Fetch(conversation: conversation, below: 3, limit: 9)
        #expect(words(try page(last)) == "message 2, message 1 [1-2/10]")
        let rising = Fetch(
            conversation: conversation, above: 3, below: 9, ascending: true, limit: 2)
        #expect(words(try page(rising)) == "message 4, message 5 [4-5 more/10]")
        let middle = Fetch(conversation: conversation, above: 3, below: 6, ascending: true)
        #expect(words(try page(middle)) == "message 4, message 5 [4-5/10]")
        let none = Fetch(conversation: conversation, above: 10)
        #expect(words(try page(none)) == " [0-0/10]")
        // A page is bounded by bytes too, but never without anything.
        let small = try page(Fetch(conversation: conversation), bytes: 1)
        #expect(words(small) == "message 10 [10-10 more/10]")
        #expect(try page(newest).entries.allSatisfy { $0.seq == 0 })
    }

    @Test("HIS-4: only what was sent since the user takes part")
    func reach() throws {
        #expect(try world.add(["kim"], to: conversation) != .done)
        try world.publish("m11", to: conversation)
        let all = Fetch(conversation: conversation)
        // There is nothing below for kim: whoever goes on asking has an end.
        #expect(words(try page(all, as: "kim")) == "message 11 [1-11/11]")
        let below = Fetch(conversation: conversation, below: 5)
        #expect(words(try page(below, as: "kim")) == " [1-4/11]")
        let between = Fetch(conversation: conversation, above: 3, ascending: true)
        #expect(words(try page(between, as: "kim")) == "message 11 [4-11/11]")
        let early = try #require(try page(all).entries.last)
        #expect(early.word == "message 1")
        let object = Fetch(object: early.object)
        #expect(try ask(object, as: "kim") == .refused(.notFound, detail: "no such object"))
        #expect(words(try page(object)) == "message 1 [1-1/11]")
    }

    @Test("HIS-8: nor is one given by its id that its user deleted, or that a block kept away")
    func notInTheFeed() throws {
        let session = try world.login("anna", DeviceID(high: 1, low: 1)).session
        let refusal = HistoryReading.refused(.notFound, detail: "no such object")
        let deleted = try world.publish("11", to: conversation, from: "ben").message
        let hide = Mutation.Operation.deleteMessage(DeleteMessage(message: deleted))
        #expect(try world.mutate(session, 1, hide).code == 0)
        let block = Mutation.Operation.blockUser(BlockUser(user: "ben", blocked: true))
        #expect(try world.mutate(session, 2, block).code == 0)
        let kept = try world.publish("12", to: conversation, from: "ben").message
        for message in [deleted, kept] {
            #expect(try ask(Fetch(object: message.bytes)) == refusal)
            #expect(try page(Fetch(object: message.bytes), as: "ben").entries.count == 1)
        }
    }

    @Test("a conversation has the version by which the feed last told of it")
    func versionOfOneThatCameBack() throws {
        let session = try world.login("anna", DeviceID(high: 1, low: 1)).session
        let clear = DeleteConversation(conversation: conversation)
        #expect(try world.mutate(session, 1, .deleteConversation(clear)).code == 0)
        try world.publish("back", to: conversation, from: "ben")
        func version(_ entries: [Entry]?) -> UInt64? {
            entries?.last { $0.word == "conversation" }?.version
        }
        let told = try #require(version(try world.page("anna").entries))
        #expect(told > 1)
        #expect(version(try snapshot().conversations.first?.entries) == told)
        #expect(version(try page(Fetch(object: conversation.bytes)).entries) == told)
    }

    @Test("MSG-1, HIS-8: no message takes a conversation's place for those who take part in it")
    func sameID() throws {
        let eve = try world.login("eve", DeviceID(high: 1, low: 9)).session
        let own = try world.converse(["eve", "zoe"])
        let id = MessageID(conversation.bytes)
        let parts = [Part(mimeType: "text/plain", content: [1])]
        let send = SendMessage(conversation: own, message: id, parts: parts)
        #expect(try world.mutate(eve, 1, .sendMessage(send)).code == 0)
        let asked = Fetch(object: conversation.bytes)
        #expect(try page(asked).entries.first?.word.hasPrefix("conversation") == true)
        #expect(words(try page(asked, as: "zoe")) == "message 1 [1-1/1]")
        let named = Fetch(conversation: own, object: conversation.bytes)
        #expect(words(try page(named, as: "zoe")) == "message 1 [1-1/1]")
        // Nor a conversation a message's.
        let message = try #require(try page(Fetch(conversation: conversation)).entries.last)
        let create = CreateConversation(
            conversation: ConversationID(message.object), participants: ["anna"])
        #expect(
            try world.mutate(eve, 2, .createConversation(create)).code == Code.forbidden.rawValue)
        let anna = try world.login("anna", DeviceID(high: 1, low: 1)).session
        #expect(
            try world.mutate(anna, 1, .createConversation(create)).code == Code.idInUse.rawValue)
    }

    @Test("HIS-3: out of reach and absent are told alike")
    func nothingIsTold() throws {
        let refusal = HistoryReading.refused(.notFound, detail: "no such object")
        let absent = ConversationID(high: 8, low: 8)
        #expect(try ask(Fetch(conversation: absent)) == refusal)
        #expect(try ask(Fetch(conversation: conversation), as: "eve") == refusal)
        #expect(try ask(Fetch(object: conversation.bytes), as: "eve") == refusal)
        #expect(try ask(Fetch(object: absent.bytes), as: "anna") == refusal)
        let message = try #require(try page(Fetch(conversation: conversation)).entries.first)
        #expect(try ask(Fetch(object: message.object), as: "eve") == refusal)
        // A message is not in a conversation it is not in.
        #expect(try ask(Fetch(conversation: absent, object: message.object)) == refusal)
        #expect(try ask(Fetch()).isRefused(.missingField))
    }

    @Test("MSG-27: what a blocked user sent is not in history either, what came before is")
    func blockedMessages() throws {
        let session = try world.login("anna", DeviceID(high: 1, low: 1)).session
        let block = BlockUser(user: "ben", blocked: true)
        #expect(try world.mutate(session, 1, .blockUser(block)).code == 0)
        try world.publish("hidden", to: conversation, from: "ben")
        try world.publish("shown", to: conversation)
        let window = Fetch(conversation: conversation, limit: 2)
        #expect(words(try page(window)) == "message 12, message 10 [10-12 more/12]")
        #expect(words(try page(window, as: "ben")) == "message 12, message 11 [11-12 more/12]")
        #expect(
            try snapshot().conversations.first?.entries.map(\.word).contains("message 11") == false)
        #expect(try snapshot().entries.map(\.word) == ["block ben"])
    }

    @Test("HIS-8: a conversation with its participants, paged, and how far each got")
    func participants() throws {
        let fetch = Fetch(object: conversation.bytes, receipts: true)
        #expect(
            try page(fetch).entries.map(\.word) == [
                "conversation", "participant anna", "participant ben",
            ])
        let device = DeviceID(high: 1, low: 1)
        let session = try world.login("anna", device).session
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: try world.head("anna"),
                    reads: [ReadReceipt(conversation: conversation, through: 4)],
                    completesSync: true)))
        world.pass(10_000)
        while case .progressed(_, true) = try world.ask(.coalesceReceipts(users: 8)) {}
        #expect(
            try page(fetch).entries.map(\.word) == [
                "conversation", "read 4", "participant anna", "receipt anna 10 4",
                "participant ben",
            ])
        let first = try page(fetch, bytes: 1)
        #expect(
            first.entries.map(\.word) == [
                "conversation", "read 4", "participant anna", "receipt anna 10 4",
            ])
        #expect(first.more)
        var next = fetch
        next.after = "anna"
        #expect(try page(next).entries.map(\.word) == ["participant ben"])
    }

    // MARK: - SNAPSHOT

    private func shape(_ page: SnapshotPage) -> [String] {
        page.conversations.map { conversation in
            let messages = conversation.entries.compactMap { entry in
                if case .message(let state) = entry.body { "\(state.position)" } else { nil }
            }
            let name = conversation.conversation.map { "\($0.low)" } ?? "none"
            return "\(name): \(messages.joined(separator: " ")) from \(conversation.completeFrom)"
        }
    }

    @Test("HIS-14: newest first, each with its last messages")
    func snapshotOrder() throws {
        let second = try world.converse(["anna", "kim"])
        let third = try world.converse(["anna"])
        try world.publish("a", to: second, from: "kim")
        try world.publish("m11", to: conversation, from: "ben")
        try world.publish("m12", to: conversation, from: "ben")
        let page = try snapshot(messages: 3)
        #expect(
            shape(page) == [
                "\(conversation.low): 10 11 12 from 10", "\(second.low): 1 from 1",
                "\(third.low):  from 1",
            ])
        #expect(page.continuation.isEmpty)
        #expect(page.start?.seq == (try world.head("anna")))
        let first = try #require(page.conversations.first)
        #expect(first.unread == 12)
        #expect(first.participantsComplete)
        #expect(
            first.entries.map(\.word) == [
                "conversation", "participant anna", "participant ben", "message 10",
                "message 11", "message 12",
            ])
    }

    @Test("HIS-16: paged to its end it holds every conversation, also those that move meanwhile")
    func snapshotPagesHoldEverything() throws {
        var conversations = [conversation]
        for _ in 0..<12 { conversations.append(try world.converse(["anna", "ben"])) }
        let start = try world.head("anna")
        var seen: [ConversationID] = []
        var continuation: [UInt8] = []
        var pages = 0
        repeat {
            let page = try snapshot(messages: 2, after: continuation, bytes: 900)
            seen += page.conversations.compactMap(\.conversation)
            #expect(page.start?.seq == start)
            continuation = page.continuation
            pages += 1
            // The last ones in the order move to its front before they were given; then one that
            // was given already, and a new one.
            if pages == 1 {
                try world.publish("up", to: conversations[0], from: "ben")
                try world.publish("up", to: conversations[1], from: "ben")
            }
            if pages == 2 {
                try world.publish("up", to: seen[0], from: "ben")
                conversations.append(try world.converse(["anna", "kim"]))
            }
        } while !continuation.isEmpty && pages < 50
        #expect(pages > 3)
        #expect(Set(seen) == Set(conversations))
        #expect(seen.first == conversations[12])
    }

    @Test("HIS-16: a snapshot of a user for whom everything moves for ever comes to an end")
    func snapshotOfABusyUserEnds() throws {
        world.limits.snapshotNewerPages = 5
        var conversations = [conversation]
        for _ in 0..<6 { conversations.append(try world.converse(["anna", "ben"])) }
        var continuation: [UInt8] = []
        var pages = 0
        repeat {
            let page = try snapshot(messages: 2, after: continuation, bytes: 900)
            continuation = page.continuation
            pages += 1
            for each in conversations { try world.publish("up", to: each, from: "ben") }
        } while !continuation.isEmpty && pages < 50
        #expect((6...12).contains(pages), "\(pages)")
    }

    @Test("HIS-17: a message too large for the page is given alone, and the rest is said to lack")
    func snapshotCuts() throws {
        let large = String(repeating: "x", count: 5_000)
        try world.publish(large, to: conversation, push: "x")
        try world.publish(large, to: conversation, push: "x")
        let second = try world.converse(["anna"])
        let page = try snapshot(bytes: 2_000)
        #expect(shape(page) == ["\(second.low):  from 1"])
        let next = try snapshot(after: page.continuation, bytes: 2_000)
        #expect(shape(next) == ["\(conversation.low): 12 from 12"])
        #expect(next.continuation.isEmpty)
    }

    @Test("HIS-17: of a large conversation the user and the senders")
    func largeConversation() throws {
        let users = (10..<50).map { "u\($0)" }
        let large = try world.converse(users + ["anna"])
        try world.publish("hello", to: large, from: "u30")
        let found = try #require(try snapshot().conversations.first)
        #expect(found.conversation == large)
        #expect(!found.participantsComplete)
        #expect(
            found.entries.map(\.word) == [
                "conversation", "participant anna", "participant u30", "message 1",
            ])
    }

    @Test("HIS-18: a continuation is checked, and good on any server of the same history")
    func continuations() throws {
        for _ in 0..<9 { try world.converse(["anna", "ben"]) }
        let page = try snapshot(bytes: 500)
        #expect(page.continuation.count == 35)
        func refusal(_ bytes: [UInt8]) throws -> HistoryReading? {
            let frame = SnapshotFrame(continuation: bytes)
            let reading = try world.read(
                .history(.snapshot(World.app, UserID("anna"), frame, bytes: 100)))
            if case .history(let history) = reading { return history }
            return nil
        }
        #expect(try refusal([1, 2, 3])?.isRefused(.malformed) == true)
        var other = page.continuation
        other[0] = 9
        #expect(try refusal(other)?.isRefused(.malformed) == true)
        other = page.continuation
        other[5] ^= 1
        #expect(try refusal(other)?.isRefused(.epochChanged) == true)
        other = page.continuation
        other[17] = 0x7F
        #expect(try refusal(other)?.isRefused(.epochChanged) == true)
        // Whatever bound it names, it is the user's own conversations that are given.
        other = page.continuation
        for index in 26..<34 { other[index] = 0xFF }
        #expect(try refusal(other)?.isRefused(.malformed) == false)
        #expect(try refusal(page.continuation)?.isRefused(.malformed) == false)
    }

    @Test("a conversation in front has its place in the order already")
    func frontIsCheap() throws {
        let before = try world.all(ParticipantRecord.self)
        let places = before.map(\.activity)
        for _ in 0..<5 { try world.publish("more", to: conversation, from: "ben") }
        #expect(try world.all(ParticipantRecord.self).map(\.activity) == places)
        let second = try world.converse(["anna"])
        try world.publish("more", to: conversation, from: "ben")
        let moved = try world.all(ParticipantRecord.self).filter {
            $0.conversation == conversation && !places.contains($0.activity)
        }
        #expect(moved.map(\.user) == [UserID("anna")])
        #expect(
            shape(try snapshot(messages: 1)).map { $0.prefix(4) } == [
                "\(conversation.low)".prefix(4), "\(second.low)".prefix(4),
            ])
    }

    // MARK: - Peek

    @Test("SYN-12: newest first, above the cursor only")
    func peek() throws {
        func peek(_ after: UInt64, bytes: Int) throws -> Page {
            let query = PageQuery(
                app: World.app, user: UserID("anna"), device: DeviceID(high: 1, low: 1),
                after: after, bytes: bytes, newestFirst: true)
            guard case .page(let page) = try world.read(.page(query)) else {
                throw Unexpected(answer: .done)
            }
            return page
        }
        let head = try world.head("anna")
        let some = try peek(0, bytes: 500)
        #expect(some.entries.first?.seq == head)
        #expect(some.entries.map(\.seq) == some.entries.map(\.seq).sorted(by: >))
        #expect(some.more)
        #expect(some.from == 0 && some.to == 0 && some.head == head)
        let all = try peek(head - 2, bytes: 1 << 16)
        #expect(all.entries.map(\.word) == ["message 10", "message 9"])
        #expect(!all.more)
        #expect(all.unread == 10)
        #expect(try peek(head, bytes: 100).entries.isEmpty)
    }

    // MARK: - Unread

    @Test("SYN-27: the badge is on the last page")
    func unread() throws {
        #expect(try world.page("anna").unread == 10)
        #expect(try world.page("anna", bytes: 300).unread == 0)
        #expect(try world.page("ben").unread == 0)
    }

    // MARK: - DIGEST

    private func digest(
        _ user: String = "anna", at cursor: Cursor? = nil, positions: UInt32 = 0
    ) throws -> DigestResult {
        let page = try world.page(user)
        let at = cursor ?? Cursor(epoch: page.epoch, seq: page.head)
        let frame = DigestFrame(cursor: at, positions: positions)
        guard
            case .history(.digest(let result)) = try world.read(
                .history(.digest(World.app, UserID(user), frame)))
        else { throw Unexpected(answer: .done) }
        return result
    }

    /// The sums of a client that applied the feed from its start.
    private func sums(_ user: String, positions: Int) throws -> [DigestSum] {
        var conversations = DigestSum()
        var marks = DigestSum()
        var messages = DigestSum()
        var byConversation: [ConversationID: [Entry]] = [:]
        for entry in try world.page(user).entries {
            let id = entry.conversation?.bytes ?? []
            switch entry.body {
            case .conversationState:
                conversations.add(.conversation, id: id, version: entry.version)
            case .readMark: marks.add(.readMark, id: id, version: entry.version)
            case .message:
                byConversation[try #require(entry.conversation), default: []].append(entry)
            default: break
            }
        }
        for entries in byConversation.values {
            for entry in entries.suffix(positions) {
                messages.add(.message, id: entry.object, version: entry.version)
            }
        }
        return [conversations, marks, messages]
    }

    @Test("HIS-30: the sums are those of the feed; they change with every object")
    func digests() throws {
        let second = try world.converse(["anna", "ben"])
        for number in 1...60 { try world.publish("s\(number)", to: second, from: "ben") }
        for positions in [0, 7, 50] as [UInt32] {
            let result = try digest(positions: positions)
            #expect(result.comparable)
            let expected = try sums("anna", positions: positions == 0 ? 50 : Int(positions))
            #expect([result.conversations, result.readMarks, result.messages] == expected)
        }
        #expect(try digest().messages?.count == 60)
        #expect(try digest().conversations?.count == 2)
        let before = try digest()
        let session = try world.login("anna", DeviceID(high: 1, low: 1)).session
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: 0,
                    reads: [ReadReceipt(conversation: second, through: 4)], completesSync: false)))
        let after = try digest()
        #expect(after.readMarks?.count == 1)
        #expect(after.messages == before.messages)
        #expect(
            [after.conversations, after.readMarks, after.messages]
                == (try sums("anna", positions: 50)))
    }

    @Test("HIS-32: another cursor, or changes on their way, say nothing")
    func incomparable() throws {
        let page = try world.page("anna")
        let behind = Cursor(epoch: page.epoch, seq: page.head - 1)
        #expect(try digest(at: behind).comparable == false)
        #expect(try digest(at: behind).messages == nil)
        let other = Cursor(epoch: Epoch(high: 1, low: 1), seq: page.head)
        #expect(try digest(at: other).comparable == false)
        world.limits.directRecipients = 1
        try world.publish("late", to: conversation)
        #expect(try digest().comparable == false)
        try world.finishFanOut()
        #expect(try digest().comparable)
        world.limits.digestConversations = 0
        #expect(try digest().comparable == false)
    }

    @Test(
        "HIS-29: nor do memberships that begin and end, before the feed tells",
        arguments: ["leaves", "joins", "ends", "comes back"])
    func membershipOnItsWay(_ what: String) throws {
        let others = (1...9).map { "user\($0)" }
        let second = try world.converse(["ben"] + others + (what == "joins" ? [] : ["zoe"]))
        let session = try world.login("zoe", DeviceID(high: 9, low: 9)).session
        if what == "comes back" {
            try world.publish("first", to: second, from: "ben")
            let delete = DeleteConversation(conversation: second)
            #expect(try world.mutate(session, 1, .deleteConversation(delete)).code == 0)
        }
        #expect(try digest("zoe").comparable)
        world.limits.directRecipients = 1
        switch what {
        case "leaves": try world.remove(["zoe"], from: second)
        case "joins": try world.add(["zoe"], to: second)
        case "ends": try world.end(second)
        default: try world.publish("again", to: second, from: "ben")
        }
        let during = try digest("zoe")
        #expect(!during.comparable && during.conversations == nil)
        try world.finishFanOut()
        #expect(try digest("zoe").comparable)
    }

    @Test(
        "HIS-31: golden hashes",
        arguments: [
            (DigestKind.conversation, UInt8(1), UInt64(1), UInt64(0xBEEE_9A15_BBC0_BF84)),
            (.readMark, 2, 3, 0x9D08_C5FB_9901_8A42),
            (.message, 0xFF, .max, 0x9AD2_59FE_98CB_671A),
        ])
    func goldenHashes(_ kind: DigestKind, _ byte: UInt8, _ version: UInt64, _ hash: UInt64) {
        let id = [UInt8](repeating: byte, count: 16)
        #expect(DigestSum.hash(kind, id: id, version: version) == hash)
    }
}

extension HistoryReading {
    func isRefused(_ code: Code) -> Bool {
        if case .refused(let found, _) = self { return found == code }
        return false
    }
}

import Crypto
import Model
import Wire

extension Conformance {
    static let historyCases = fetchCases + snapshotCases + snapshotContentCases + digestCases

    private static func fetch(_ device: Device, _ body: Fetch) throws -> PageFrame {
        let request = device.request()
        try device.peer.send(.fetch(body), request: request)
        return try device.peer.expect(.page, request: request)
    }

    private static func positions(_ entries: [Entry]) -> [UInt64] {
        entries.compactMap { entry in
            if case .message(let message) = entry.body { message.position } else { nil }
        }
    }

    /// The id of the first message that came.
    private static func firstMessage(_ replica: Replica) -> [UInt8] {
        for entry in replica.log {
            if case .message = entry.body { return entry.object }
        }
        return []
    }

    private static func stocked(
        _ t: Trial, messages: Int, bytes: Int = 20
    ) throws -> (Device, Device, ConversationID) {
        let (anna, ben, conversation) = try t.pair()
        try settingUp("messages") {
            let filler = String(repeating: "h", count: bytes)
            for number in 0..<messages { try anna.say("\(number + 1) \(filler)", in: conversation) }
            for device in [anna, ben] {
                try device.pump(until: "messages") {
                    $0.messages(in: conversation).count == messages
                }
            }
        }
        return (anna, ben, conversation)
    }

    // MARK: - FETCH

    private static let fetchCases: [ConformanceCase] = [
        .must(
            "history.window",
            "a window comes newest first, or rising, complete between first and "
                + "last",
            [
                "HIS-1: MUST answer with one PAGE, or ERROR, with the same request number",
                "HIS-5", "HIS-6: MUST be in it",
            ], bytes: true
        ) { t in
            let (_, ben, conversation) = try stocked(t, messages: 9)
            let newest = try fetch(ben, Fetch(conversation: conversation, limit: 4))
            try requireEqual(positions(newest.entries), [9, 8, 7, 6], "positions")
            try requireEqual(newest.first, 6, "first")
            try requireEqual(newest.last, 9, "last")
            try requireEqual(newest.more, true, "more")
            try requireEqual(newest.position, 9, "position of the newest message")
            let rising = try fetch(
                ben,
                Fetch(conversation: conversation, above: 2, below: 6, ascending: true))
            try requireEqual(positions(rising.entries), [3, 4, 5], "positions")
            try require(rising.first <= 3 && rising.last >= 5, "complete from 3 to 5")
            try requireEqual(rising.more, false, "more")
            let none = try fetch(ben, Fetch(conversation: conversation, above: 9))
            try requireEqual(none.first, 0, "first of an empty window")
            try requireEqual(none.last, 0, "last of an empty window")
        },
        .must(
            "history.tombstone", "a deleted message stands in its page as a tombstone, and counts",
            ["HIS-24: MUST hold its `Tombstone` at its position"]
        ) { t in
            let (anna, ben, conversation) = try stocked(t, messages: 3)
            let deleted = try settingUp("a deletion") {
                for message in anna.replica.log where positions([message]) == [2] {
                    let result = try anna.mutate(
                        .deleteMessage(
                            DeleteMessage(
                                message: MessageID(message.object), forEveryone: true)))
                    guard result.code == 0 else { throw CaseEnd.failed("refused \(result.code)") }
                    return message.object
                }
                throw CaseEnd.failed("no message at position 2")
            }
            let page = try fetch(ben, Fetch(conversation: conversation, limit: 2))
            try requireEqual(page.entries.count, 2, "entries, of at most 2")
            try requireEqual(page.entries.last?.object, deleted, "the second entry")
            guard case .tombstone(let state) = page.entries.last?.body else {
                throw CaseEnd.failed("the deleted message is no tombstone")
            }
            try requireEqual(state.position, 2, "position of the tombstone")
            try requireEqual(page.first, 2, "first")
        },
        .must(
            "history.seq", "entries of a PAGE have seq 0 and move no cursor",
            ["HIS-2: MUST have `seq` 0"]
        ) { t in
            let (_, ben, conversation) = try stocked(t, messages: 2)
            let page = try fetch(ben, Fetch(conversation: conversation))
            try require(page.entries.allSatisfy { $0.seq == 0 }, "an entry with a seq")
            let delta = try ben.syncAnswer()
            try requireEqual(delta.from, ben.cursor, "from")
        },
        .must(
            "history.out-of-reach", "what is out of reach is answered like what is not there",
            [
                "HIS-3: MUST be answered alike, with ERROR 4004", "CON-13",
                "HIS-3: MUST be answered 4002",
            ]
        ) { t in
            let carl = try t.device(of: t.user("carl"))
            let (anna, _, conversation) = try stocked(t, messages: 1)
            let message =
                firstMessage(anna.replica)
            let own: ConversationID = t.newID()
            for body in [
                Fetch(conversation: conversation), Fetch(conversation: own),
                Fetch(object: conversation.bytes), Fetch(object: own.bytes),
                Fetch(object: message), Fetch(object: own.bytes),
            ] {
                let request = carl.request()
                try carl.peer.send(.fetch(body), request: request)
                let error = try carl.peer.expectError(.notFound, request: request)
                try requireEqual(error.retry, .none, "retry class")
            }
            let request = carl.request()
            try carl.peer.send(.fetch(Fetch()), request: request)
            try carl.peer.expectError(.missingField, request: request)
        },
        .must(
            "history.joined", "messages from before the joining are out of reach",
            [
                "HIS-4", "MSG-4: MUST NOT see others",
                "HIS-6: a page MUST go down to 1, or to `above`",
            ]
        ) { t in
            let (anna, _, conversation) = try stocked(t, messages: 3)
            let carl = try t.device(of: t.user("carl"))
            try settingUp("carl joins") {
                try does(
                    anna, "add",
                    .addParticipants(
                        AddParticipants(conversation: conversation, users: [carl.user])))
                try anna.say("for carl", in: conversation)
                try carl.pump(until: "the message") { !$0.messages(in: conversation).isEmpty }
            }
            let page = try fetch(carl, Fetch(conversation: conversation))
            try requireEqual(positions(page.entries), [4], "positions")
            try requireEqual(page.first, 1, "first, where nothing is within reach below")
            let rising = try fetch(
                carl, Fetch(conversation: conversation, above: 1, ascending: true))
            try requireEqual(rising.first, 2, "first, above 1")
            let old =
                firstMessage(anna.replica)
            let request = carl.request()
            try carl.peer.send(.fetch(Fetch(object: old)), request: request)
            try carl.peer.expectError(.notFound, request: request)
        },
        .must(
            "history.object",
            "an object by its id: a message, or a conversation with what belongs "
                + "to it",
            ["HIS-7: PAGE MUST hold that message", "HIS-8: PAGE MUST hold the conversation"]
        ) { t in
            let (anna, ben, conversation) = try stocked(t, messages: 2)
            try settingUp("what belongs to a conversation") {
                if !t.lacks("MSG-25") {
                    try does(
                        anna, "metadata",
                        .changeMetadata(
                            ChangeMetadata(
                                conversation: conversation,
                                changes: [MetadataChange(path: ["name"], value: "x")])))
                }
                if !t.lacks("MSG-26") {
                    try does(
                        ben, "mute",
                        .muteConversation(
                            MuteConversation(conversation: conversation, muted: true)))
                }
                var frame = ben.syncFrame
                frame.reads = [ReadReceipt(conversation: conversation, through: 1)]
                ben.apply(try ben.syncAnswer(frame))
                try ben.pump(until: "the metadata") { replica in
                    t.lacks("MSG-25")
                        || replica.objects.values.contains { entry in
                            if case .metadata = entry.body { true } else { false }
                        }
                }
            }
            guard
                let message = ben.replica.log.first(where: {
                    if case .message = $0.body { true } else { false }
                })
            else { throw CaseEnd.inconclusive("no message") }
            let one = try fetch(ben, Fetch(object: message.object))
            try requireEqual(one.entries.map(\.object), [message.object], "objects")
            try requireEqual(one.entries.first?.body, message.body, "body")
            let request = ben.request()
            try ben.peer.send(
                .fetch(Fetch(conversation: t.newID(), object: message.object)), request: request)
            try ben.peer.expectError(.notFound, request: request)
            let whole = try fetch(ben, Fetch(object: conversation.bytes))
            let users = whole.entries.compactMap { entry in
                if case .participant(let state) = entry.body { state.user } else { nil }
            }
            try requireEqual(users, [anna.user, ben.user].sorted(), "participants")
            let own = ben.replica.entries(of: conversation).map { FeedObject($0) }
                .filter { $0.kind != .message && $0.kind != .receipt }
            let given = whole.entries.map { FeedObject($0) }
            for object in own where !given.contains(object) {
                throw CaseEnd.failed("no \(object.name)")
            }
            try requireEqual(given.count, own.count, "entries")
        },
        .must(
            "history.same-id", "a message's id and a conversation's are told apart",
            [
                "HIS-7: a conversation MUST NOT be created with the id of a message",
                "HIS-8: PAGE MUST hold the conversation",
            ]
        ) { t in
            let (anna, ben, conversation) = try stocked(t, messages: 2)
            let eve = try t.device(of: t.user("eve"))
            let taken = try eve.mutate(
                .createConversation(
                    CreateConversation(
                        conversation: ConversationID(firstMessage(anna.replica)),
                        participants: [t.user("fay")])))
            try requireEqual(taken.code, Code.forbidden.rawValue, "the code")
            let own = try settingUp("a conversation") {
                try eve.createConversation(with: [t.user("fay")])
            }
            // Whether it is refused or not, it takes nothing from those who see the conversation.
            _ = try eve.mutate(
                .sendMessage(
                    SendMessage(
                        conversation: own, message: MessageID(conversation.bytes),
                        parts: [Part(mimeType: "text/plain", content: [1])])))
            let whole = try fetch(ben, Fetch(object: conversation.bytes))
            let users = whole.entries.compactMap { entry in
                if case .participant(let state) = entry.body { state.user } else { nil }
            }
            try requireEqual(users, [anna.user, ben.user].sorted(), "participants")
        },
        .must(
            "history.extension", "an extension may send none of FETCH, SNAPSHOT and DIGEST",
            ["HIS-11: MUST NOT send FETCH, SNAPSHOT or DIGEST"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(
                of: anna.user, id: anna.id, role: .extension, isSynced: false)
            let bodies: [FrameBody] = [
                .fetch(Fetch(conversation: t.newID())), .snapshot(SnapshotFrame()),
                .digest(DigestFrame(cursor: anna.cursor)),
            ]
            for (index, body) in bodies.enumerated() {
                try beside.peer.send(body, request: UInt16(90 + index))
                try beside.peer.expectError(.forbidden, request: UInt16(90 + index))
            }
        },
        .must(
            "history.many", "every FETCH of many at once gets one answer: PAGE, or ERROR 4006",
            [
                "HIS-12: MUST NOT have more than 4 FETCH, SNAPSHOT and DIGEST together without an",
                "HIS-1: MUST answer with one PAGE, or ERROR, with the same request number",
                "HIS-12: the server MUST answer what is too much with ERROR 4006",
            ]
        ) { t in
            let (_, ben, conversation) = try stocked(t, messages: 2)
            var bytes: [UInt8] = []
            let requests = 700..<740 as Range<UInt16>
            for request in requests {
                bytes += Frame(.fetch(Fetch(conversation: conversation)), request: request).encoded
            }
            try ben.peer.send(bytes: bytes)
            var waiting = Set(requests)
            while !waiting.isEmpty {
                guard let arrival = try ben.peer.next(), case .frame(let frame) = arrival else {
                    throw CaseEnd.failed("\(waiting.count) FETCHes were not answered")
                }
                switch frame.body {
                case .page: break
                case .error(let error):
                    try requireEqual(error.code, Code.limit.rawValue, "ERROR")
                case .syncRequest, .ping: continue
                default: throw CaseEnd.failed("\(frame.summary) came")
                }
                try require(
                    waiting.remove(frame.request) != nil,
                    "request \(frame.request) was answered twice")
            }
            try ben.peer.expectAlive()
        },
    ]

    // MARK: - SNAPSHOT

    private static func snapshot(_ device: Device, _ body: SnapshotFrame) throws -> SnapshotPage {
        let request = device.request()
        try device.peer.send(.snapshot(body), request: request)
        return try device.peer.expect(.snapshotPage, request: request)
    }

    private static let snapshotCases: [ConformanceCase] = [
        .must(
            "history.snapshot-reset",
            "who takes snapshots gets a reset without entries, and no "
                + "DELTA until the cursor can be continued",
            [
                "HIS-13: MUST answer such a SYNC with a DELTA that has `reset`",
                "HIS-13: MUST NOT push DELTAs to it until it comes with a SYNC whose cursor",
            ]
        ) { t in
            let (anna, ben, conversation) = try stocked(t, messages: 2)
            let fresh = Device(trial: t, user: ben.user, id: t.newID(), role: .app)
            fresh.features = ["live", "snapshot"]
            try settingUp("login") { try fresh.logIn() }
            try require(
                fresh.welcome.features.contains("snapshot"), "WELCOME does not name `snapshot`")
            let delta = try fresh.syncAnswer(SyncFrame(mode: .advance))
            try requireEqual(delta.reset?.reason, .noCursor, "reason")
            try requireEqual(delta.entries.count, 0, "entries")
            try requireEqual(delta.from?.seq, 0, "from")
            try requireEqual(delta.to?.seq, 0, "to")
            try settingUp("a message") { try anna.say("new", in: conversation) }
            for frame in fresh.peer.passed + (try fresh.peer.frames(during: .milliseconds(400))) {
                if case .delta = frame.body { throw CaseEnd.failed("\(frame.summary) came") }
            }
        },
        .must(
            "history.snapshot",
            "a snapshot holds every conversation once read to its end, newest "
                + "first, and the feed goes on above its start",
            [
                "HIS-17", "HIS-2: MUST have `seq` 0", "HIS-14: MUST name it on every page",
                "HIS-16: MUST be on at least one page",
                "HIS-37: MUST name in `unread`",
            ]
        ) { t in
            let (anna, ben, first) = try stocked(t, messages: 3)
            let others = try settingUp("more conversations") {
                var made: [ConversationID] = []
                for number in 0..<4 {
                    let conversation = try anna.createConversation(with: [ben.user])
                    try anna.say("in \(number)", in: conversation)
                    made.append(conversation)
                }
                try ben.pump(until: "conversations") { replica in
                    made.allSatisfy { !replica.messages(in: $0).isEmpty }
                }
                return made
            }
            let fresh = Device(trial: t, user: ben.user, id: t.newID(), role: .app)
            fresh.features = ["snapshot"]
            try settingUp("login") { try fresh.logIn() }
            _ = try fresh.syncAnswer(SyncFrame(mode: .advance))
            var seen: [ConversationID] = []
            var page = SnapshotPage(continuation: [0])
            var next: [UInt8] = []
            var start: Cursor?
            repeat {
                page = try snapshot(fresh, SnapshotFrame(pageBytes: 1, continuation: next))
                if let start { try requireEqual(page.start, start, "start on a later page") }
                start = page.start
                next = page.continuation
                try requireEqual(page.unread, next.isEmpty ? 7 : nil, "unread, of the icon")
                try require(next.count <= 64, "a continuation of \(next.count) bytes")
                for one in page.conversations {
                    if let id = one.conversation, !seen.contains(id) { seen.append(id) }
                    try require(one.entries.allSatisfy { $0.seq == 0 }, "an entry with a seq")
                }
                try require(seen.count < 50, "no end")
            } while !next.isEmpty
            try requireEqual(seen, Array(others.reversed()) + [first], "conversations")
            fresh.cursor = start
            let delta = try fresh.syncAnswer()
            try require(delta.reset == nil, "a reset above the start")
            try requireEqual(delta.from, start, "from")
        },
        .must(
            "history.continuation",
            "a continuation is good on another connection; garbage is 4000, one of another epoch "
                + "3001",
            [
                "HIS-18: MUST be taken on any connection of the user",
                "HIS-18: MUST be answered 4000", "HIS-18: one of another epoch 3001",
            ]
        ) { t in
            let (anna, ben, _) = try stocked(t, messages: 1)
            try settingUp("conversations") {
                for _ in 0..<3 {
                    let conversation = try anna.createConversation(with: [ben.user])
                    try anna.say("x", in: conversation)
                }
            }
            let page = try settingUp("a page") { try snapshot(ben, SnapshotFrame(pageBytes: 1)) }
            try require(!page.continuation.isEmpty, "four conversations in a page of one byte")
            let other = try t.device(of: ben.user)
            let second = try snapshot(
                other, SnapshotFrame(pageBytes: 1, continuation: page.continuation))
            try requireEqual(second.start, page.start, "start")
            let request = other.request()
            try other.peer.send(
                .snapshot(SnapshotFrame(continuation: Random.bytes(7))), request: request)
            try other.peer.expectError(.malformed, request: request)
            guard let cursor = other.cursor else { throw CaseEnd.inconclusive("no cursor") }
            let ahead = Cursor(epoch: cursor.epoch, seq: cursor.seq + 1_000)
            let reset = try other.syncAnswer(SyncFrame(cursor: ahead, applied: ahead.seq))
            try require(reset.to?.epoch != cursor.epoch, "a cursor above the head, and no epoch")
            let late = other.request()
            try other.peer.send(
                .snapshot(SnapshotFrame(pageBytes: 1, continuation: page.continuation)),
                request: late)
            try other.peer.expectError(.epochChanged, request: late)
        },
    ]

    // MARK: - DIGEST

    /// HIS-31, by its text.
    static func digestHash(kind: UInt8, id: [UInt8], version: UInt64) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        let bytes =
            [kind] + id
            + stride(from: 56, through: 0, by: -8).map { shift in
                UInt8(truncatingIfNeeded: version >> UInt64(shift))
            }
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }

    /// The sums of HIS-30 over what a device holds.
    static func sums(_ replica: Replica) -> [DigestSum] {
        var sums = [DigestSum(), DigestSum(), DigestSum()]
        func add(_ kind: UInt8, _ id: [UInt8], _ version: UInt64) {
            let hash = digestHash(kind: kind, id: id, version: version)
            let index = Int(kind) - 1
            sums[index].count += 1
            sums[index].hash &+= hash
        }
        for entry in replica.objects.values {
            switch entry.body {
            case .conversationState: add(1, entry.conversation?.bytes ?? [], entry.version)
            case .readMark: add(2, entry.conversation?.bytes ?? [], entry.version)
            case .message: add(3, entry.object, entry.version)
            default: break
            }
        }
        return sums
    }

    private static let digestCases: [ConformanceCase] = [
        .must(
            "history.digest", "the sums of a device that is in sync are the server's",
            ["HIS-30", "HIS-31", "HIS-29: MUST answer DIGEST_RESULT"]
        ) { t in
            let (anna, ben, conversation) = try stocked(t, messages: 4)
            try settingUp("a read mark") {
                var frame = ben.syncFrame
                frame.reads = [ReadReceipt(conversation: conversation, through: 3)]
                ben.apply(try ben.syncAnswer(frame))
                try ben.syncToHead()
            }
            _ = anna
            var result = DigestResult()
            // Not comparable while something is on its way.
            for _ in 0..<20 where !result.comparable {
                try ben.syncToHead()
                let own = sums(ben.replica)
                let request = ben.request()
                try ben.peer.send(
                    .digest(
                        DigestFrame(
                            cursor: ben.cursor, conversations: own[0], readMarks: own[1],
                            messages: own[2])), request: request)
                result = try ben.peer.expect(.digestResult, request: request)
                if !result.comparable { _ = try ben.peer.frames(during: .milliseconds(300)) }
            }
            try require(result.comparable, "never comparable")
            try requireEqual(result.cursor, ben.cursor, "cursor")
            let own = sums(ben.replica)
            try requireEqual(own[0].count, 1, "conversations held")
            try requireEqual(own[2].count, 4, "messages held")
            try requireEqual(result.conversations, own[0], "conversations")
            try requireEqual(result.readMarks, own[1], "read marks")
            try requireEqual(result.messages, own[2], "messages")
        }
    ]
}

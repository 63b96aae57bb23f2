import Model
import Wire

// sync.md: how a client follows its feed.
let clientSyncCases: [ClientCase] = [
    .must(
        "sync.client-ack", "what a client has stored it acknowledges, and no more",
        [
            "SYN-14: the client MUST send ACK with its new `applied`", "SYN-8",
            "SYN-6: MUST NOT present a cursor beyond",
        ]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        for number in 1...8 { trial.feed.say("line \(number)", in: conversation) }
        try trial.tell("foreground")
        let link = try trial.accept()
        link.answersSyncs = false
        // Not live: each page is asked for.
        try link.logIn(features: [])
        var sent: UInt64 = 0
        while sent < trial.feed.head {
            try link.pump(until: "SYNC from \(sent)") { link in
                link.syncs.contains { ($0.frame.cursor?.seq ?? 0) == sent }
            }
            guard let sync = link.syncs.last else { return }
            let page = trial.feed.delta(from: sync.frame.cursor, limit: 3)
            sent = page.to?.seq ?? 0
            try link.peer.send(.delta(page), request: sync.request)
            try link.pump(until: "applied \(sent)") { $0.applied >= sent }
            try require(link.applied <= sent, "\(link.applied) is claimed, \(sent) was sent")
        }
        try requireEqual(try trial.texts(in: conversation).count, 8, "messages held")
        link.peer.cut()
        let live = try trial.accept()
        try live.logIn()
        try live.settle()
        trial.feed.say("pushed", in: conversation)
        try live.push()
        try live.pump(until: "the ACK of a pushed DELTA") { $0.applied == trial.feed.head }
        try requireEqual(try trial.texts(in: conversation).count, 9, "messages held")
    },
    .must(
        "sync.client-numbers", "numbers that are missing from a feed mean nothing",
        ["SYN-2: A client MUST NOT count on consecutive numbers"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        trial.feed.say("one", in: conversation, leaving: 40)
        trial.feed.say("two", in: conversation, leaving: 1_000)
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["one", "two"], "what it holds")
        try require(link.syncs.count <= 2, "it asked again for numbers that do not exist")
    },
    .must(
        "sync.client-request", "a SYNC_REQUEST is answered by SYNC",
        ["SYN-17: The client MUST answer by SYNC", "SYN-21"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open(features: [])
        let before = link.syncs.count
        trial.feed.say("asked", in: conversation)
        try link.peer.send(.syncRequest(SyncRequest(head: trial.feed.head, kinds: 4)))
        try link.pump(until: "SYNC") { $0.syncs.count > before }
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["asked"], "what it holds")
        // What it has already is acknowledged again.
        let acks = link.acks.count + link.syncs.count
        try link.peer.send(.syncRequest(SyncRequest(head: trial.feed.head, kinds: 0xFFFF_FFFF)))
        try link.pump(until: "an answer") { $0.acks.count + $0.syncs.count > acks }
    },
    .must(
        "sync.client-one-sync", "one SYNC at a time; what was asked meanwhile is asked after it",
        ["SYN-10: It MUST NOT send a SYNC while another, or HELLO's, is unanswered", "SYN-19"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open(features: [])
        link.answersSyncs = false
        let before = link.syncs.count
        trial.feed.say("first", in: conversation)
        try link.peer.send(.syncRequest(SyncRequest(head: trial.feed.head)))
        try link.pump(until: "SYNC") { $0.syncs.count == before + 1 }
        guard let open = link.syncs.last else { return }
        let page = trial.feed.delta(from: open.frame.cursor)
        for text in ["second", "third"] {
            trial.feed.say(text, in: conversation)
            try link.peer.send(.syncRequest(SyncRequest(head: trial.feed.head)))
        }
        try trial.tell("refresh")
        try link.serve(for: .seconds(1))
        try requireEqual(link.syncs.count, before + 1, "SYNCs while one is open")
        link.answersSyncs = true
        try link.peer.send(.delta(page), request: open.request)
        try link.settle()
        try requireEqual(try trial.texts(in: conversation).count, 3, "messages held")
    },
    .must(
        "sync.client-gap", "a DELTA that leaves a gap is not applied",
        ["SYN-13: MUST NOT apply it and sends SYNC"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        let before = link.syncs.count
        trial.feed.say("missed", in: conversation)
        let missed = trial.feed.head
        trial.feed.say("after", in: conversation)
        link.answersSyncs = false
        try link.peer.send(.delta(trial.feed.delta(from: trial.feed.cursor(missed))))
        try link.pump(until: "SYNC after a gap") { $0.syncs.count > before }
        try require(link.applied < missed, "it claims \(link.applied) over the gap")
        try requireEqual(try trial.texts(in: conversation), [], "messages held over the gap")
        guard let open = link.syncs.last else { return }
        try require((open.frame.cursor?.seq ?? 0) < missed, "its cursor jumped the gap")
        link.answersSyncs = true
        try link.answer(open.frame, request: open.request)
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["missed", "after"], "what it holds")
    },
    .must(
        "sync.client-other-epoch", "a DELTA of another epoch is not applied",
        ["SYN-13: MUST NOT apply it and sends SYNC"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        let before = link.syncs.count
        var other = trial.feed
        other.epoch = ScriptedFeed.newID()
        other.say("of another history", in: conversation)
        link.answersSyncs = false
        try link.peer.send(.delta(other.delta(from: other.cursor(trial.feed.head))))
        try link.pump(until: "SYNC after another epoch") { $0.syncs.count > before }
        try requireEqual(try trial.texts(in: conversation), [], "messages held")
        try requireEqual(
            link.syncs.last?.frame.cursor, trial.feed.end, "the cursor it presents")
    },
    .must(
        "sync.client-overlap", "a DELTA that overlaps is applied once, an old one dropped",
        ["SYN-13", "SYN-5"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let start = trial.feed.end
        trial.feed.say("one", in: conversation)
        let link = try trial.open()
        let old = trial.feed.delta(from: start)
        trial.feed.say("two", in: conversation)
        try link.peer.send(.delta(trial.feed.delta(from: start)))
        try link.settle()
        try link.peer.send(.delta(old))
        try link.peer.send(.ping(Ping(nextMs: 60_000)), request: 5)
        _ = try link.expect(.pong)
        try requireEqual(link.applied, trial.feed.head, "applied")
        try requireEqual(try trial.texts(in: conversation), ["one", "two"], "what it holds")
    },
    .must(
        "sync.client-version", "an entry whose version is not above the stored one changes nothing",
        ["SYN-5"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        var edited = trial.feed.nextMessage(
            "edited", in: conversation, by: "ben", id: trial.newMessage())
        edited.version = 3
        trial.feed.append(edited)
        let link = try trial.open()
        guard case .message(var message)? = edited.body else { return }
        message.parts = [Part(mimeType: "text/plain", content: Array("older".utf8))]
        edited.body = .message(message)
        edited.version = 2
        trial.feed.append(edited)
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["edited"], "what it holds")
    },
    .must(
        "sync.client-orphan", "an entry whose parent is not known is kept",
        ["SYN-4: A client MUST keep an entry whose parent it does not know"]
    ) { trial in
        let link = try trial.open()
        let conversation: ConversationID = ScriptedFeed.newID()
        trial.feed.say("early", in: conversation)
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["early"], "what it holds")
        trial.feed.append(ScriptedFeed.state(of: conversation, by: "ben"))
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["early"], "what it holds")
    },
    .must(
        "sync.client-unknown-entry", "an entry of an unknown kind is passed, the cursor moves",
        ["SYN-5: A client MUST ignore an entry whose body it does not know"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        let from = trial.feed.end
        trial.feed.append(Entry(version: 1))
        let unknown = trial.feed.head
        trial.feed.say("behind it", in: conversation)
        var delta = trial.feed.delta(from: from)
        delta.entries.removeAll { $0.seq == unknown }
        let entry =
            Field.number(1, unknown) + Field.number(4, 1) + Field.bytes(90, [0x08, 0x01])
        let body = Frame(.delta(delta)).encoded.dropFirst(Frame.headerBytes)
        try link.peer.send(
            bytes: RawFrame(FrameType.delta, body: Field.bytes(1, entry) + Array(body)).bytes)
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["behind it"], "what it holds")
    },
    .must(
        "sync.client-durable",
        "rows and cursor are stored together: killed at any time, none is lost",
        [
            "SYN-6: A client MUST store its cursor in the same transaction",
            "SYN-6: MUST NOT present a cursor beyond",
        ], seconds: 75
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        var link = try trial.open()
        for round in 1...3 {
            // Killed while pages come, after a few, or after many.
            let stop = link.applied + UInt64(round * 4)
            for line in 1...40 { trial.feed.say("\(round) \(line)", in: conversation) }
            for seq in link.applied..<trial.feed.head {
                var page = trial.feed.delta(from: trial.feed.cursor(seq), limit: 1)
                page.more = false
                try link.peer.send(.delta(page))
            }
            try link.pump(until: "ACK of \(stop)") { $0.applied >= stop }
            let acknowledged = link.applied
            try trial.restart()
            let texts = try trial.texts(in: conversation)
            try trial.tell("foreground")
            link = try trial.accept()
            let cursor = try link.greet().sync?.cursor?.seq ?? 0
            try require(
                cursor >= acknowledged, "\(acknowledged) was acknowledged, it holds \(cursor)")
            let expected = trial.feed.entries.filter { $0.seq <= cursor }.count { entry in
                if case .message = entry.body { true } else { false }
            }
            try requireEqual(texts.count, expected, "messages held at the cursor \(cursor)")
            try link.welcome()
            if let sync = link.hello.sync { try link.answer(sync, request: link.helloRequest) }
            try link.pump(until: "the rest") { $0.applied >= trial.feed.head }
        }
        try requireEqual(
            try trial.texts(in: conversation), trial.feed.texts(in: conversation), "what it holds")
    },
    .must(
        "sync.client-peek", "what a peek brought is acknowledged as a range, and the cursor stays",
        ["SYN-28: the client MUST acknowledge them as a range", "SYN-12"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let first = try trial.open()
        let cursor = first.applied
        try trial.tell("sleep")
        try first.expectEnd("going to sleep")
        for number in 1...6 { trial.feed.say("line \(number)", in: conversation) }
        let wake: WakeID = ScriptedFeed.newID()
        try trial.tell("wake \(wake) 25000")
        let link = try trial.accept()
        link.answersSyncs = false
        link.pageLimit = 3
        try link.logIn()
        guard let peek = link.syncs.first, peek.frame.mode == .peek else {
            throw CaseEnd.skipped("the client does not peek")
        }
        try require(
            peek.frame.mutations.isEmpty && peek.frame.reads.isEmpty, "a peek carries more")
        try link.answer(peek.frame, request: peek.request)
        let head = trial.feed.head
        try link.pump(until: "a range") { link in
            link.acks.contains { ack in
                ack.ranges.contains { $0.first == head - 2 && $0.last == head }
            }
        }
        try require(link.applied <= cursor, "a peek moved the cursor to \(link.applied)")
        link.answersSyncs = true
        for sync in link.syncs.dropFirst() {
            try link.answer(sync.frame, request: sync.request)
        }
        try link.settle()
        try requireEqual(try trial.texts(in: conversation).count, 6, "messages held")
    },
]

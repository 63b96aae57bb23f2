import Model
import Wire

/// A client with a conversation of two lines, that has lost its connection.
private func cutOff(_ trial: ClientTrial) throws -> ConversationID {
    let old = trial.feed.addConversation(of: [trial.user, "ben"])
    trial.feed.say("old one", in: old)
    trial.feed.say("old two", in: old)
    let link = try trial.open()
    link.peer.cut()
    return old
}

/// The reset's pages come one by one: what was there stays until the last.
private func judgeReset(_ trial: ClientTrial, _ old: ConversationID, _ reason: ResetReason) throws {
    let new = trial.feed.addConversation(of: [trial.user, "carl"])
    for number in 1...4 { trial.feed.say("new \(number)", in: new, by: "carl") }
    let link = try trial.accept()
    link.answersSyncs = false
    // Not live: each page is asked for.
    try link.logIn(features: [])
    try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
    var page = trial.feed.delta(from: trial.feed.cursor(0), limit: 3)
    page.reset = Reset(reason: reason)
    while let sync = link.syncs.last {
        try link.peer.send(.delta(page), request: sync.request)
        guard page.more else { break }
        try link.pump(until: "SYNC from \(page.to?.seq ?? 0)") { link in
            link.syncs.last?.frame.cursor == page.to
        }
        try requireEqual(
            try trial.texts(in: old), ["old one", "old two"], "what it held before, meanwhile")
        page = trial.feed.delta(from: page.to, limit: 3)
    }
    try link.settle()
    try requireEqual(try trial.texts(in: new).count, 4, "messages of the new history")
    try requireEqual(try trial.texts(in: old), [], "what the new history lacks")
}

// sync.md, history.md: what a client keeps when its cursor cannot be continued.
let clientResetCases: [ClientCase] = [
    .must(
        "sync.client-reset-epoch", "another epoch: the old rows stay until the new ones are there",
        ["SYN-25: It MUST NOT discard its rows before"]
    ) { trial in
        let old = try cutOff(trial)
        trial.feed.restart()
        try judgeReset(trial, old, .epochChanged)
    },
    .must(
        "sync.client-reset-old", "a cursor too old: the old rows stay until the new ones are there",
        ["SYN-25: It MUST NOT discard its rows before", "SYN-24"]
    ) { trial in
        let old = try cutOff(trial)
        let epoch = trial.feed.epoch
        trial.feed.restart()
        trial.feed.epoch = epoch
        try judgeReset(trial, old, .cursorTooOld)
    },
    .must(
        "sync.client-reset-killed", "killed in a reset, a client goes on and ends with the truth",
        ["SYN-25: It MUST NOT discard its rows before"]
    ) { trial in
        let old = try cutOff(trial)
        trial.feed.restart()
        let new = trial.feed.addConversation(of: [trial.user, "carl"])
        for number in 1...6 { trial.feed.say("new \(number)", in: new, by: "carl") }
        let link = try trial.accept()
        link.answersSyncs = false
        try link.logIn()
        try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        let page = trial.feed.delta(from: link.syncs[0].frame.cursor, limit: 4)
        try link.peer.send(.delta(page), request: link.syncs[0].request)
        try link.pump(until: "an ACK of the first page") { $0.applied >= 4 }
        try trial.restart()
        try requireEqual(
            try trial.texts(in: old), ["old one", "old two"], "what it held before, meanwhile")
        try trial.tell("foreground")
        let again = try trial.accept()
        try again.logIn()
        try again.settle()
        try requireEqual(try trial.texts(in: new).count, 6, "messages of the new history")
        try requireEqual(try trial.texts(in: old), [], "what the new history lacks")
    },
    .must(
        "sync.client-reset-head", "a client tells at which head its rows began",
        ["SYN-34: a client MUST store, and name in `reset_head`"]
    ) { trial in try judgeResetHead(trial) },
    .must(
        "sync.client-reset-mutations",
        "another epoch: pending mutations are kept; what other operations took gets new numbers",
        [
            "MSG-12: the client MUST send again under new numbers",
            "SYN-25: Pending mutations keep their numbers", "MSG-14",
        ]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        let ids = [trial.newMessage(), trial.newMessage()]
        for id in ids { try trial.tell("send \(conversation) \(id) pending") }
        try link.pump(until: "two mutations") { $0.mutations.count == 2 }
        // Another life of the device has taken these numbers, and more.
        trial.feed.restart()
        trial.feed.addConversation(conversation, of: [trial.user, "ben"])
        trial.floor = 20
        trial.foreign = Set(1...20)
        trial.tokens = []
        link.peer.cut()
        let again = try trial.accept()
        try again.logIn()
        try trial.waitState("no mutation waits") { _ in
            try? again.serve(for: .milliseconds(100))
            return trial.taken.count == 2
        }
        let sent = trial.taken.compactMap { mutation in
            if case .sendMessage(let send)? = mutation.operation { send.message } else { nil }
        }
        try requireEqual(sent, ids, "messages that arrived, in order")
        try require(trial.taken.allSatisfy { $0.number > 20 }, "old numbers were used")
    },
    .must(
        "sync.client-ack-epoch", "nothing of an old history is acknowledged to a new one",
        ["SYN-14: it MUST NOT send ACK"]
    ) { trial in
        _ = try cutOff(trial)
        trial.feed.restart()
        trial.feed.addConversation(of: [trial.user, "carl"])
        let link = try trial.accept()
        link.answersSyncs = false
        try link.logIn()
        try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        try link.peer.send(.syncRequest(SyncRequest(head: 1, kinds: 1)))
        try link.serve(for: .milliseconds(300))
        try require(link.acks.isEmpty, "ACK \(link.acks.first?.applied ?? 0) in another epoch")
        link.answersSyncs = true
        try link.answer(link.syncs[0].frame, request: link.syncs[0].request)
        try link.settle()
    },
    .must(
        "sync.client-reset-wait", "asked to wait in a reset, a client waits before the next page",
        ["SYN-26"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        for number in 1...3 { trial.feed.say("line \(number)", in: conversation) }
        try trial.tell("foreground")
        let link = try trial.accept()
        link.answersSyncs = false
        try link.logIn(features: [])
        try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        var page = trial.feed.delta(from: nil, limit: 2)
        page.reset?.retryAfterMs = 2_500
        try link.peer.send(.delta(page), request: link.syncs[0].request)
        let start = ContinuousClock.now
        try link.pump(until: "the next SYNC") { $0.syncs.count > 1 }
        let waited = start.duration(to: .now)
        try require(waited > .milliseconds(2_400), "the next SYNC came after \(waited)")
        link.answersSyncs = true
        try link.answer(link.syncs[1].frame, request: link.syncs[1].request)
        try link.settle()
    },
    .should(
        "history.client-parent", "a client fetches the conversation of an entry without one",
        ["HIS-9: SHOULD FETCH the conversation"]
    ) { trial in
        let link = try trial.open(features: [])
        let conversation: ConversationID = ScriptedFeed.newID()
        trial.feed.say("early", in: conversation)
        try link.peer.send(.syncRequest(SyncRequest(head: trial.feed.head, kinds: 4)))
        let (fetch, request) = try link.expect(.fetch)
        try requireEqual(fetch.object, conversation.bytes, "the object it fetches")
        var parent = ScriptedFeed.state(of: conversation, by: "ben")
        parent.seq = 0
        try link.peer.send(.page(PageFrame(entries: [parent])), request: request)
        try trial.waitState("the conversation") { state in
            state.conversations?.contains { $0.id == conversation.description && $0.known }
                ?? false
        }
    },
    .must(
        "history.client-digest", "asked for a DIGEST, a client that is in sync sends one",
        ["HIS-33"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        guard link.hello.features.contains("snapshot") else {
            throw CaseEnd.skipped("the client takes no snapshots, and has no sums")
        }
        trial.feed.say("summed up", in: conversation)
        var delta = trial.feed.delta(from: trial.feed.cursor(link.applied))
        delta.digestWanted = true
        try link.peer.send(.delta(delta))
        let (digest, request) = try link.expect(.digest)
        try requireEqual(digest.cursor, trial.feed.end, "the cursor of its DIGEST")
        try requireEqual(digest.messages?.count, 1, "messages in its DIGEST")
        try link.peer.send(.digestResult(DigestResult()), request: request)
    },
    .must(
        "history.client-page", "what FETCH brings moves no cursor",
        ["HIS-2: MUST NOT move its cursor"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        try trial.tell("fetch \(conversation)")
        let (_, request) = try link.expect(.fetch)
        var older = trial.feed
        let entry = older.nextMessage(
            "from history", in: conversation, by: "ben", id: trial.newMessage())
        try link.peer.send(
            .page(PageFrame(entries: [entry], first: 1, last: 1, position: 1)), request: request)
        try trial.waitState("the message of the page") { state in
            state.conversations?.contains { $0.messages.contains { $0.text == "from history" } }
                ?? false
        }
        link.peer.cut()
        let sync = try trial.accept().greet().sync
        try requireEqual(sync?.cursor, trial.feed.end, "the cursor after a PAGE")
    },
    .must(
        "history.client-snapshot", "a snapshot's start is no cursor before its last page is stored",
        [
            "HIS-20: MUST NOT present `start` as its cursor",
            "HIS-19: MUST NOT remove anything else",
        ]
    ) { trial in try judgeSnapshot(trial) },
]

/// A reset of three pages: the feed grows meanwhile, and the client is killed.
private func judgeResetHead(_ trial: ClientTrial) throws {
    _ = try cutOff(trial)
    trial.feed.restart()
    let new = trial.feed.addConversation(of: [trial.user, "carl"])
    for number in 1...6 { trial.feed.say("new \(number)", in: new, by: "carl") }
    let began = trial.feed.head
    let link = try trial.accept()
    link.answersSyncs = false
    // Not live: each page is asked for.
    try link.logIn(features: [])
    try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
    var page = trial.feed.delta(from: link.syncs[0].frame.cursor, limit: 4)
    try link.peer.send(.delta(page), request: link.syncs[0].request)
    for _ in 1...2 {
        try link.pump(until: "SYNC from \(page.to?.seq ?? 0)") { link in
            link.syncs.last?.frame.cursor == page.to
        }
        try requireEqual(link.syncs.last?.frame.resetHead, began, "`reset_head` on the way up")
        trial.feed.say("later", in: new, by: "carl")
        page = trial.feed.delta(from: page.to, limit: 2)
        try link.peer.send(.delta(page), request: link.syncs.last?.request ?? 0)
    }
    try link.pump(until: "SYNC from \(page.to?.seq ?? 0)") { link in
        link.syncs.last?.frame.cursor == page.to
    }
    try trial.restart()
    try trial.tell("foreground")
    let again = try trial.accept()
    try again.logIn(features: [])
    try again.pump(until: "SYNC") { !$0.syncs.isEmpty }
    try requireEqual(again.syncs[0].frame.cursor, page.to, "the cursor after a restart")
    try requireEqual(again.syncs[0].frame.resetHead, began, "`reset_head` after a restart")
    try again.settle()
}

/// A snapshot in two pages; the client is killed between them.
private func judgeSnapshot(_ trial: ClientTrial) throws {
    let features = ["live", "snapshot"]
    let kept = trial.feed.addConversation(of: [trial.user, "ben"])
    let gone = trial.feed.addConversation(of: [trial.user, "carl"])
    for number in 1...5 { trial.feed.say("kept \(number)", in: kept) }
    trial.feed.say("gone", in: gone)
    // The first login takes the feed, so that there is something to lose.
    let first = try trial.open()
    guard first.hello.features.contains("snapshot") else {
        throw CaseEnd.skipped("the client takes no snapshots")
    }
    let old = trial.feed
    first.peer.cut()
    trial.feed.restart()
    let second = trial.feed.addConversation(of: [trial.user, "dora"])
    trial.feed.say("second", in: second, by: "dora")
    let start = trial.feed.end
    let snapshots = Snapshots(trial: trial, features: features, start: start)

    let link = try snapshots.reset()
    let tail = old.entries.filter { $0.conversation == kept }
        .filter { entry in
            guard case .message(let message) = entry.body else { return true }
            return message.position >= 4
        }
    try snapshots.answer(link, kept, tail, completeFrom: 4, continuation: [1, 2, 3])
    let (next, _) = try link.expect(.snapshot)
    try requireEqual(next.continuation, [1, 2, 3], "the continuation it goes on with")
    try requireEqual(try trial.texts(in: gone), ["gone"], "what the first page does not hold")
    try trial.restart()
    try trial.tell("foreground")
    let again = try snapshots.reset()
    try require(again.hello.sync?.cursor != start, "it presents the snapshot's start as its cursor")
    if snapshots.asked.continuation.isEmpty {
        try snapshots.answer(again, kept, tail, completeFrom: 4, continuation: [4])
        _ = try snapshots.ask(again)
    }
    try require(again.applied < start.seq, "it claims the snapshot's start")
    let last = trial.feed.entries.filter { $0.conversation == second }
    try snapshots.answer(again, second, last, completeFrom: 1, continuation: [])
    try again.pump(until: "SYNC from the snapshot's start") { link in
        link.syncs.contains { $0.frame.cursor == start }
    }
    try requireEqual(try trial.texts(in: kept).count, 5, "messages, older ones included")
    try requireEqual(try trial.texts(in: second), ["second"], "what the last page brought")
    try requireEqual(try trial.texts(in: gone), [], "what no page brought")
}

/// Resets without the feed, and pages of a snapshot.
private final class Snapshots {
    let trial: ClientTrial
    let features: [String]
    let start: Cursor
    private(set) var asked = SnapshotFrame()
    private var request: UInt16 = 0

    init(trial: ClientTrial, features: [String], start: Cursor) {
        self.trial = trial
        self.features = features
        self.start = start
    }

    /// The client comes, is told to reset, and asks for a snapshot.
    func reset() throws -> Link {
        let link = try trial.accept()
        link.answersSyncs = false
        try link.logIn(features: features)
        try link.pump(until: "SYNC") { !$0.syncs.isEmpty }
        let zero = trial.feed.cursor(0)
        try link.peer.send(
            .delta(
                Delta(
                    from: zero, to: zero, head: trial.feed.head,
                    reset: Reset(reason: .epochChanged))),
            request: link.syncs[0].request)
        link.answersSyncs = true
        _ = try ask(link)
        return link
    }

    func ask(_ link: Link) throws -> SnapshotFrame {
        (asked, request) = try link.expect(.snapshot)
        return asked
    }

    func answer(
        _ link: Link, _ conversation: ConversationID, _ entries: [Entry], completeFrom: UInt64,
        continuation: [UInt8]
    ) throws {
        let bare = entries.map { entry in
            var bare = entry
            bare.seq = 0
            return bare
        }
        try link.peer.send(
            .snapshotPage(
                SnapshotPage(
                    conversations: [
                        SnapshotConversation(
                            conversation: conversation, entries: bare, completeFrom: completeFrom,
                            participantsComplete: true)
                    ], start: start, continuation: continuation)),
            request: request)
    }
}

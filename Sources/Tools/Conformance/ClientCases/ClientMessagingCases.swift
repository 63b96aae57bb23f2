import Model
import Wire

extension Mutation {
    /// What must not change when it is sent again: all but how long it waited.
    fileprivate var content: Mutation {
        var content = self
        content.delayMs = 0
        return content
    }
}

extension Link {
    /// Mutations that came in HELLO, SYNC or MUTATE, in order.
    fileprivate var allMutations: [Mutation] {
        let inline = syncs.flatMap(\.frame.mutations)
        return inline + mutations.map(\.mutation)
    }
}

// messaging.md, signals.md: a client's outbox, and what it removes.
let clientMessagingCases: [ClientCase] = [
    .must(
        "messaging.client-retry", "without an answer a mutation comes again, the same in all",
        ["MSG-14", "MSG-12", "MSG-6: Numbers MUST rise"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        for number in 1...3 {
            try trial.tell("send \(conversation) \(trial.newMessage()) line \(number)")
        }
        try link.pump(until: "three mutations") { $0.mutations.count == 3 }
        let sent = link.mutations.map(\.mutation)
        let numbers = sent.map(\.number)
        try requireEqual(numbers, Array(Set(numbers)).sorted(), "the numbers, rising")
        // The first was carried out, its answer is lost.
        _ = trial.take(sent[0])
        link.peer.cut()
        let again = try trial.accept()
        again.answersMutations = true
        try again.logIn()
        try again.pump(until: "the mutations again") { $0.allMutations.count >= 3 }
        try requireEqual(
            again.allMutations.prefix(3).map(\.content), sent.map(\.content), "what came again")
        try trial.waitState("no mutation waits") { state in
            try? again.serve(for: .milliseconds(50))
            return state.pending?.isEmpty ?? false
        }
        try requireEqual(trial.feed.texts(in: conversation).count, 3, "messages the server has")
    },
    .must(
        "messaging.client-durable", "a mutation outlives the client's process",
        ["MSG-6: A client MUST store a mutation and its number durably"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        try trial.tell("send \(conversation) \(trial.newMessage()) killed")
        try link.pump(until: "the mutation") { !$0.mutations.isEmpty }
        let sent = link.mutations[0].mutation
        try trial.restart()
        try trial.tell("foreground")
        let again = try trial.accept()
        try again.logIn()
        try again.pump(until: "the mutation again") { !$0.allMutations.isEmpty }
        try requireEqual(again.allMutations[0].content, sent.content, "what came again")
        try trial.waitState("no mutation waits") { state in
            try? again.serve(for: .milliseconds(50))
            return state.pending?.isEmpty ?? false
        }
        // And no number is used twice.
        try trial.tell("send \(conversation) \(trial.newMessage()) next")
        try again.pump(until: "the next mutation") { link in
            link.mutations.contains { $0.mutation.number > sent.number }
        }
    },
    .must(
        "messaging.client-below-floor", "numbers above the floor wait for those below it",
        ["MSG-12: It MUST NOT send numbers above the floor"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        let ids = [trial.newMessage(), trial.newMessage()]
        for id in ids { try trial.tell("send \(conversation) \(id) pending") }
        try link.pump(until: "two mutations") { $0.mutations.count == 2 }
        // Another life of the device has taken the first number.
        trial.floor = 1
        trial.foreign = [1]
        trial.tokens = []
        link.peer.cut()
        let again = try trial.accept()
        again.answersMutations = false
        try again.logIn()
        try again.pump(until: "a mutation") { !$0.mutations.isEmpty }
        try again.serve(for: .milliseconds(300))
        try requireEqual(again.mutations.map(\.mutation.number), [1], "before the result of 1")
        again.answersMutations = true
        try again.peer.send(
            .mutationResult(trial.take(again.mutations[0].mutation)),
            request: again.mutations[0].request)
        try trial.waitState("no mutation waits") { _ in
            try? again.serve(for: .milliseconds(100))
            return trial.taken.count == 2
        }
        let sent = trial.taken.compactMap { mutation in
            if case .sendMessage(let send)? = mutation.operation { send.message } else { nil }
        }
        try requireEqual(sent, ids, "messages that arrived, in order")
    },
    .must(
        "messaging.client-floor", "new mutations are numbered above the floor",
        ["MSG-12", "MSG-6: Numbers MUST rise"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        trial.floor = 50
        let link = try trial.open()
        try trial.tell("send \(conversation) \(trial.newMessage()) above")
        try link.pump(until: "the mutation") { !$0.mutations.isEmpty }
        try require(
            link.mutations[0].mutation.number > 50,
            "number \(link.mutations[0].mutation.number) under a floor of 50")
    },
    .must(
        "messaging.client-window", "no more mutations wait than WELCOME allows",
        ["MSG-13: A client MUST NOT have more than `mutations_unanswered`"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open { $0.limits?.mutationsUnanswered = 3 }
        link.answersMutations = false
        for number in 1...7 {
            try trial.tell("send \(conversation) \(trial.newMessage()) line \(number)")
        }
        try link.pump(until: "three mutations") { $0.mutations.count >= 3 }
        try link.serve(for: .seconds(1))
        try requireEqual(link.mutations.count, 3, "mutations that wait")
        for (mutation, request) in link.mutations {
            try link.peer.send(.mutationResult(trial.take(mutation)), request: request)
        }
        link.answersMutations = true
        try link.pump(until: "the others") { $0.mutations.count == 7 }
    },
    .must(
        "messaging.client-temporary", "refused for a time, a mutation comes again after that time",
        ["MSG-14", "MSG-11"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        for number in 1...2 {
            try trial.tell("send \(conversation) \(trial.newMessage()) line \(number)")
        }
        try link.pump(until: "two mutations") { $0.mutations.count == 2 }
        let sent = link.mutations
        let start = ContinuousClock.now
        for (mutation, request) in sent {
            let refused = MutationResult(
                number: mutation.number, code: Code.unavailable.rawValue, retry: .retryAfter,
                retryAfterMs: 2_500)
            try link.peer.send(.mutationResult(refused), request: request)
        }
        try link.pump(until: "the first again") { $0.mutations.count > 2 }
        let waited = start.duration(to: .now)
        try require(waited > .milliseconds(2_400), "it came again after \(waited)")
        try link.pump(until: "the second again") { $0.mutations.count > 3 }
        try requireEqual(
            link.mutations.suffix(2).map(\.mutation.content), sent.map(\.mutation.content),
            "what came again, in order")
    },
    .must(
        "messaging.client-final", "refused for good, a mutation does not come again",
        ["MSG-10"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open()
        link.answersMutations = false
        try trial.tell("send \(conversation) \(trial.newMessage()) refused")
        try link.pump(until: "the mutation") { !$0.mutations.isEmpty }
        let (mutation, request) = link.mutations[0]
        trial.floor = mutation.number
        let refused = MutationResult(number: mutation.number, code: 4_998, retry: RetryClass.none)
        try link.peer.send(.mutationResult(refused), request: request)
        try trial.waitState("no mutation waits") { $0.pending?.isEmpty ?? false }
        link.peer.cut()
        let again = try trial.accept()
        try again.logIn()
        try again.serve(for: .seconds(1))
        try requireEqual(again.allMutations.count, 0, "mutations that came again")
    },
    .must(
        "messaging.client-deleted", "a tombstone takes the message's content away",
        ["MSG-34: A client MUST remove the content", "SYN-3"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let message = trial.feed.say("secret", in: conversation)
        trial.feed.say("stays", in: conversation)
        let link = try trial.open()
        try requireEqual(try trial.texts(in: conversation).count, 2, "messages held")
        trial.feed.append(
            Entry(
                conversation: conversation, object: message.bytes, version: 2,
                body: .tombstone(
                    TombstoneState(position: 1, forEveryone: true, by: "ben", deletedMs: 2))))
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: conversation), ["stays"], "what it holds")
    },
    .must(
        "messaging.client-conversation-deleted", "a deleted conversation goes with its messages",
        [
            "MSG-36: A client MUST remove the conversation and its messages up to",
            "MSG-36: a client MUST remove the messages up to the",
            "MSG-37: a client MUST remove everything of the conversation",
        ]
    ) { trial in
        let mine = trial.feed.addConversation(of: [trial.user, "ben"])
        let all = trial.feed.addConversation(of: [trial.user, "ben"])
        for number in 1...3 {
            trial.feed.say("mine \(number)", in: mine)
            trial.feed.say("all \(number)", in: all)
        }
        let link = try trial.open()
        for (conversation, isForEveryone) in [(mine, false), (all, true)] {
            trial.feed.append(
                Entry(
                    conversation: conversation, object: conversation.bytes, version: 2,
                    body: .tombstone(
                        TombstoneState(
                            position: 3, conversation: true, forEveryone: isForEveryone,
                            by: trial.user, deletedMs: 2))))
        }
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: mine), [], "messages deleted for oneself")
        try requireEqual(try trial.texts(in: all), [], "messages deleted for everyone")
        let known = (try trial.state().conversations ?? []).filter(\.known)
        try require(known.isEmpty, "it still knows \(known.map(\.id))")
        // Membership goes on: with the next message the conversation comes again.
        var state = ScriptedFeed.state(of: mine, by: trial.user)
        state.version = 3
        trial.feed.append(state)
        trial.feed.say("again", in: mine)
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: mine), ["again"], "what it holds")
        // Once more, and what a peek brings first came first.
        state.version = 5
        trial.feed.append(state)
        trial.feed.say("once more", in: mine)
        trial.feed.append(
            Entry(
                conversation: mine, object: mine.bytes, version: 4,
                body: .tombstone(
                    TombstoneState(position: 4, conversation: true, by: trial.user, deletedMs: 3))))
        try link.push()
        try link.settle()
        try requireEqual(try trial.texts(in: mine), ["once more"], "what it holds")
        let kept = (try trial.state().conversations ?? []).filter(\.known)
        try require(kept.count == 1, "the conversation that came back is gone")
    },
    .must(
        "messaging.client-read", "a read receipt is repeated until the own read mark comes back",
        ["MSG-19"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        for number in 1...3 { trial.feed.say("line \(number)", in: conversation) }
        let link = try trial.open()
        try trial.tell("read \(conversation) 2")
        func isTold(_ link: Link) -> Bool {
            let reads = link.acks.flatMap(\.reads) + link.syncs.flatMap(\.frame.reads)
            return reads.contains { $0.conversation == conversation && $0.through == 2 }
        }
        try link.pump(until: "the read receipt") { isTold($0) }
        link.peer.cut()
        let again = try trial.accept()
        try again.logIn()
        try again.pump(until: "the read receipt again") { isTold($0) }
        trial.feed.append(
            Entry(
                conversation: conversation, version: 1,
                body: .readMark(ReadMarkState(through: 2))))
        try again.push()
        try again.settle()
        again.peer.cut()
        let last = try trial.accept()
        try last.logIn()
        try last.settle()
        try require(!isTold(last), "it repeats what came back")
    },
    .must(
        "signals.client-decay", "a signal ends by itself",
        ["SIG-4: A client MUST let it decay"]
    ) { trial in
        let conversation = trial.feed.addConversation(of: [trial.user, "ben"])
        let link = try trial.open(features: ["live", "signal"])
        guard link.hello.features.contains("signal") else {
            throw CaseEnd.skipped("the client takes no signals")
        }
        func isTyping(_ state: ClientDriver.Answer) -> Bool {
            state.signals?.contains {
                $0.conversation == conversation.description && $0.user == "ben"
            } ?? false
        }
        try link.peer.send(
            .signal(
                Signal(conversation: conversation, kind: .typing, ttlMs: 2_000, user: "ben")))
        try trial.waitState("ben types") { isTyping($0) }
        try trial.waitState("ben types no more", within: .seconds(4)) { !isTyping($0) }
    },
]

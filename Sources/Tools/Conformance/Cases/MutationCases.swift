import Glibc
import Model
import Wire

extension Conformance {
    static func create(_ id: ConversationID?, _ users: [String] = []) -> Mutation.Operation {
        .createConversation(CreateConversation(conversation: id, participants: users))
    }

    static func send(
        _ parts: [Part], to conversation: ConversationID?, _ id: MessageID?, push: PushText? = nil
    ) -> Mutation.Operation {
        .sendMessage(
            SendMessage(conversation: conversation, message: id, parts: parts, push: push))
    }

    static func text(_ text: String, type: String = "text/plain") -> Part {
        Part(mimeType: type, content: Array(text.utf8))
    }

    /// The operation is refused for good with this code.
    static func refuses(
        _ device: Device, _ what: String, _ code: Code, _ operation: Mutation.Operation?
    ) throws {
        let number = device.nextNumber
        device.nextNumber += 1
        let result = try device.mutate(Mutation(number: number, operation: operation))
        try requireEqual(result.code, code.rawValue, what)
    }

    /// The operation is done. Where the server is busy it is asked again, under the same number, as
    /// a client does: nothing is kept of a temporary refusal (MSG-11).
    @discardableResult
    static func does(
        _ device: Device, _ what: String, _ operation: Mutation.Operation
    ) throws -> MutationResult {
        var result = try device.mutate(operation)
        for _ in 0..<5 where result.code == Code.storageBusy.rawValue {
            usleep(UInt32(min(max(result.retryAfterMs, 100), 1_000)) * 1_000)
            result = try device.mutate(Mutation(number: result.number, operation: operation))
        }
        try requireEqual(result.code, 0, what)
        return result
    }

    // MARK: - Numbers and results

    static let mutationCases: [ConformanceCase] = [
        .must(
            "messaging.result", "MUTATE gets MUTATION_RESULT with its request number",
            ["MSG-8: MUST be answered by MUTATION_RESULT"],
            bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            let conversation: ConversationID = t.newID()
            let message: MessageID = t.newID()
            try anna.peer.send(
                .mutate(Mutation(number: 1, operation: create(conversation))), request: 501)
            try anna.peer.send(
                .mutate(
                    Mutation(
                        number: 2, operation: send([text("one")], to: conversation, message))),
                request: 502)
            let first = try anna.peer.expect(.mutationResult, request: 501)
            try requireEqual(first.number, 1, "number")
            try requireEqual(first.code, 0, "create conversation")
            try requireEqual(first.object, conversation.bytes, "object")
            let second = try anna.peer.expect(.mutationResult, request: 502)
            try requireEqual(second.number, 2, "number")
            try requireEqual(second.code, 0, "send message")
            try requireEqual(second.position, 1, "position")
        },
        .must(
            "messaging.repeated", "the same number gets the same result and has one effect",
            [
                "MSG-10: MUST give the same result for the same number and operation",
                "MSG-10: The effect MUST happen once",
            ]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            let message: MessageID = t.newID()
            let mutation = Mutation(
                number: anna.nextNumber,
                operation: send([text("once")], to: conversation, message))
            let first = try anna.mutate(mutation)
            try requireEqual(first.code, 0, "send message")
            try requireEqual(try anna.mutate(mutation), first, "the result again")
            try settingUp("again") { try anna.reconnect() }
            try requireEqual(
                try anna.mutate(mutation), first, "the result on a new connection")
            try settingUp("sync") { try anna.syncToHead() }
            try requireEqual(anna.replica.texts(in: conversation), ["once"], "messages")
            try requireEqual(anna.replica.arrivals(of: message), 1, "entries of the message")
        },
        .must(
            "messaging.repeated-late", "the first of the last 1,024 numbers still has its result",
            ["MSG-10: MUST give the same result for the same number and operation"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let first = Mutation(number: anna.nextNumber, operation: create(t.newID()))
            anna.nextNumber += 1
            let result = try anna.mutate(first)
            try requireEqual(result.code, 0, "create conversation")
            let step = max(1, min(Int(anna.welcome.limits?.mutationsUnanswered ?? 32), 64))
            var left = 1_023
            while left > 0 {
                var frame = anna.syncFrame
                frame.mutations = (0..<min(step, left)).map { offset in
                    Mutation(
                        number: anna.nextNumber + UInt64(offset),
                        operation: send([text("x")], to: t.newID(), t.newID()))
                }
                anna.nextNumber += UInt64(frame.mutations.count)
                left -= frame.mutations.count
                let delta = try anna.syncAnswer(frame)
                try require(
                    delta.results.allSatisfy { $0.code == Code.notFound.rawValue },
                    "sending to no conversation is not refused as such")
                anna.apply(delta)
            }
            try requireEqual(try anna.mutate(first), result, "the result after 1,023 others")
        },
        .must(
            "messaging.number-taken", "a number that another operation has taken is refused",
            [
                "MSG-10: MUST be refused with 3014, as long as the server knows",
                "MSG-10: numbers above the floor MUST be refused with 3014, too",
            ]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            let number = anna.nextNumber
            anna.nextNumber += 2
            let first = Mutation(
                number: number, operation: send([text("one")], to: conversation, t.newID()))
            let result = try anna.mutate(first)
            try requireEqual(result.code, 0, "send message")
            let other: ConversationID = t.newID()
            let taken = Code.numberTaken.rawValue
            let refused = try anna.mutate(Mutation(number: number, operation: create(other)))
            try requireEqual(refused.code, taken, "another operation under the number")
            try requireEqual(try anna.mutate(first), result, "the first one's result")
            var frame = anna.syncFrame
            frame.mutations = [
                Mutation(number: number, operation: create(other)),
                Mutation(
                    number: number + 1, operation: send([text("two")], to: other, t.newID())),
            ]
            let delta = try anna.syncAnswer(frame)
            try requireEqual(delta.results.map(\.code), [taken, taken], "both in one SYNC")
            anna.apply(delta)
            try does(anna, "the conversation under a new number", create(other))
            try does(
                anna, "the message under a new number", send([text("two")], to: other, t.newID()))
        },
        .must(
            "messaging.refusal-repeated", "a refusal is a result, too, and stays the same",
            ["MSG-10: MUST give the same result for the same number and operation"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation: ConversationID = t.newID()
            let mutation = Mutation(
                number: anna.nextNumber,
                operation: send([text("one")], to: conversation, t.newID()))
            anna.nextNumber += 1
            let first = try anna.mutate(mutation)
            try requireEqual(first.code, Code.notFound.rawValue, "send message")
            try does(anna, "the conversation is made after it", create(conversation))
            try requireEqual(try anna.mutate(mutation), first, "the result again")
        },
        .must(
            "messaging.floor", "WELCOME and DELTA name the highest number taken",
            ["MSG-12: MUST be the highest number taken"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            for number in [1, 2, 7] as [UInt64] {
                let result = try anna.mutate(
                    Mutation(number: number, operation: create(t.newID())))
                try requireEqual(result.code, 0, "mutation \(number)")
            }
            try requireEqual(try anna.syncAnswer().mutationFloor, 7, "floor in DELTA")
            try settingUp("again") { try anna.reconnect() }
            try requireEqual(anna.welcome.mutationFloor, 7, "floor in WELCOME")
        },
        .must(
            "messaging.numbers", "numbers with gaps are taken; 0 and those above 2^63 - 1 are not",
            ["MSG-6", "MSG-22"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            for number in [3, 90, 1 << 40] as [UInt64] {
                let result = try anna.mutate(
                    Mutation(number: number, operation: create(t.newID())))
                try requireEqual(result.code, 0, "mutation \(number)")
            }
            for number in [0, 1 << 63] as [UInt64] {
                let result = try anna.mutate(
                    Mutation(number: number, operation: create(t.newID())))
                try requireEqual(result.code, Code.malformed.rawValue, "mutation \(number)")
            }
            try requireEqual(try anna.syncAnswer().mutationFloor, 1 << 40, "floor")
        },
        .must(
            "messaging.per-device", "each device counts its mutations for itself", ["MSG-6"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let beside = try t.device(of: anna.user)
            for device in [anna, beside] {
                let conversation: ConversationID = t.newID()
                let result = try device.mutate(
                    Mutation(number: 1, operation: create(conversation)))
                try requireEqual(result.code, 0, "mutation 1")
                try requireEqual(result.object, conversation.bytes, "object")
            }
        },
        .must(
            "messaging.in-sync",
            "mutations inside a SYNC are carried out in order before the feed "
                + "is read",
            [
                "SYN-9: which MUST be taken before the feed is read",
                "MSG-9: MUST be carried out in order",
                "MSG-9: their results MUST come in the DELTA",
            ], bytes: true
        ) { t in
            let anna = try t.device(of: t.user("anna"), delivery: t.delivery)
            let conversation: ConversationID = t.newID()
            var frame = anna.syncFrame
            frame.mutations = [
                Mutation(number: 1, operation: create(conversation)),
                Mutation(number: 2, operation: send([text("a")], to: conversation, t.newID())),
                Mutation(number: 3, operation: send([text("b")], to: conversation, t.newID())),
                Mutation(number: 4, operation: send([text("c")], to: t.newID(), t.newID())),
            ]
            let delta = try anna.syncAnswer(frame)
            try requireEqual(delta.results.map(\.number), [1, 2, 3, 4], "numbers")
            try requireEqual(
                delta.results.map(\.code), [0, 0, 0, Code.notFound.rawValue], "codes")
            try requireEqual(delta.mutationFloor, 4, "floor")
            anna.apply(delta)
            try requireEqual(anna.replica.texts(in: conversation), ["a", "b"], "messages")
        },
        .must(
            "messaging.unanswered", "more mutations without a result than allowed close with 4006",
            [
                "MSG-13: MUST NOT have more than `mutations_unanswered` mutations without a result",
                "MSG-13: the server MUST close with 4006",
            ]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let limit = Int(anna.welcome.limits?.mutationsUnanswered ?? 32)
            var frame = anna.syncFrame
            func mutations(_ count: Int) -> [Mutation] {
                (0..<count).map {
                    Mutation(number: anna.nextNumber + UInt64($0), operation: create(t.newID()))
                }
            }
            frame.mutations = mutations(limit)
            let delta = try anna.syncAnswer(frame)
            try requireEqual(delta.results.count, limit, "results")
            anna.nextNumber += UInt64(limit)
            frame.mutations = mutations(limit + 1)
            try anna.peer.send(.sync(frame), request: 600)
            try anna.peer.expectClose(.limit)
        },
        .must(
            "messaging.unknown-operation", "no operation, or one it does not know: 4002",
            ["MSG-22"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try refuses(anna, "no operation", .missingField, nil)
            let body = Field.number(1, anna.nextNumber) + Field.bytes(99, [1, 2])
            try anna.peer.send(
                bytes: RawFrame(.mutate, body: body).with { $0.request = 610 }.bytes)
            let result = try anna.peer.expect(.mutationResult, request: 610)
            try requireEqual(result.code, Code.missingField.rawValue, "operation 99")
        },
        .must(
            "messaging.missing", "a mutation without what it needs: 4002",
            ["MSG-22: Final refusals MUST have these codes"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            try refuses(anna, "no id", .missingField, create(nil))
            try refuses(
                anna, "no conversation", .missingField, send([text("x")], to: nil, t.newID()))
            try refuses(
                anna, "no message id", .missingField, send([text("x")], to: conversation, nil))
            try refuses(anna, "no parts", .missingField, send([], to: conversation, t.newID()))
            try refuses(
                anna, "no MIME type", .missingField,
                send([text("x", type: "")], to: conversation, t.newID()))
            try refuses(
                anna, "nobody to add", .missingField,
                .addParticipants(AddParticipants(conversation: conversation)))
            try refuses(
                anna, "no changes", .missingField,
                .changeMetadata(ChangeMetadata(conversation: conversation)))
        },
        .must(
            "messaging.malformed", "a mutation that breaks a form: 4000",
            ["MSG-1", "MSG-22: Final refusals MUST have these codes"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            try refuses(
                anna, "a user of 129 bytes", .malformed,
                create(t.newID(), [String(repeating: "u", count: 129)]))
            try refuses(anna, "an empty user", .malformed, create(t.newID(), [""]))
            try refuses(anna, "a control character", .malformed, create(t.newID(), ["a\u{1}"]))
            try refuses(
                anna, "16 zero bytes", .malformed, create(ConversationID(high: 0, low: 0)))
            try refuses(
                anna, "a message id of 16 zero bytes", .malformed,
                send([text("x")], to: conversation, MessageID(high: 0, low: 0)))
            try refuses(
                anna, "a MIME type of 129 bytes", .malformed,
                send(
                    [text("x", type: String(repeating: "m", count: 129))], to: conversation,
                    t.newID()))
            try refuses(
                anna, "a zero byte in the push text", .malformed,
                send(
                    [text("x")], to: conversation, t.newID(),
                    push: PushText(title: "a\0b", body: "c")))
            guard !t.lacks("MSG-27") else { return }
            try refuses(
                anna, "blocking oneself", .malformed,
                .blockUser(BlockUser(user: anna.user, blocked: true)))
        },
        .must(
            "messaging.limits", "what is too large gets 4001, what is too many 4006",
            [
                "MSG-3: A message MUST have 1 to 32 parts",
                "MSG-22: Final refusals MUST have these codes",
            ]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            let conversation = try settingUp("a conversation") {
                try anna.createConversation(with: [])
            }
            let bytes = Int(anna.welcome.limits?.messageBytes ?? 65_536)
            let type = "text/plain"
            func content(_ count: Int) -> Part {
                Part(
                    mimeType: type, content: [UInt8](repeating: 65, count: count - type.utf8.count))
            }
            try does(anna, "\(bytes) bytes", send([content(bytes)], to: conversation, t.newID()))
            try refuses(
                anna, "\(bytes + 1) bytes", .tooLarge,
                send([content(bytes + 1)], to: conversation, t.newID()))
            try refuses(
                anna, "push text of 2,049 bytes", .tooLarge,
                send(
                    [text("x")], to: conversation, t.newID(),
                    push: PushText(title: "t", body: String(repeating: "b", count: 2_048))))
            let part = text("x")
            try does(
                anna, "32 parts",
                send([Part](repeating: part, count: 32), to: conversation, t.newID()))
            try refuses(
                anna, "33 parts", .limit,
                send([Part](repeating: part, count: 33), to: conversation, t.newID()))
            let users = Int(anna.welcome.limits?.participantsPerRequest ?? 256)
            try refuses(
                anna, "\(users + 1) participants", .limit,
                create(t.newID(), (0...users).map { t.user("u\($0)") }))
        },
        .must(
            "messaging.logout", "forgetting the device ends its connection with 2004 and its token",
            ["MSG-7: MUST be closed with 2004"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try anna.peer.send(
                .mutate(Mutation(number: 1, operation: .forgetDevice(ForgetDevice()))),
                request: 620)
            // The result may come before.
            var closed = false
            while !closed {
                guard let arrival = try anna.peer.next(), case .frame(let frame) = arrival else {
                    throw CaseEnd.failed("CLOSE was expected")
                }
                switch frame.body {
                case .mutationResult(let result):
                    try requireEqual(result.code, 0, "forget this device")
                case .close(let close):
                    try requireEqual(close.code, Code.revoked.rawValue, "CLOSE")
                    closed = true
                default: throw CaseEnd.failed("\(frame.summary) came")
                }
            }
            let peer = try greeted(t, t.hello(anna.id, token: anna.sessionToken))
            try requireEqual(try peer.expect(.challenge).reason, .revoked, "reason")
        },
        .must(
            "messaging.logout-numbers", "after a logout the same user's numbers go on",
            ["MSG-7: its numbers MUST go on"]
        ) { t in
            let anna = try t.device(of: t.user("anna"))
            try settingUp("a conversation and a logout") {
                _ = try anna.createConversation(with: [])
                try anna.peer.send(
                    .mutate(
                        Mutation(number: 2, operation: .forgetDevice(ForgetDevice()))),
                    request: 620)
                while let arrival = try anna.peer.next(), case .frame = arrival {}
                anna.sessionToken = []
            }
            try anna.reconnect()
            try requireEqual(anna.welcome.mutationFloor, 2, "floor")
        },
    ]
}

import Model
import Wire

/// An input read as a list of choices; when it is over, every choice is 0.
struct Choices {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isOver: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// A number from 0 to `count - 1`.
    mutating func below(_ count: Int) -> Int { count > 1 ? Int(byte()) % count : 0 }

    mutating func flag() -> Bool { byte() & 1 == 1 }

    mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }

    mutating func some<Value: CaseIterable>(_: Value.Type = Value.self) -> Value
    where Value.AllCases == [Value] { one(of: Value.allCases) }

    /// Small ones often, each edge now and then.
    mutating func number() -> UInt64 {
        let byte = byte()
        switch byte {
        case 0..<200: return UInt64(byte % 50)
        case 200..<215: return .max
        case 215..<225: return .max - UInt64(self.byte())
        case 225..<235: return UInt64(Int64.max)
        default: return (0..<8).reduce(UInt64(0)) { value, _ in value << 8 | UInt64(self.byte()) }
        }
    }

    mutating func number32() -> UInt32 { UInt32(truncatingIfNeeded: number()) }

    /// As many bytes as the next byte says, or as are left.
    mutating func bytes() -> [UInt8] {
        let taken = rest.prefix(Int(byte()))
        rest = rest.dropFirst(taken.count)
        return Array(taken)
    }

    mutating func list<Value>(_ make: (inout Choices) -> Value) -> [Value] {
        (0..<below(4)).map { _ in make(&self) }
    }

    mutating func maybe<Value>(_ make: (inout Choices) -> Value) -> Value? {
        flag() ? make(&self) : nil
    }

    // MARK: What the protocol names

    /// One of a few, so that what one frame makes another one finds.
    mutating func id<Noun>() -> Identifier<Noun>? {
        let number = below(8)
        return number == 7 ? nil : Identifier(high: 0xC0, low: UInt64(number))
    }

    mutating func user() -> String {
        one(of: [
            "anna", "bert", "carl", "", "dora", "\u{0}", "né", String(repeating: "x", count: 300),
        ])
    }

    mutating func text() -> String {
        one(of: ["", "a", "hello", "\u{0}\n", "\"\\漢", String(decoding: bytes(), as: UTF8.self)])
    }

    mutating func range() -> InclusiveRange { InclusiveRange(first: number(), last: number()) }

    mutating func read() -> ReadReceipt {
        ReadReceipt(
            conversation: id(), through: number(), ranges: list { $0.range() }, announcement: id())
    }

    mutating func part() -> Part {
        Part(
            mimeType: one(of: ["text/plain", "", "x"]), content: bytes(),
            reference: maybe {
                PartReference(
                    url: $0.one(of: ["https://example.org/a", "", "x"]), size: $0.number(),
                    digest: $0.bytes(), expiresMs: $0.number())
            })
    }

    mutating func metadataChange() -> MetadataChange {
        MetadataChange(path: list { $0.text() }, value: text(), removed: flag())
    }

    mutating func pushText() -> PushText { PushText(title: text(), body: text()) }

    mutating func digestSum() -> DigestSum { DigestSum(count: number(), hash: number()) }

    mutating func appState() -> AppState {
        AppState(
            phase: some(), remainingMs: number32(), notifications: some(),
            backgroundRefresh: some(), lowPower: some())
    }

    mutating func operation() -> Mutation.Operation? {
        switch below(13) {
        case 0:
            .createConversation(
                CreateConversation(
                    conversation: id(), participants: list { $0.user() }, distinct: flag(),
                    metadata: list { $0.metadataChange() }, receiptsOff: flag()))
        case 1: .addParticipants(AddParticipants(conversation: id(), users: list { $0.user() }))
        case 2, 3:
            .sendMessage(
                SendMessage(
                    conversation: id(), message: id(), parts: list { $0.part() },
                    push: maybe { $0.pushText() }))
        case 4: .forgetDevice(ForgetDevice())
        case 5:
            .removeParticipants(RemoveParticipants(conversation: id(), users: list { $0.user() }))
        case 6:
            .editMessage(
                EditMessage(
                    message: id(), parts: list { $0.part() }, push: maybe { $0.pushText() },
                    baseVersion: number()))
        case 7: .deleteMessage(DeleteMessage(message: id(), forEveryone: flag()))
        case 8: .deleteConversation(DeleteConversation(conversation: id(), forEveryone: flag()))
        case 9:
            .changeMetadata(
                ChangeMetadata(
                    conversation: id(), changes: list { $0.metadataChange() },
                    baseVersion: number()))
        case 10:
            .muteConversation(
                MuteConversation(conversation: id(), muted: flag(), forMs: number()))
        case 11: .blockUser(BlockUser(user: user(), blocked: flag()))
        default: nil
        }
    }

    /// Numbered after `last`, or anyhow.
    mutating func mutation(after last: UInt64) -> Mutation {
        Mutation(
            number: flag() ? last &+ 1 : number(), delayMs: number32(), operation: operation())
    }
}

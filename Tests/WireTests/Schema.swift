import Model

@testable import Wire

/// A schema as sync.proto writes it down, or as the code declares it.
struct Schema: Equatable {
    struct Field: Equatable, CustomStringConvertible {
        var number: UInt32
        var name: String
        var type: String
        var isRepeated = false
        /// 0 is not absence.
        var isOptional = false
        var oneof: String?

        var description: String {
            "\(isRepeated ? "repeated " : "")\(isOptional ? "optional " : "")"
                + "\(type) \(name) = \(number)"
                + (oneof.map { " of oneof \($0)" } ?? "")
        }
    }

    struct Value: Equatable, CustomStringConvertible {
        var name: String
        var number: UInt32

        var description: String { "\(name) = \(number)" }
    }

    /// By name; fields and values in the order in which they stand.
    var messages: [String: [Field]] = [:]
    var enumerations: [String: [Value]] = [:]

    /// What `self`, the code, has otherwise than `written`, each by its name.
    func differences(from written: Schema) -> [String] {
        func names<Content>(_ left: [String: Content], _ right: [String: Content]) -> [String] {
            Set(left.keys).union(right.keys).sorted()
        }
        var found: [String] = []
        for name in names(messages, written.messages) {
            found += Self.compared(
                "message \(name)", messages[name], written.messages[name], name: \.name)
        }
        for name in names(enumerations, written.enumerations) {
            found += Self.compared(
                "enum \(name)", enumerations[name], written.enumerations[name], name: \.name)
        }
        return found
    }

    private static func compared<Item: Equatable & CustomStringConvertible>(
        _ owner: String, _ code: [Item]?, _ written: [Item]?, name: (Item) -> String
    ) -> [String] {
        guard let code else { return ["\(owner): not in the code"] }
        guard let written else { return ["\(owner): not in the schema"] }
        if code == written { return [] }
        var found: [String] = []
        for item in code {
            guard let other = written.first(where: { name($0) == name(item) }) else {
                found.append("\(owner): \(item): not in the schema")
                continue
            }
            if other != item { found.append("\(owner): \(item): the schema says \(other)") }
        }
        for item in written where !code.contains(where: { name($0) == name(item) }) {
            found.append("\(owner): \(item): not in the code")
        }
        return found.isEmpty ? ["\(owner): in another order"] : found
    }
}

extension Schema {
    /// Messages that have another name in the code, because theirs is taken or says too little.
    static let names = [
        "AdvertisedLimits": "Limits", "AnnouncementState": "Announcement", "BlockState": "Block",
        "ConversationState": "Conversation", "CursorFields": "Cursor", "DigestFrame": "Digest",
        "ErrorFrame": "Error", "InclusiveRange": "Range", "MessageState": "Message",
        "MetadataState": "Metadata", "PageFrame": "Page", "ParticipantState": "Participant",
        "ReadMarkState": "ReadMark", "ReceiptState": "Receipt", "SnapshotFrame": "Snapshot",
        "SyncFrame": "Sync", "TombstoneState": "Tombstone",
    ]

    /// Takes in a message and those within it, and gives its name.
    mutating func add<Message: WireMessage>(_ message: Message.Type) -> String {
        let name = Self.names["\(message)"] ?? "\(message)"
        guard messages[name] == nil else { return name }
        messages[name] = []
        var list = FieldList(schema: self)
        var empty = Message.empty
        empty.fields(&list)
        self = list.schema
        messages[name] = list.fields
        return name
    }

    /// Takes in an enumeration, and gives its name.
    mutating func add<Enumeration: WireEnumeration>(_ enumeration: Enumeration.Type) -> String {
        let name = "\(enumeration)"
        enumerations[name] = Enumeration.allCases.map {
            Value(name: upperSnake(name) + "_" + upperSnake("\($0)"), number: $0.rawValue)
        }
        return name
    }
}

/// Lists the fields of a message as its declaration tells them.
private struct FieldList: FieldVisitor {
    var schema: Schema
    var fields: [Schema.Field] = []
    private var oneof: String?

    init(schema: Schema) { self.schema = schema }

    private mutating func field(
        _ number: UInt32, _ name: StaticString, _ type: String, isRepeated: Bool = false,
        isOptional: Bool = false
    ) {
        fields.append(
            Schema.Field(
                number: number, name: "\(name)", type: type, isRepeated: isRepeated,
                isOptional: isOptional, oneof: oneof))
    }

    mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) {
        field(number, name, "uint64")
    }
    mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) {
        field(number, name, "uint32")
    }
    mutating func uint32(
        _ number: UInt32, _ name: StaticString, optional value: inout UInt32?
    ) {
        field(number, name, "uint32", isOptional: true)
    }
    mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) {
        field(number, name, "bool")
    }
    mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) {
        field(number, name, "string")
    }
    mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        field(number, name, "bytes")
    }
    mutating func objectID(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        field(number, name, "bytes")
    }
    mutating func identifier<Noun>(
        _ number: UInt32, _ name: StaticString, _ value: inout Identifier<Noun>?
    ) {
        field(number, name, "bytes")
    }
    mutating func enumeration<Value: WireEnumeration>(
        _ number: UInt32, _ name: StaticString, _ value: inout Value
    ) {
        field(number, name, schema.add(Value.self))
    }
    mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) {
        field(number, name, "string", isRepeated: true)
    }
    mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout Message?
    ) {
        field(number, name, schema.add(Message.self))
    }
    mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, apart value: inout [Message]
    ) {
        field(number, name, schema.add(Message.self))
    }
    mutating func messages<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [Message]
    ) {
        field(number, name, schema.add(Message.self), isRepeated: true)
    }
    mutating func cursor(_ number: UInt32, _ name: StaticString, _ value: inout Cursor?) {
        field(number, name, schema.add(CursorFields.self))
    }
    mutating func oneof<Choice: WireOneof>(_ name: StaticString, _ choice: inout Choice?) {
        oneof = "\(name)"
        Choice.members(of: &choice, &self)
        oneof = nil
    }
    mutating func member<Choice: WireOneof, Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ choice: inout Choice?,
        _ choose: (Message) -> Choice, _ chosen: (Choice) -> Message?
    ) {
        field(number, name, schema.add(Message.self))
    }
}

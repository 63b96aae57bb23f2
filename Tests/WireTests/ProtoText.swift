/// Reads as much of protobuf's language as sync.proto uses; what it does not know is an error.
struct ProtoText {
    struct Unreadable: Error { let at: String }

    private var words: ArraySlice<Substring>

    init(_ text: String) {
        let code = text.split(separator: "\n", omittingEmptySubsequences: false)
            .map { $0.prefix(upTo: $0.firstRange(of: "//")?.lowerBound ?? $0.endIndex) }
            .joined(separator: "\n")
        words = code.matches(of: #/"[^"]*"|[A-Za-z_0-9.]+|[^\sA-Za-z_0-9.]/#).map(\.output)[...]
    }

    mutating func schema() throws -> Schema {
        var schema = Schema()
        while let word = words.popFirst() {
            switch word {
            case "syntax": try skip("=", "\"proto3\"", ";")
            case "package": try skip("rouse.v1", ";")
            case "message":
                let name = try name()
                guard schema.messages[name] == nil else { throw Unreadable(at: name) }
                schema.messages[name] = try fields()
            case "enum":
                let name = try name()
                guard schema.enumerations[name] == nil else { throw Unreadable(at: name) }
                schema.enumerations[name] = try values()
            default: throw Unreadable(at: String(word))
            }
        }
        return schema
    }

    private mutating func next() throws -> Substring {
        guard let word = words.popFirst() else { throw Unreadable(at: "the end") }
        return word
    }

    private mutating func skip(_ expected: String...) throws {
        for word in expected {
            let found = try next()
            guard found == word else { throw Unreadable(at: "\(found), where \(word) is due") }
        }
    }

    private mutating func name() throws -> String {
        let word = try next()
        guard word.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else {
            throw Unreadable(at: String(word))
        }
        return String(word)
    }

    private mutating func number() throws -> UInt32 {
        let word = try next()
        guard let number = UInt32(word) else { throw Unreadable(at: String(word)) }
        return number
    }

    /// Whether the block ends here; if so, it has ended.
    private mutating func ends() -> Bool {
        guard words.first == "}" else { return false }
        words.removeFirst()
        return true
    }

    private mutating func fields(of oneof: String? = nil) throws -> [Schema.Field] {
        var fields: [Schema.Field] = []
        try skip("{")
        while !ends() {
            if words.first == "oneof", oneof == nil {
                words.removeFirst()
                let name = try name()
                fields += try self.fields(of: name)
                continue
            }
            let isRepeated = words.first == "repeated"
            let isOptional = words.first == "optional"
            if isRepeated || isOptional { words.removeFirst() }
            let type = try name()
            let name = try name()
            try skip("=")
            fields.append(
                Schema.Field(
                    number: try number(), name: name, type: type, isRepeated: isRepeated,
                    isOptional: isOptional, oneof: oneof))
            try skip(";")
        }
        return fields
    }

    private mutating func values() throws -> [Schema.Value] {
        var values: [Schema.Value] = []
        try skip("{")
        while !ends() {
            let name = try name()
            try skip("=")
            values.append(Schema.Value(name: name, number: try number()))
            try skip(";")
        }
        return values
    }
}

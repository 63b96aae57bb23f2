public import Model

/// A JSON value of a backend, for the app to read: it goes into the payload beside `aps`.
public indirect enum CustomValue: Equatable, Sendable {
    case null
    case flag(Bool)
    case integer(Int64)
    /// Digits as they stand in JSON (RFC 8259 section 6): what no `Int64` holds.
    case number(String)
    case text(String)
    case list([CustomValue])
    case object([ExactText: CustomValue])
}

/// The members of a JSON object, ready to stand in a payload. Made from values only, so that it
/// is always JSON.
public struct CustomData: Equatable, Sendable {
    /// The most bytes as JSON.
    public static let bytesMax = 3_072
    public static let depthMax = 16

    /// `"a":1,"b":[2]`, without the braces.
    public private(set) var members: [UInt8]

    public init() { members = [] }

    /// Members stand in the order of their names.
    public init(_ object: [ExactText: CustomValue]) throws(PushProblem) {
        for name in object.keys.sorted() where name.text == "aps" || name.text == "rouse" {
            throw .malformed("custom data named \(name)")
        }
        members = []
        try Self.append(object, to: &members, depth: 1)
    }

    /// As `members` was, out of a row.
    init(members: [UInt8]) { self.members = members }

    private static func append(
        _ object: [ExactText: CustomValue], to json: inout [UInt8], depth: Int
    ) throws(PushProblem) {
        var isFirst = true
        for (name, value) in object.sorted(by: { $0.key < $1.key }) {
            if !isFirst { json.append(UInt8(ascii: ",")) }
            isFirst = false
            json += quoted(name.text)
            json.append(UInt8(ascii: ":"))
            try append(value, to: &json, depth: depth)
        }
    }

    private static func append(
        _ value: CustomValue, to json: inout [UInt8], depth: Int
    ) throws(PushProblem) {
        guard depth <= depthMax else {
            throw .tooLarge("custom data more than \(depthMax) levels deep")
        }
        switch value {
        case .null: json += Array("null".utf8)
        case .flag(let flag): json += Array((flag ? "true" : "false").utf8)
        case .integer(let number): json += Array(String(number).utf8)
        case .number(let digits):
            guard isNumber(digits) else { throw .malformed("a number that is none") }
            json += Array(digits.utf8)
        case .text(let text): json += quoted(text)
        case .list(let values):
            json.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { json.append(UInt8(ascii: ",")) }
                try append(value, to: &json, depth: depth + 1)
            }
            json.append(UInt8(ascii: "]"))
        case .object(let object):
            json.append(UInt8(ascii: "{"))
            try append(object, to: &json, depth: depth + 1)
            json.append(UInt8(ascii: "}"))
        }
        guard json.count <= bytesMax else {
            throw .tooLarge("more than \(bytesMax) bytes of custom data")
        }
    }

    private static func quoted(_ text: String) -> [UInt8] {
        [UInt8(ascii: "\"")] + PushPayload.escaped(text) + [UInt8(ascii: "\"")]
    }

    /// RFC 8259 section 6.
    private static func isNumber(_ text: String) -> Bool {
        var rest = text.utf8[...]
        func digits(_ rest: inout Substring.UTF8View) -> Int {
            let found = rest.prefix { (0x30...0x39).contains($0) }.count
            rest = rest.dropFirst(found)
            return found
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let leadsWithZero = rest.first == UInt8(ascii: "0")
        let whole = digits(&rest)
        guard whole > 0, !leadsWithZero || whole == 1 else { return false }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            guard digits(&rest) > 0 else { return false }
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest = rest.dropFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") {
                rest = rest.dropFirst()
            }
            guard digits(&rest) > 0 else { return false }
        }
        return rest.isEmpty
    }
}

import Foundation
import Testing

/// What names something is compared by its bytes: `ExactText` in Model says why. A `String` that
/// is a key, or half of one, is compared by canonical equivalence instead.
@Suite struct ExactTextTests {
    /// Where text of peers becomes keys. The tools' keys are names they make themselves.
    static let folders = ["Sources/Core", "Sources/Server", "Sources/Client"]

    /// A line that may stand, and why.
    struct Exception {
        let file: String
        let text: String
        let reason: String
    }

    static let exceptions = [
        Exception(
            file: "RowLocks.swift", text: "let table: String", reason: "tables are the schema's"),
        Exception(
            file: "LockOrder.swift", text: "ranks: [String: Int]",
            reason: "tables are the schema's"),
        Exception(
            file: "MemoryStore.swift", text: "lockRanks: [String: Int]",
            reason: "tables are the schema's"),
        Exception(
            file: "Schema.swift", text: "lockRanks: [String: Int]",
            reason: "tables are the schema's"),
        Exception(
            file: "Contents.swift", text: "positions: [String: Int]",
            reason: "tables are the schema's"),
        Exception(
            file: "TableRows.swift", text: "indexes: [String: RangeOrder]",
            reason: "indexes are the schema's"),
        Exception(
            file: "FetchedRows.swift", text: "floors: [String: LockFloor]",
            reason: "tables are the schema's"),
        Exception(
            file: "FetchedTable.swift", text: "indexes: [String: FetchedOrder]",
            reason: "indexes are the schema's"),
        Exception(
            file: "DistantEngine.swift", text: "lockRanks: [String: Int]",
            reason: "tables are the schema's"),
        Exception(file: "Table.swift", text: "let name: String", reason: "names of the schema"),
        Exception(file: "Table.swift", text: "index: String", reason: "names of the schema"),
        Exception(
            file: "Table.swift", text: "presentName: String?", reason: "names of the schema"),
        Exception(
            file: "Table.swift", text: "absentName: String?", reason: "names of the schema"),
        Exception(
            file: "Table.swift", text: "case text(String)",
            reason: "its == and hash go by the bytes"),
        Exception(file: "Store.swift", text: "index: String?", reason: "names of the schema"),
        Exception(
            file: "ExactText.swift", text: "let text: String", reason: "the one that compares"),
        Exception(
            file: "PushOptions.swift", text: "seen: Set<String>",
            reason: "language tags are ASCII once they were read"),
        Exception(
            file: "PushRequests.swift", text: "topics: [String: Int]",
            reason: "topics of credentials are ASCII"),
        Exception(
            file: "TopicPauses.swift", text: "entries: [String: Entry]",
            reason: "topics of credentials are ASCII"),
        Exception(
            file: "TopicPauses.swift", text: "-> [String: Int]",
            reason: "topics of credentials are ASCII"),
        Exception(
            file: "Verdicts.swift", text: "credits: [String: Int]",
            reason: "topics of credentials are ASCII"),
        Exception(
            file: "PushResponse+Reading.swift", text: "knownReasons: Set<String>",
            reason: "Apple's words, ASCII"),
        Exception(
            file: "LogAllowance.swift", text: "kinds: [String: Kind]",
            reason: "our own names of events and of why connections end"),
        Exception(
            file: "JSONText.swift", text: "names: Set<String>",
            reason: "decoders take equivalent names for one: they are refused"),
        Exception(
            file: "PushBodies.swift", text: "[String: NewLocalText]",
            reason: "JSON with equivalent names in one object is refused"),
        Exception(
            file: "Configuration+Text.swift", text: "environment: [String: String]",
            reason: "the operator's own"),
        Exception(
            file: "ConfigurationReading.swift", text: "[String: String]",
            reason: "the operator's own, and keys of settings"),
        Exception(
            file: "ConfigurationFile.swift", text: "environment: [String: String]",
            reason: "the operator's own"),
        Exception(
            file: "LiveBoard.swift", text: "[String: Int]",
            reason: "label values of our own metrics, of closed sets"),
        Exception(
            file: "Route.swift", text: "[String: String]", reason: "names of a route's template"),
        Exception(
            file: "Route.swift", text: "Set<String>", reason: "names of a route's query, ASCII"),
        Exception(
            file: "Call.swift", text: "parameters: [String: String]",
            reason: "names of a route's template"),
        Exception(
            file: "JSONValue.swift", text: "[String: JSONValue]",
            reason: "for clients and tools, which ask for members by names of their own"),
        Exception(
            file: "Problem.swift", text: "headers: [String: String]", reason: "our own headers"),
        Exception(
            file: "ReadRoutes.swift", text: "paging: Set<String>",
            reason: "names of a route's query, ASCII"),
        Exception(
            file: "CampaignRoutes.swift", text: "query: Set<String>",
            reason: "names of a route's query, ASCII"),
    ]

    /// What holds a name of a peer's.
    private static let names = [
        "sender", "creator", "deletedBy", "issuer", "pushTopic", "keyID", "kid",
        "distinctKey", "user.name", "app.name", "actor.name", "other.name", "state.user",
        "signal.user",
    ]

    /// Lines of `text` that compare names otherwise than by their bytes:
    /// a dictionary or set of strings; a stored `String` of a type that says it can be hashed;
    /// a comparison with what is named like a name.
    static func found(in text: String) -> [String] {
        var found: [String] = []
        // The indentation of the types that say `Hashable`, while we are inside them.
        var hashables: [Int] = []
        for line in text.split(separator: "\n") {
            let code = line.drop { $0 == " " }
            let indentation = line.utf8.count - code.utf8.count
            if code.hasPrefix("//") { continue }
            if code.hasPrefix("}"), indentation == hashables.last { hashables.removeLast() }
            let isKeyed = ["[String: ", "Set<String>", "Dictionary<String"].contains {
                code.contains($0)
            }
            let isMember = !hashables.isEmpty && isStoredString(code)
            if isKeyed || isMember || comparesNames(code) { found.append(String(code)) }
            if code.contains("Hashable"), !code.hasSuffix("}"), isType(code) {
                hashables.append(indentation)
            }
        }
        return found
    }

    private static func isType(_ code: Substring) -> Bool {
        ["struct ", "enum ", "class "].contains { code.hasPrefix($0) || code.contains(" " + $0) }
    }

    private static func isStoredString(_ code: Substring) -> Bool {
        if code.hasPrefix("case ") { return code.contains("(String") || code.contains(": String") }
        return (code.contains("let ") || code.contains("var "))
            && (code.hasSuffix(": String") || code.hasSuffix(": String?"))
    }

    /// `==`, `!=` or `<` with a name on one of its sides. What follows a name there, such as
    /// `.count`, makes something else of it.
    private static func comparesNames(_ code: Substring) -> Bool {
        for sign in [" == ", " != ", " < "] where code.contains(sign) {
            let sides = code.components(separatedBy: sign)
            for (left, right) in zip(sides, sides.dropFirst()) {
                let before = left.split { " (!{[".contains($0) }.last ?? ""
                let after = right.prefix { $0.isLetter || $0.isNumber || "._$?".contains($0) }
                let isCall = right.dropFirst(after.count).hasPrefix("(")
                if isName(before) || !isCall && isName(after) { return true }
            }
        }
        return false
    }

    private static func isName(_ path: some StringProtocol) -> Bool {
        names.contains { path == $0 || path.hasSuffix("." + $0) }
    }

    @Test("no text of a peer is a key by canonical equivalence")
    func keysAreBytes() throws {
        var used: Set<Int> = []
        for folder in Self.folders {
            for file in LayoutTests.swiftFiles(in: folder) {
                let text = try String(contentsOf: file, encoding: .utf8)
                for line in Self.found(in: text) {
                    let excused = Self.exceptions.indices.filter {
                        Self.exceptions[$0].file == file.lastPathComponent
                            && line.contains(Self.exceptions[$0].text)
                    }
                    used.formUnion(excused)
                    #expect(
                        !excused.isEmpty,
                        "\(file.lastPathComponent): use ExactText or isExactly: \(line)")
                }
            }
        }
        for (index, exception) in Self.exceptions.enumerated() where !used.contains(index) {
            Issue.record("\(exception.file) holds no \(exception.text) any more")
        }
    }

    @Test(
        "each way to compare names as String does is seen",
        arguments: [
            "var users: [String: Int] = [:]", "var seen: Set<String> = []",
            "struct Key: Hashable {\n    let name: String\n}",
            "public struct Key: Sendable, Hashable {\n    public var name: String?\n}",
            "enum Key: Hashable {\n    case named(String)\n}",
            "guard message.sender == user.name else { return }",
            "if keyID != record.keyID {", "list.contains { $0.name == user.name }",
            "if state.user == user {",
        ])
    func comparisonIsSeen(_ text: String) {
        #expect(!Self.found(in: text).isEmpty)
    }

    @Test(
        "what compares by bytes, or compares no name, is let through",
        arguments: [
            "var users: [UserID: Int] = [:]", "let names: [String] = []",
            "struct Key: Hashable {\n    let name: ExactText\n}\nstruct Other {\n    let a: String\n}",
            "guard UserID(message.sender) == user else { return }",
            "if message.sender.isExactly(name) { }", "if user == actor { }",
            "// The [String: Int] of the comment.", "if sender.count == 3 {",
        ])
    func otherIsLetThrough(_ text: String) {
        #expect(Self.found(in: text) == [])
    }
}

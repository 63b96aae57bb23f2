/// Something that a Swift file declares at its top, or in a type or extension that stands there.
struct SourceDeclaration: Hashable {
    enum Kind { case type, function, value, enumCase }

    var kind: Kind
    var name: String
    /// Of its parameters, as written where it is called; `_`: none.
    var labels: [String] = []
    /// Those that a call may leave out: they have a default, or a closure may trail the call.
    var omissible: Set<Int> = []
    /// The type in whose body or extension it stands; empty: it stands at the top.
    var owner = ""
    var isInExtension = false
    /// It, or what it stands in, is `private` or `fileprivate`.
    var isPrivate = false
    var isPublic = false
    var isStatic = false
    /// It stands for a requirement, or for what a superclass has.
    var isImposed = false

    /// With its labels, as documentation writes it.
    var signature: String {
        kind == .function ? "\(name)(\(labels.map { $0 + ":" }.joined()))" : name
    }

    /// Whether a call with these labels can be one of it.
    func takes(_ call: [String]) -> Bool {
        var next = 0
        for (index, label) in labels.enumerated() {
            if next < call.count, call[next] == label {
                next += 1
            } else if !omissible.contains(index) {
                return false
            }
        }
        return next == call.count
    }
}

/// Finds the declarations of one file.
struct DeclarationFinder {
    private struct Scope {
        /// `nil`: the body of a function or a value, where nothing is declared for others.
        var owner: String?
        var isExtension = false
        var isPrivate = false
        var isProtocol = false
    }

    private(set) var found: [SourceDeclaration] = []
    /// For each token, the type in whose body or extension it stands; empty: none.
    private(set) var owners: [String] = []
    private let tokens: [String]
    private var scopes: [Scope] = []
    private var modifiers: Set<String> = []
    private var pending: Scope?

    private static let types: Set<String> = ["struct", "enum", "class", "protocol", "actor"]
    private static let kept: Set<String> = [
        "private", "fileprivate", "public", "static", "override",
    ]

    init(_ tokens: [String]) {
        self.tokens = tokens
        var index = 0
        while index < tokens.count {
            let owner = scopes.last { $0.owner != nil }?.owner ?? ""
            let next = step(index)
            owners += Array(repeating: owner, count: next - index)
            index = next
        }
    }

    private func token(_ index: Int) -> String { index < tokens.count ? tokens[index] : "" }

    private mutating func step(_ index: Int) -> Int {
        let word = tokens[index]
        if word == "{" {
            scopes.append(pending ?? Scope())
            pending = nil
            modifiers = []
            return index + 1
        }
        if word == "}" {
            if !scopes.isEmpty { scopes.removeLast() }
            modifiers = []
            return index + 1
        }
        guard scopes.isEmpty || scopes.last?.owner != nil else { return index + 1 }
        if Self.kept.contains(word) {
            // `private(set)` says who writes, not who reads.
            if token(index + 1) != "(" { modifiers.insert(word) }
            return index + 1
        }
        if Self.types.contains(word) { return readType(index) }
        switch word {
        case "extension": return readExtension(index)
        case "func": return readFunction(index)
        case "case": return readCases(index)
        case "var", "let": return note(.value, at: index + 1)
        case "typealias": return note(.type, at: index + 1)
        case "init", "subscript":
            modifiers = []
            return index + 1
        default: return index + 1
        }
    }

    private mutating func note(
        _ kind: SourceDeclaration.Kind, at index: Int, labels: [String] = [],
        omissible: Set<Int> = []
    ) -> Int {
        let scope = scopes.last
        let own = modifiers.contains("private") || modifiers.contains("fileprivate")
        found.append(
            SourceDeclaration(
                kind: kind, name: token(index), labels: labels, omissible: omissible,
                owner: scope?.owner ?? "", isInExtension: scope?.isExtension ?? false,
                isPrivate: own || scope?.isPrivate ?? false,
                isPublic: modifiers.contains("public"), isStatic: modifiers.contains("static"),
                isImposed: modifiers.contains("override") || scope?.isProtocol ?? false))
        if kind != .enumCase { modifiers = [] }
        return index + 1
    }

    private mutating func readType(_ index: Int) -> Int {
        let isPrivate =
            modifiers.contains("private") || modifiers.contains("fileprivate")
            || scopes.last?.isPrivate ?? false
        let name = token(index + 1)
        let next = note(.type, at: index + 1)
        pending = Scope(
            owner: scopes.last?.owner.map { $0 + "." + name } ?? name, isPrivate: isPrivate,
            isProtocol: tokens[index] == "protocol")
        return next
    }

    private mutating func readExtension(_ index: Int) -> Int {
        var next = index + 1
        var name = ""
        while next < tokens.count, !["{", ":", "where"].contains(tokens[next]) {
            name += tokens[next]
            next += 1
        }
        while next < tokens.count, tokens[next] != "{" { next += 1 }
        pending = Scope(
            owner: name, isExtension: true,
            isPrivate: modifiers.contains("private") || modifiers.contains("fileprivate"))
        modifiers = []
        return next
    }

    private mutating func readFunction(_ index: Int) -> Int {
        var next = index + 2
        while next < tokens.count, tokens[next] != "(" { next += 1 }
        let (parts, end) = arguments(tokens, at: next)
        var labels: [String] = []
        var omissible: Set<Int> = []
        for (number, part) in parts.enumerated() {
            labels.append(part.first { $0 != "@" && $0 != "autoclosure" } ?? "_")
            let isLast = number == parts.count - 1
            let mayTrail = isLast && part.contains("->") && !part.contains("autoclosure")
            if part.contains("=") || mayTrail { omissible.insert(number) }
        }
        _ = note(.function, at: index + 1, labels: labels, omissible: omissible)
        return end
    }

    private mutating func readCases(_ index: Int) -> Int {
        var next = index + 1
        while true {
            var labels: [String] = []
            var end = next + 1
            if token(end) == "(" {
                let (parts, after) = arguments(tokens, at: end)
                labels = parts.map { $0.count > 1 && $0[1] == ":" ? $0[0] : "_" }
                end = after
            }
            _ = note(.enumCase, at: next, labels: labels)
            if token(end) == "=" { end += token(end + 1) == "-" ? 3 : 2 }
            guard token(end) == "," else { return end }
            next = end + 1
        }
    }
}

/// What stands between the commas of the parentheses that open at `start`, and where what follows
/// them begins.
func arguments(_ tokens: [String], at start: Int) -> (parts: [[String]], end: Int) {
    var parts: [[String]] = []
    var part: [String] = []
    var depth = 0
    var index = start
    while index < tokens.count {
        let token = tokens[index]
        index += 1
        if ["(", "[", "{"].contains(token) {
            depth += 1
            if depth == 1 { continue }
        }
        if [")", "]", "}"].contains(token) {
            depth -= 1
            if depth == 0 { break }
        }
        if token == ",", depth == 1 {
            parts.append(part)
            part = []
        } else {
            part.append(token)
        }
    }
    if !part.isEmpty { parts.append(part) }
    return (parts, index)
}

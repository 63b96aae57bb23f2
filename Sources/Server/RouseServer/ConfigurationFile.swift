import Failpoints

/// What is wrong with the configuration, in words that name the place and what to do.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Each with its place.
    public let problems: [String]
    /// All of it may be over with nobody doing anything (`ServerError.isOfTime`).
    public let isOfTime: Bool

    public init(_ problems: [String], isOfTime: Bool = false) {
        (self.problems, self.isOfTime) = (problems, isOfTime)
    }

    public init(_ problem: String) { self.init([problem]) }

    /// Mistakes that are told; of more there is only the number.
    static let toldMax = 50

    public var description: String {
        if problems.count == 1 { return problems[0] }
        let left = max(0, problems.count - Self.toldMax)
        return "\(problems.count) mistakes:\n"
            + problems.prefix(Self.toldMax).map { "  \($0)" }.joined(separator: "\n")
            + (left > 0 ? "\n  and \(left) more" : "")
    }
}

/// The lines of a configuration file: `key = value`, one a line, `#` begins a comment. Values may
/// stand in double quotes; there are no sections, no nesting and no escapes to learn.
struct ConfigurationFile: Equatable, Sendable {
    struct Setting: Equatable, Sendable {
        let key: String
        let value: String
        /// Where it was said: `rouse.conf:12` or the name of an environment variable.
        let place: String
        /// Not in the environment, nor on the command line.
        let isInFile: Bool
        /// The line, or what is after all lines.
        let order: Int
    }

    /// Something that is wrong.
    struct Problem: Equatable, Sendable {
        let order: Int
        /// With its place.
        let text: String
        /// It may be over with nobody doing anything (`ServerError.isOfTime`).
        var isOfTime = false
    }

    static let bytesMax = 1 << 20
    /// Lines that say or try to say something.
    static let saidMax = 10_000

    private(set) var settings: [Setting] = []
    private(set) var problems: [Problem] = []

    /// Reads `text`; `name` stands in error messages.
    init(text: String, name: String) {
        guard text.utf8.count <= Self.bytesMax else {
            let problem = "\(name) is larger than 1 MiB; is it the right file?"
            problems.append(Problem(order: 0, text: problem))
            return
        }
        // Editors of Windows begin a file with a mark that nobody sees.
        let hasMark = text.unicodeScalars.first == "\u{FEFF}"
        let said = hasMark ? String(text.unicodeScalars.dropFirst()) : text
        // A line's end of Windows is one Character.
        let lines = said.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            guard settings.count + problems.count < Self.saidMax else {
                let problem = "\(name) says more than \(Self.saidMax) things; is it the right file?"
                problems = [Problem(order: 0, text: problem)]
                return
            }
            take(line, place: "\(name):\(index + 1)", order: index, isInFile: true)
        }
    }

    /// Reads one setting that was said at `place`, in no file.
    init(text: String, place: String) {
        take(text[...], place: place, order: .max, isInFile: false)
    }

    private mutating func take(_ line: Substring, place: String, order: Int, isInFile: Bool) {
        do throws(ConfigurationError) {
            guard let (key, value) = try Self.setting(in: line) else { return }
            if let earlier = settings.first(where: { $0.key == key }) {
                throw ConfigurationError("\(key) is set already at \(earlier.place); keep one")
            }
            settings.append(
                Setting(
                    key: key, value: value, place: place, isInFile: isInFile, order: order))
        } catch {
            problems.append(Problem(order: order, text: "\(place): \(error)"))
        }
    }

    /// What may be shown of a line that is not understood: its first word, which is meant to be a
    /// key. The rest may be a secret.
    static func key(in line: String) -> String {
        let key = line.prefix { $0 != "=" && $0 != ":" && !$0.isWhitespace }
        return key.isEmpty ? "..." : String(key)
    }

    private static func setting(
        in line: Substring
    ) throws(ConfigurationError) -> (key: String, value: String)? {
        var isQuoted = false
        var content = ""
        for character in line {
            if character == "\"" { isQuoted.toggle() }
            if character == "#" && !isQuoted { break }
            content.append(character)
        }
        guard !isQuoted else { throw ConfigurationError("a quote is not closed") }
        content = trimmed(content)
        if content.isEmpty { return nil }
        guard let equals = content.firstIndex(of: "=") else {
            throw ConfigurationError(
                "expected `key = value`, found `\(key(in: content))`")
        }
        let key = trimmed(String(content[..<equals]))
        var value = trimmed(String(content[content.index(after: equals)...]))
        if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            value = String(value.dropFirst().dropLast())
        }
        guard !value.contains("\"") else {
            throw ConfigurationError("quotes go around a whole value")
        }
        return (key, value)
    }

    /// A value as the file may hold it: in quotes where it would not be read as it is.
    static func written(_ value: String) -> String {
        value.contains("#") || trimmed(value) != value ? "\"\(value)\"" : value
    }

    private static func trimmed(_ text: String) -> String {
        let blanks: Set<Character> = [" ", "\t", "\r"]
        return String(
            text.drop { blanks.contains($0) }.reversed().drop { blanks.contains($0) }.reversed())
    }

    /// Lets variables `ROUSE_STORE_PATH` stand over `store.path`. A variable that begins with
    /// `ROUSE_` and names no setting is an error, like an unknown key; in a test build one arms
    /// a failpoint.
    mutating func override(with environment: [String: String], keys: [String]) {
        for (variable, value) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix(Self.variablePrefix) {
            if Failpoint.areBuiltIn, variable == Failpoint.variable { continue }
            guard let key = keys.first(where: { Self.variable(for: $0) == variable }) else {
                // What all of them begin with makes none like another.
                let prefix = Self.variablePrefix
                let meant = Spelling.nearest(
                    String(variable.dropFirst(prefix.count)),
                    among: keys.map { String(Self.variable(for: $0).dropFirst(prefix.count)) })
                let text =
                    "environment: \(variable) names no setting"
                    + (meant.map { "; did you mean \(prefix)\($0)?" } ?? "")
                problems.append(Problem(order: .max, text: text))
                continue
            }
            settings.removeAll { $0.key == key }
            settings.append(
                Setting(key: key, value: value, place: variable, isInFile: false, order: .max))
        }
    }

    private static let variablePrefix = "ROUSE_"

    static func variable(for key: String) -> String {
        variablePrefix + key.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }
}

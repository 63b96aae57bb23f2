import Failpoints

/// What is wrong with the configuration, in words that name the place and what to do.
public struct ConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
}

/// The lines of a configuration file: `key = value`, one a line, `#` begins a comment. Values may
/// stand in double quotes; there are no sections, no nesting and no escapes to learn.
struct ConfigurationFile: Equatable, Sendable {
    struct Setting: Equatable, Sendable {
        let key: String
        let value: String
        /// Where it was said: `rouse.conf:12` or the name of an environment variable.
        let place: String
    }

    static let bytesMax = 1 << 20

    private(set) var settings: [Setting] = []

    /// Reads `text`; `name` stands in error messages.
    init(text: String, name: String) throws(ConfigurationError) {
        guard text.utf8.count <= Self.bytesMax else {
            throw ConfigurationError("\(name) is larger than 1 MiB; is it the right file?")
        }
        // A line's end of Windows is one Character.
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            let place = "\(name):\(index + 1)"
            guard let setting = try Self.setting(in: line, place: place) else { continue }
            if let earlier = settings.first(where: { $0.key == setting.key }) {
                throw ConfigurationError(
                    "\(place): \(setting.key) is set already at \(earlier.place); keep one")
            }
            settings.append(setting)
        }
    }

    private static func setting(
        in line: Substring, place: String
    ) throws(ConfigurationError) -> Setting? {
        var isQuoted = false
        var content = ""
        for character in line {
            if character == "\"" { isQuoted.toggle() }
            if character == "#" && !isQuoted { break }
            content.append(character)
        }
        guard !isQuoted else { throw ConfigurationError("\(place): a quote is not closed") }
        content = trimmed(content)
        if content.isEmpty { return nil }
        guard let equals = content.firstIndex(of: "=") else {
            throw ConfigurationError("\(place): expected `key = value`, found `\(content)`")
        }
        let key = trimmed(String(content[..<equals]))
        var value = trimmed(String(content[content.index(after: equals)...]))
        if value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") {
            value = String(value.dropFirst().dropLast())
        }
        guard !value.contains("\"") else {
            throw ConfigurationError("\(place): quotes go around a whole value")
        }
        return Setting(key: key, value: value, place: place)
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
    mutating func override(
        with environment: [String: String], keys: [String]
    ) throws(ConfigurationError) {
        for (variable, value) in environment.sorted(by: { $0.key < $1.key })
        where variable.hasPrefix("ROUSE_") {
            if Failpoint.areBuiltIn, variable == Failpoint.variable { continue }
            guard let key = keys.first(where: { Self.variable(for: $0) == variable }) else {
                throw ConfigurationError("environment: \(variable) names no setting")
            }
            settings.removeAll { $0.key == key }
            settings.append(Setting(key: key, value: value, place: variable))
        }
    }

    static func variable(for key: String) -> String {
        "ROUSE_" + key.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }
}

/// How a line of the log is written.
public enum LogFormat: Int, Sendable, CaseIterable {
    /// `time=… level=… event=… key=value …`, for people and grep.
    case text
    /// One object a line, for programs that collect logs.
    case json

    public init?(name: String) {
        guard let format = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
        self = format
    }

    /// The line, with its end.
    ///
    /// - Parameter time: RFC 3339.
    func line(
        _ level: LogLevel, _ event: String, _ fields: [LogField], time: String
    ) -> [UInt8] {
        var line = ""
        switch self {
        case .text:
            line += "time=\(time) level=\(level) event=\(event)"
            for field in fields { line += " \(field.name)=\(Log.quoted(field.value))" }
        case .json:
            line += "{\"time\":\"\(time)\",\"level\":\"\(level)\",\"event\":\"\(event)\""
            for field in fields {
                let value = field.isBare ? field.value : Self.string(field.value)
                line += ",\"\(field.name)\":\(value)"
            }
            line += "}"
        }
        line += "\n"
        return Array(line.utf8)
    }

    /// RFC 8259, 7. What a terminal would obey instead of showing it is escaped as well.
    static func string(_ value: String) -> String {
        let cut = String(decoding: value.utf8.prefix(Log.valueBytesMax), as: UTF8.self)
        var quoted = "\""
        for scalar in cut.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default:
                if Log.isUnseen(scalar) {
                    for unit in String(scalar).utf16 {
                        let digits = String(unit, radix: 16)
                        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                    }
                } else {
                    quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }
}

import EventLoop
import Glibc

/// How much a log line matters. `debug` is off by default.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
    case debug, info, warning, error

    public init?(name: String) {
        guard let level = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
        self = level
    }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Structured lines on standard error: `time=… level=… event=… key=value …`.
///
/// Event names are stable (`connection.closed`); values never hold a token, a key or the text of
/// a message. One write(2) per line, so lines of several threads do not mix.
public final class Log: Sendable {
    /// Value lengths are cut here; what a peer sends cannot fill the disk.
    public static let valueBytesMax = 512

    public let level: LogLevel
    private let descriptor: Int32

    /// `descriptor`: where lines go; standard error unless a test says otherwise.
    public init(level: LogLevel, descriptor: Int32 = 2) {
        self.level = level
        self.descriptor = descriptor
    }

    public func debug(_ event: String, _ fields: @autoclosure () -> [LogField] = []) {
        if level <= .debug { write(.debug, event, fields()) }
    }

    public func info(_ event: String, _ fields: @autoclosure () -> [LogField] = []) {
        if level <= .info { write(.info, event, fields()) }
    }

    public func warning(_ event: String, _ fields: @autoclosure () -> [LogField] = []) {
        if level <= .warning { write(.warning, event, fields()) }
    }

    public func error(_ event: String, _ fields: @autoclosure () -> [LogField] = []) {
        write(.error, event, fields())
    }

    private func write(_ level: LogLevel, _ event: String, _ fields: [LogField]) {
        var line = "time=\(Self.timeText(SystemClock.wallMilliseconds())) level=\(level)"
        line += " event=\(event)"
        for field in fields {
            line += " \(field.name)=\(Self.quoted(field.value))"
        }
        line += "\n"
        let bytes = Array(line.utf8)
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count, let start = buffer.baseAddress {
                let written = Glibc.write(descriptor, start + sent, buffer.count - sent)
                if written > 0 {
                    sent += written
                } else if errno != EINTR {
                    return  // Nowhere to complain about a log that cannot be written.
                }
            }
        }
    }

    /// UTC, RFC 3339 with milliseconds.
    static func timeText(_ milliseconds: UInt64) -> String {
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func padded(_ number: Int32, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
        }
        let year = padded(parts.tm_year + 1900, 4)
        let date = "\(year)-\(padded(parts.tm_mon + 1, 2))-\(padded(parts.tm_mday, 2))"
        let clock =
            "\(padded(parts.tm_hour, 2)):\(padded(parts.tm_min, 2)):\(padded(parts.tm_sec, 2))"
        return "\(date)T\(clock).\(padded(Int32(milliseconds % 1000), 3))Z"
    }

    /// Whether a terminal or an editor would obey it instead of showing it: controls (C0, DEL, C1),
    /// line and paragraph separators, and what is invisible or turns the direction of the text.
    private static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .unassigned, .privateUse:
            true
        default: false
        }
    }

    /// Bare if it holds only unproblematic characters, else in double quotes with escapes.
    static func quoted(_ value: String) -> String {
        let bytes = value.utf8.prefix(valueBytesMax)
        let isBare =
            !bytes.isEmpty
            && bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3D }
        if isBare { return String(decoding: bytes, as: UTF8.self) }
        var quoted = "\""
        for scalar in String(decoding: bytes, as: UTF8.self).unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default:
                if isUnseen(scalar) {
                    quoted += "\\u{\(String(scalar.value, radix: 16))}"
                } else {
                    quoted.unicodeScalars.append(scalar)
                }
            }
        }
        return quoted + "\""
    }
}

/// One `name=value` of a log line.
public struct LogField: Equatable, Sendable {
    public let name: String
    public let value: String

    public init(_ name: String, _ value: some CustomStringConvertible) {
        self.name = name
        self.value = value.description
    }
}

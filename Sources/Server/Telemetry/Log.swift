import EventLoop
import Glibc
import Synchronization

/// How much a log line matters. `debug` is off by default.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
    case debug, info, warning, error

    public init?(name: String) {
        guard let level = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
        self = level
    }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Structured lines on standard error, in one of two forms (`LogFormat`).
///
/// Event names are stable (`connection.closed`); values never hold a token, a key or the text of
/// a message. A line costs its caller no wait: a thread writes it (`LogWriter`).
public final class Log: Sendable {
    /// Value lengths are cut here; what a peer sends cannot fill the disk.
    public static let valueBytesMax = 512

    private let least: Atomic<Int>
    private let form = Gauge()
    private let tellsAccess = Atomic(false)
    private let writer: LogWriter
    private let allowance = LogAllowance()

    /// `descriptor`: where lines go; standard error unless a test says otherwise.
    public init(level: LogLevel, descriptor: Int32 = 2) {
        least = Atomic(level.rawValue)
        writer = LogWriter(descriptor: descriptor) { [form] in Self.line($0, $1, $2, form) }
    }

    /// May be changed while others log.
    public var format: LogFormat {
        get { Self.format(form) }
        set { form.set(newValue.rawValue) }
    }

    /// Whether requests are logged one by one at any level; may be changed while others log.
    public var logsAccess: Bool {
        get { tellsAccess.load(ordering: .relaxed) }
        set { tellsAccess.store(newValue, ordering: .relaxed) }
    }

    /// Lines below it are left out; may be changed while others log.
    public var level: LogLevel {
        get { LogLevel(rawValue: least.load(ordering: .relaxed)) ?? .info }
        set { least.store(newValue.rawValue, ordering: .relaxed) }
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

    /// The line of one request.
    ///
    /// - Parameter isRoutine: It is one of those that come all the time and tell nothing.
    public func access(
        _ event: String, isRoutine: Bool, _ fields: @autoclosure () -> [LogField]
    ) {
        if logsAccess, !isRoutine {
            write(.info, event, fields())
        } else {
            debug(event, fields())
        }
    }

    public func error(_ event: String, _ fields: @autoclosure () -> [LogField] = []) {
        write(.error, event, fields())
    }

    /// A line of which a peer can cause any number: there are at most so many of an event and
    /// `kind` in a while, and then a line that says how many were left out.
    public func limited(
        _ level: LogLevel, _ event: String, kind: String = "",
        _ fields: @autoclosure () -> [LogField] = []
    ) {
        guard self.level <= level else { return }
        let now = SystemClock.monotonicMilliseconds()
        let name = kind.isEmpty ? event : "\(event) \(kind)"
        let (isAllowed, leftOut) = allowance.take(name, now: now)
        if leftOut > 0 { tellLeftOut(name, leftOut) }
        if isAllowed { write(level, event, fields()) }
    }

    /// Says how many lines were left out of the kinds that have become quiet since. To be called
    /// now and then.
    public func tellLeftOut() {
        for found in allowance.takeLeftOut(now: SystemClock.monotonicMilliseconds()) {
            tellLeftOut(found.kind, found.lines)
        }
    }

    private func tellLeftOut(_ kind: String, _ lines: Int) {
        write(.warning, "log.left_out", [LogField("of", kind), LogField("lines", lines)])
    }

    /// Waits until what was logged before is written, at the end of a program.
    @discardableResult
    public func flush(seconds: Int = 2) -> Bool { writer.flush(seconds: seconds) }

    private func write(_ level: LogLevel, _ event: String, _ fields: [LogField]) {
        writer.write(Self.line(level, event, fields, form))
    }

    private static func format(_ form: Gauge) -> LogFormat {
        LogFormat(rawValue: form.current) ?? .text
    }

    private static func line(
        _ level: LogLevel, _ event: String, _ fields: [LogField], _ form: Gauge
    ) -> [UInt8] {
        let time = timeText(SystemClock.wallMilliseconds())
        return format(form).line(level, event, fields, time: time)
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
    public static func isUnseen(_ scalar: Unicode.Scalar) -> Bool {
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
    /// It is a number or a truth value, which JSON writes without quotes.
    let isBare: Bool

    public init(_ name: String, _ value: some CustomStringConvertible) {
        (self.name, self.value, isBare) = (name, value.description, false)
    }

    public init(_ name: String, _ value: some BinaryInteger) {
        (self.name, self.value, isBare) = (name, value.description, true)
    }

    public init(_ name: String, _ value: Bool) {
        (self.name, self.value, isBare) = (name, value.description, true)
    }
}

import Fleet
import JSONTree
import Model
import RouseServer

/// The numbers of an app's policy as options, and `rouse app policy`.
extension Rouse {
    /// One number of an app's policy.
    struct PolicyNumber: Sendable {
        /// What the number counts; times are given and shown with their unit.
        enum Unit: Sendable { case seconds, hours, days, percent, pushes, wakes, participants }

        let option: String
        let field: String
        let unit: Unit
        let help: String

        init(_ option: String, _ field: String, _ unit: Unit, _ help: String) {
            (self.option, self.field, self.unit, self.help) = (option, field, unit, help)
        }

        /// Seconds in one, where it is a time.
        private var size: UInt64? {
            switch unit {
            case .seconds: 1
            case .hours: 3_600
            case .days: 86_400
            default: nil
            }
        }

        var commandOption: CommandOption {
            CommandOption(option, size == nil ? "N" : "TIME", help)
        }

        /// A bare number is of the field's own unit.
        func read(_ arguments: Arguments) throws(UsageError) -> JSONValue? {
            guard let text = arguments.string(option) else { return nil }
            if let size, Int64(text) == nil {
                guard let seconds = Measure.seconds(text), seconds % size == 0,
                    seconds <= UInt64(Int64.max)
                else {
                    throw UsageError("--\(option) must be a time as \(example), not `\(text)`")
                }
                return .number(Int64(seconds / size))
            }
            return try arguments.number(option, in: Int64(0)...Int64.max).map { .number($0) }
        }

        private var example: String {
            switch unit {
            case .hours: "12h or 2d"
            case .days: "30d"
            default: "90s, 15m or 2h"
            }
        }

        func shown(_ app: JSONValue) -> String {
            guard case .number(let number) = app[field], number >= 0 else { return "" }
            if let size {
                let (seconds, overflow) = UInt64(number).multipliedReportingOverflow(by: size)
                return overflow ? app[field].words : Measure.text(seconds: seconds)
            }
            return "\(number) \(unit == .percent ? "%" : "\(unit)")"
        }
    }

    static let policy = [
        PolicyNumber(
            "grace", "grace_seconds", .seconds, "how long a silent wake may take (default 30s)"),
        PolicyNumber(
            "silent-budget", "silent_budget", .pushes,
            "silent pushes to a device in the window (default 3)"),
        PolicyNumber(
            "silent-window", "silent_window_seconds", .seconds, "that window (default 1h)"),
        PolicyNumber(
            "silent-spacing", "silent_spacing_seconds", .seconds,
            "least time between two of them (default 30s)"),
        PolicyNumber(
            "alert-expiration", "alert_expiration_seconds", .seconds,
            "how long APNs may store an alert; 0s: one attempt (default 30d)"),
        PolicyNumber(
            "session-token", "session_token_seconds", .seconds,
            "how long a session token lives (default 30d)"),
        PolicyNumber(
            "receipt-participants", "receipt_participants_max", .participants,
            "no receipts, delivered or read, in larger conversations (default 8)"),
    ]

    private static let learned = [
        PolicyNumber(
            "grace-quantile", "grace_quantile", .percent,
            "per cent of its wakes; 0: the app's grace (default)"),
        PolicyNumber(
            "grace-min", "grace_min_seconds", .seconds, "least learned grace (default 20s)"),
        PolicyNumber(
            "grace-max", "grace_max_seconds", .seconds, "greatest learned grace (default 5m)"),
        PolicyNumber(
            "grace-samples", "grace_samples", .wakes,
            "wakes that must be known before (default 8)"),
        PolicyNumber(
            "budget-min", "silent_budget_min", .pushes,
            "least silent budget of a device (default 0)"),
        PolicyNumber(
            "budget-max", "silent_budget_max", .pushes,
            "most of it; 0: the app's budget (default)"),
        PolicyNumber(
            "demotion-misses", "demotion_misses", .wakes, "missed wakes that demote (default 1)"),
        PolicyNumber("demotion-of", "demotion_of", .wakes, "among so many (default 1)"),
        PolicyNumber(
            "gone-after", "gone_after_days", .days, "unheard of until presumed gone; 0d: never"),
        PolicyNumber(
            "doubt-misses", "doubt_misses", .wakes,
            "missed wakes that cast doubt; 0: none (default 3)"),
        PolicyNumber("doubt-of", "doubt_of", .wakes, "among so many (default 4)"),
        PolicyNumber(
            "doubt-retry", "doubt_retry_hours", .hours,
            "until a silent push is tried (default 12h)"),
    ]

    static let learnedOptions =
        [
            CommandOption(
                "preset", PolicyChoice.names.joined(separator: "|"),
                "all of a named policy, as in rouse fleet; others may be beside it")
        ] + learned.map(\.commandOption) + [
            CommandOption("doubt", "what is learned back to the default policy"),
            CommandOption("classic", "what is learned back to the classic policy"),
        ]

    /// Set by presets in full, and left alone by --doubt and --classic.
    private static let budgetFields = ["silent_budget", "silent_window_seconds"]

    /// A named policy, as the API's fields. How long APNs stores an alert is nothing of a policy
    /// for wakes.
    private static func preset(_ name: String) throws -> [String: JSONValue] {
        var fields: [String: JSONValue] = [:]
        for (key, number) in try PolicyChoice(name).numbers
        where key != "alert_expiration_seconds" {
            fields[key] = .number(Int64(clamping: number))
        }
        return fields
    }

    static func changePolicy(_ arguments: Arguments) throws {
        let given = ["preset", "classic", "doubt"].filter { arguments.has($0) }
        guard given.count <= 1 else {
            throw UsageError("--\(given[0]) and --\(given[1]) exclude each other")
        }
        var fields: [String: JSONValue] = [:]
        if let name = arguments.string("preset") ?? given.first {
            fields = try preset(name)
            if !arguments.has("preset") { for key in budgetFields { fields[key] = nil } }
        }
        for number in learned {
            if let value = try number.read(arguments) { fields[number.field] = value }
        }
        let connection = try AdminConnection(arguments, reads: fields.isEmpty)
        let path = ["apps", arguments.operands[0]]
        let app =
            try fields.isEmpty
            ? connection.ask("GET", path) : connection.ask("PATCH", path, .object(fields))
        var lines = ["policy of \(app["app"].words)"]
        for number in policy + learned { lines.append("  \(number.option): \(number.shown(app))") }
        connection.say(lines.joined(separator: "\n"))
    }

    static let policyOptions =
        policy.map(\.commandOption) + [
            CommandOption(
                "locale", "TAG",
                "language of push texts for devices that speak none of theirs, as en; \"\": none"),
            CommandOption(
                "event-kinds", "A,B,...",
                "the events a publish may name, others are refused; \"\": any"),
        ]

    /// The options given, as the API's fields; the API knows their ranges.
    static func policyFields(_ arguments: Arguments) throws -> [String: JSONValue] {
        var fields: [String: JSONValue] = [:]
        for number in policy {
            if let value = try number.read(arguments) { fields[number.field] = value }
        }
        if let locale = arguments.string("locale") { fields["locale"] = .text(locale) }
        if let kinds = arguments.string("event-kinds") {
            let names = kinds.split(separator: ",", omittingEmptySubsequences: !kinds.contains(","))
            // `order, chat` is written as people write lists.
            fields["event_kinds"] = .list(names.map { JSONValue.text($0.withoutSpaces) })
        }
        return fields
    }
}

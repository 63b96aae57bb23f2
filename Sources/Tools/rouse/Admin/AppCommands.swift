import Foundation

extension Rouse {
    /// `rouse app`: apps, their keys and devices.
    static let appCommands: [Command] = [
        command(
            "app create", "make an app", ["APP"], policyOptions, createApp,
            examples: ["rouse app create shop --grace 45"]),
        command("app list", "list the apps", [], [], listApps),
        command("app show", "show an app: policy, keys, push credentials", ["APP"], [], showApp),
        command(
            "app set", "change an app's policy", ["APP"], policyOptions, setApp,
            examples: ["rouse app set shop --grace 90 --silent-budget 2"]),
        command(
            "app policy", "show or change what an app's devices learn", ["APP"],
            learnedOptions, changePolicy,
            examples: [
                "rouse app policy shop",
                "rouse app policy shop --grace-quantile 85 --demotion-misses 2 --demotion-of 3",
                "rouse app policy shop --doubt",
                "rouse app policy shop --classic",
            ],
            notes: """
                An app begins with the doubt policy: 30 s of grace and between silent pushes, one
                missed wake demotes, and a device that missed 3 of its last 4 is alerted at once,
                until 12 h after its last silent push. The classic policy has 60 s of both and no
                doubt: one grace and one silent budget for all devices. Beyond it a device may
                have a grace of its own (a quantile of the latencies of its wakes, or of those of
                all devices of the app until enough of its own are known), a budget of its own
                (halved by a missed wake, one more for each that synced), and k of n misses to its
                demotion; and one not heard of for long gets one alert a week.
                """),
        command(
            "app remove", "remove an app and everything of it", ["APP"],
            [CommandOption("yes", nil, "really: it cannot be undone")], removeApp),
    ]

    /// A command of the admin API.
    static func command(
        _ name: String, _ summary: String, _ operands: [String], _ options: [CommandOption],
        _ run: @escaping @Sendable (Arguments) throws -> Void, examples: [String] = [],
        notes: String = ""
    ) -> Command {
        Command(
            description: CommandDescription(
                name: name, summary: summary, operands: operands,
                options: options + AdminConnection.options, examples: examples, notes: notes)
        ) { arguments in
            try run(arguments)
            return ExitStatus.success
        }
    }

    private static let policy: [(option: String, field: String, help: String)] = [
        ("grace", "grace_seconds", "seconds a silent wake may go unanswered (default 30)"),
        ("silent-budget", "silent_budget", "silent pushes to a device in the window (default 3)"),
        ("silent-window", "silent_window_seconds", "seconds of that window (default 3600)"),
        ("silent-spacing", "silent_spacing_seconds", "seconds between two of them (default 30)"),
        (
            "alert-expiration", "alert_expiration_seconds",
            "seconds APNs may store an alert; 0: one attempt (default 2592000)"
        ),
        (
            "session-token", "session_token_seconds",
            "seconds a session token lives (default 2592000)"
        ),
        (
            "receipt-participants", "receipt_participants_max",
            "no delivered receipts in larger conversations (default 8)"
        ),
    ]

    private static let learned: [(option: String, field: String, help: String)] = [
        ("grace-quantile", "grace_quantile", "per cent of its wakes; 0: the app's grace (default)"),
        ("grace-min", "grace_min_seconds", "least seconds of a learned grace (default 20)"),
        ("grace-max", "grace_max_seconds", "most seconds of a learned grace (default 300)"),
        ("grace-samples", "grace_samples", "wakes that must be known before (default 8)"),
        ("budget-min", "silent_budget_min", "least silent budget of a device (default 0)"),
        ("budget-max", "silent_budget_max", "most of it; 0: the app's budget (default)"),
        ("demotion-misses", "demotion_misses", "missed wakes that demote (default 1)"),
        ("demotion-of", "demotion_of", "among so many (default 1)"),
        ("gone-after", "gone_after_days", "days unheard of until presumed gone; 0: never"),
        ("doubt-misses", "doubt_misses", "missed wakes that cast doubt; 0: none (default 3)"),
        ("doubt-of", "doubt_of", "among so many (default 4)"),
        ("doubt-retry", "doubt_retry_hours", "hours until a silent push is tried (default 12)"),
    ]

    private static let learnedOptions =
        learned.map { CommandOption($0.option, "N", $0.help) } + [
            CommandOption("doubt", nil, "back to the default policy; others may be beside it"),
            CommandOption("classic", nil, "back to the classic policy; others may be beside it"),
        ]

    /// The classic policy, as the API's fields.
    private static var classic: [String: JSONValue] {
        [
            "grace_quantile": .number(0), "grace_min_seconds": .number(20),
            "grace_max_seconds": .number(300), "grace_samples": .number(8),
            "silent_budget_min": .number(0), "silent_budget_max": .number(0),
            "demotion_misses": .number(1), "demotion_of": .number(1), "gone_after_days": .number(0),
            "doubt_misses": .number(0), "doubt_of": .number(4), "doubt_retry_hours": .number(12),
            "grace_seconds": .number(60), "silent_spacing_seconds": .number(60),
        ]
    }

    /// The default policy, as the API's fields.
    private static var doubt: [String: JSONValue] {
        classic.merging([
            "doubt_misses": .number(3), "grace_seconds": .number(30),
            "silent_spacing_seconds": .number(30),
        ]) { $1 }
    }

    private static func changePolicy(_ arguments: Arguments) throws {
        var fields =
            arguments.has("classic") ? classic : arguments.has("doubt") ? doubt : [:]
        for (option, field, _) in learned {
            if let number = try arguments.number(option, in: Int64(0)...Int64.max) {
                fields[field] = .number(number)
            }
        }
        let connection = try AdminConnection(arguments)
        let path = ["apps", arguments.operands[0]]
        let app =
            try fields.isEmpty
            ? connection.ask("GET", path) : connection.ask("PATCH", path, .object(fields))
        var lines = ["policy of \(app["app"].words)"]
        for (option, field, _) in policy + learned {
            lines.append("  \(option): \(app[field].words)")
        }
        connection.say(lines.joined(separator: "\n"))
    }

    private static let policyOptions =
        policy.map { CommandOption($0.option, "N", $0.help) } + [
            CommandOption(
                "locale", "TAG",
                "language of push texts for devices that speak none of theirs, as en; \"\": none")
        ]

    /// The options given, as the API's fields; the API knows their ranges.
    private static func policyFields(_ arguments: Arguments) throws -> [String: JSONValue] {
        var fields: [String: JSONValue] = [:]
        for (option, field, _) in policy {
            if let number = try arguments.number(option, in: Int64(0)...Int64.max) {
                fields[field] = .number(number)
            }
        }
        if let locale = arguments.string("locale") { fields["locale"] = .text(locale) }
        return fields
    }

    private static func createApp(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        var fields = try policyFields(arguments)
        fields["app"] = .text(app)
        let connection = try AdminConnection(arguments, makesStore: true)
        try connection.ask("POST", ["apps"], .object(fields))
        connection.say(
            """
            app \(app) created; next:
              rouse app issuer-key add \(app) --kid KID --key PUBLIC.pem   its users' tokens
              rouse app api-key create \(app)                              its backend
              rouse app push set \(app) --environment production ...       its APNs key
            """)
    }

    private static func listApps(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        let apps = try connection.ask("GET", ["apps"])["apps"].items
        let rows = apps.map { app in
            [
                app["app"].words, app["created_at"].words,
                String(app["issuer_keys"].items.count), String(app["api_keys"].items.count),
                app["push"].items.map { $0["environment"].words }.joined(separator: ", "),
            ]
        }
        connection.say(
            apps.isEmpty
                ? "no apps; make one with `rouse app create APP`"
                : textTable(["APP", "CREATED", "ISSUER KEYS", "API KEYS", "PUSH"], rows))
    }

    private static func showApp(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        let app = try connection.ask("GET", ["apps", arguments.operands[0]])
        connection.say(text(of: app))
    }

    private static func text(of app: JSONValue) -> String {
        var lines = ["app \(app["app"].words), created \(app["created_at"].words)"]
        for (option, field, _) in policy { lines.append("  \(option): \(app[field].words)") }
        if app["locale"].words != "" { lines.append("  locale: \(app["locale"].words)") }
        for key in app["issuer_keys"].items {
            lines.append("issuer key \(key["kid"].words): \(key["algorithm"].words)")
        }
        for key in app["api_keys"].items {
            lines.append("api key \(key["id"].words), created \(key["created_at"].words)")
        }
        for push in app["push"].items {
            lines.append(
                "push \(push["environment"].words) (\(push["name"].words)): "
                    + (push["kind"].words == "key"
                        ? "key \(push["key_id"].words) of team \(push["team"].words)"
                        : "certificate")
                    + ", topics \(push["topics"].words), at "
                    + "\(push["host"].words):\(push["port"].words)")
        }
        return lines.joined(separator: "\n")
    }

    private static func setApp(_ arguments: Arguments) throws {
        let fields = try policyFields(arguments)
        guard !fields.isEmpty else {
            throw UsageError("nothing to change: give at least one option; see --help")
        }
        let connection = try AdminConnection(arguments)
        let app = try connection.ask("PATCH", ["apps", arguments.operands[0]], .object(fields))
        connection.say(text(of: app))
    }

    private static func removeApp(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        guard arguments.has("yes") else {
            throw UsageError(
                "this removes all users, devices, conversations and keys of \(app) for good; "
                    + "give --yes if that is meant")
        }
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", ["apps", app])
        connection.say("app \(app) removed; its rows follow in the background")
    }

    /// Columns that line up.
    static func textTable(_ head: [String], _ rows: [[String]]) -> String {
        let all = [head] + rows
        let widths = head.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            let cells = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count)
            }
            return trimmed(cells.joined(separator: "  "))
        }.joined(separator: "\n")
    }

    private static func trimmed(_ line: String) -> String {
        String(line.reversed().drop { $0 == " " }.reversed())
    }
}

import Foundation

extension Rouse {
    /// `rouse app`: apps, their keys and devices.
    static let appCommands: [Command] = [
        command(
            "app create", "make an app", ["APP"], policyOptions, createApp,
            examples: ["rouse app create shop --grace 60"]),
        command("app list", "list the apps", [], [], listApps),
        command("app show", "show an app: policy, keys, push credentials", ["APP"], [], showApp),
        command(
            "app set", "change an app's policy", ["APP"], policyOptions, setApp,
            examples: ["rouse app set shop --grace 90 --silent-budget 2"]),
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
        ("grace", "grace_seconds", "seconds a silent wake may go unanswered (default 60)"),
        ("silent-budget", "silent_budget", "silent pushes to a device in the window (default 3)"),
        ("silent-window", "silent_window_seconds", "seconds of that window (default 3600)"),
        ("silent-spacing", "silent_spacing_seconds", "seconds between two of them (default 60)"),
        (
            "alert-expiration", "alert_expiration_seconds",
            "seconds APNs may store an alert; 0: one attempt (default 86400)"
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

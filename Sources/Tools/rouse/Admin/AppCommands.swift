import FoundationEssentials
import JSONTree

extension Rouse {
    /// `rouse app`: apps, their keys and devices.
    static let appCommands: [Command] = [
        command(
            "app create", "make an app", ["APP"],
            policyOptions + [
                CommandOption("new-store", "begin a new store if there is none at the path")
            ], createApp, examples: ["rouse app create shop --grace 45s --config rouse.conf"],
            notes: """
                It goes to the running server, or to the store's file. Where there is neither it
                makes none, unless --new-store says that this is to be the beginning of one.
                """),
        command(
            "app list", "list the apps", [], [], listApps,
            examples: ["rouse app list --config rouse.conf"]),
        command(
            "app show", "show an app: policy, keys, push credentials", ["APP"], [], showApp,
            examples: ["rouse app show shop", "rouse app show shop --json"]),
        command(
            "app set", "change an app's policy", ["APP"], policyOptions, setApp,
            examples: [
                "rouse app set shop --grace 90s --silent-budget 2",
                "rouse app set shop --event-kinds order,chat,offer",
            ]),
        command(
            "app policy", "show or change what an app's devices learn", ["APP"],
            learnedOptions, changePolicy,
            examples: [
                "rouse app policy shop",
                "rouse app policy shop --grace-quantile 85 --demotion-misses 2 --demotion-of 3",
                "rouse app policy shop --preset adaptive",
                "rouse app policy shop --preset doubt",
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
            [CommandOption("yes", nil, "really: it cannot be undone")], removeApp,
            examples: ["rouse app remove shop --yes"]),
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

    private static func createApp(_ arguments: Arguments) throws {
        let app = arguments.operands[0]
        var fields = try policyFields(arguments)
        fields["app"] = .text(app)
        let connection = try AdminConnection(
            arguments, makesStore: arguments.has("new-store"))
        try connection.ask("POST", ["apps"], .object(fields))
        // So that the lines can be run as they stand.
        let place = storeOptions(arguments)
        let steps = [
            ("issuer-key add", " --kid KID --key PUBLIC.pem", "its users' tokens"),
            ("api-key create", "", "its backend"),
            ("push set", " --environment production ...", "its APNs key"),
        ].map { command, options, use in
            (name: "rouse app \(command)" + Terminal.line([app], place + options), text: use)
        }
        connection.say(
            "app \(app) created; next:\n" + CommandDescription.columns(steps))
    }

    /// The options that named the store or its server, to be named again.
    static func storeOptions(_ arguments: Arguments) -> String {
        ["config", "store", "socket"].compactMap { option in
            arguments.string(option).map { " --\(option) \(Terminal.quoted($0))" }
        }.joined()
    }

    private static func listApps(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
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
        let connection = try AdminConnection(arguments, reads: true)
        let app = try connection.ask("GET", ["apps", arguments.operands[0]])
        connection.say(text(of: app))
    }

    private static func text(of app: JSONValue) -> String {
        var lines = ["app \(app["app"].words), created \(app["created_at"].words)"]
        for number in policy { lines.append("  \(number.option): \(number.shown(app))") }
        if app["locale"].words != "" { lines.append("  locale: \(app["locale"].words)") }
        let kinds = app["event_kinds"].items.map(\.words)
        if !kinds.isEmpty { lines.append("  event-kinds: \(kinds.joined(separator: ","))") }
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

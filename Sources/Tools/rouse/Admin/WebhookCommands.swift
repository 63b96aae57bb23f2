import JSONTree
import RouseServer

extension Rouse {
    /// `rouse app webhook`.
    static let webhookCommands: [Command] = [
        command(
            "app webhook add", "tell an app's backend what happens", ["APP"],
            [
                CommandOption("url", "URL", "where deliveries go, http or https"),
                CommandOption("event", "KIND", "what to tell; again for each (default all)"),
            ], addWebhook,
            examples: ["rouse app webhook add shop --url https://shop.example/rouse"],
            notes: "Prints the secret that signs deliveries, this once."),
        command(
            "app webhook list", "list the app's webhooks", ["APP"], [], listWebhooks,
            examples: ["rouse app webhook list shop"]),
        command(
            "app webhook show", "show a webhook and how it does", ["APP", "WEBHOOK"], [],
            showWebhook, examples: ["rouse app webhook show shop WEBHOOK"]),
        command(
            "app webhook set", "change a webhook", ["APP", "WEBHOOK"],
            [
                CommandOption("url", "URL", "where deliveries go"),
                CommandOption("event", "KIND", "what to tell; again for each"),
                CommandOption("active", "yes|no", "yes: deliver, again if it was given up"),
            ], setWebhook, examples: ["rouse app webhook set shop WEBHOOK --active yes"]),
        command(
            "app webhook rotate", "sign with a new secret beside the old one",
            ["APP", "WEBHOOK"],
            [
                CommandOption("end", nil, "the receiver has the new one: forget the old"),
                CommandOption("undo", nil, "the new one was lost: go on with the old alone"),
            ],
            rotateWebhook,
            examples: [
                "rouse app webhook rotate shop WEBHOOK",
                "rouse app webhook rotate shop WEBHOOK --end",
                "rouse app webhook rotate shop WEBHOOK --undo",
            ], notes: "Prints the new secret, this once."),
        command(
            "app webhook test", "send a webhook's receiver a test event", ["APP", "WEBHOOK"], [],
            testWebhook, examples: ["rouse app webhook test shop WEBHOOK"],
            notes: "What came of it is told by `rouse app webhook show`."),
        command(
            "app webhook remove", "end a webhook", ["APP", "WEBHOOK"], [], removeWebhook,
            examples: ["rouse app webhook remove shop WEBHOOK"]),
    ]

    private static func path(_ arguments: Arguments) -> [String] {
        ["apps", arguments.operands[0], "webhooks"] + arguments.operands.dropFirst()
    }

    private static func events(_ arguments: Arguments) -> JSONValue? {
        let kinds = arguments.strings("event")
        return kinds.isEmpty ? nil : .list(kinds.map { .text($0) })
    }

    private static func addWebhook(_ arguments: Arguments) throws {
        var fields: [String: JSONValue] = ["url": .text(try arguments.required("url"))]
        fields["events"] = events(arguments)
        let connection = try AdminConnection(arguments)
        let webhook = try connection.ask("POST", path(arguments), .object(fields)) { webhook in
            let id = webhook["id"].words
            let words = Terminal.line([arguments.operands[0], id], storeOptions(arguments))
            return "webhook \(id) is live, and its secret is lost: remove it by "
                + "`rouse app webhook remove\(words)`"
        }
        warn(connection, of: webhook["url"].words, arguments)
        connection.remark("webhook \(webhook["id"].words); its secret, shown this once:")
        connection.say(webhook["secret"].words)
    }

    private static func listWebhooks(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        let webhooks = try connection.ask("GET", path(arguments))["webhooks"].items
        let rows = webhooks.map { webhook in
            ["id", "state", "attempts", "last_success_at", "url"].map { webhook[$0].words }
        }
        connection.say(
            rows.isEmpty
                ? "no webhooks"
                : textTable(["WEBHOOK", "STATE", "FAILED", "LAST SUCCESS", "URL"], rows))
    }

    private static func showWebhook(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        let webhook = try connection.ask("GET", path(arguments))
        connection.say(text(of: webhook))
    }

    private static func text(of webhook: JSONValue) -> String {
        let fields = [
            "url", "events", "state", "reason", "state_since", "created_at", "secret_count",
            "attempts", "failing_since", "last_status", "last_error", "last_success_at",
            "dropped",
        ]
        let lines = fields.compactMap { field in
            webhook[field] == .null ? nil : "  \(field): \(webhook[field].words)"
        }
        return (["webhook \(webhook["id"].words)"] + lines).joined(separator: "\n")
    }

    private static func setWebhook(_ arguments: Arguments) throws {
        var fields: [String: JSONValue] = [:]
        if let url = arguments.string("url") { fields["url"] = .text(url) }
        fields["events"] = events(arguments)
        if let word = arguments.string("active") { fields["active"] = .flag(word == "yes") }
        guard !fields.isEmpty else {
            throw UsageError("nothing to change: give at least one option; see --help")
        }
        let connection = try AdminConnection(arguments)
        let webhook = try connection.ask("PATCH", path(arguments), .object(fields))
        connection.say(text(of: webhook))
        if fields["url"] != nil { warn(connection, of: webhook["url"].words, arguments) }
    }

    /// Says so where no delivery would leave.
    private static func warn(
        _ connection: AdminConnection, of url: String, _ arguments: Arguments
    ) {
        guard let settings = try? servedConfiguration(arguments),
            let problem = WebhookAddress.problem(of: url, settings)
        else { return }
        connection.remark("rouse: warning: \(problem)")
        if arguments.string("config") == nil {
            connection.remark("  (by the default settings: --config names those of the server)")
        }
    }

    private static func rotateWebhook(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        if arguments.has("end") {
            try connection.ask("DELETE", path(arguments) + ["secrets", "second"])
            return connection.say("deliveries are signed with the newest secret only")
        }
        if arguments.has("undo") {
            try connection.ask("DELETE", path(arguments) + ["secrets", "newest"])
            return connection.say("deliveries are signed with the old secret only")
        }
        let webhook = try connection.ask(
            "POST", path(arguments) + ["secrets"], .object([:])
        ) { webhook in
            let words = Terminal.line(arguments.operands, " --undo" + storeOptions(arguments))
            return "webhook \(webhook["id"].words) signs with the old secret and the new one, "
                + "which is lost: forget the new one by `rouse app webhook rotate\(words)` and "
                + "rotate again"
        }
        connection.remark("deliveries are signed with both now; the new secret, shown this once:")
        connection.say(webhook["secret"].words)
    }

    private static func testWebhook(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        let event = try connection.ask("POST", path(arguments) + ["test"])
        connection.say("event \(event["id"].words) is on its way")
        let words = Terminal.line(arguments.operands, storeOptions(arguments))
        connection.remark("what came of it: `rouse app webhook show\(words)`")
    }

    private static func removeWebhook(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", path(arguments))
        connection.say("webhook \(arguments.operands[1]) removed")
    }
}

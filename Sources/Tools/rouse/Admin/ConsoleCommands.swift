import JSONTree
import RouseServer

extension Rouse {
    /// `rouse console`: who may into the console, and what was changed.
    static let consoleCommands: [Command] = [
        command(
            "console token", "make a token that lets an operator into the console", [],
            [
                CommandOption("role", "read-only|admin", "what it allows (default read-only)"),
                CommandOption("expires", "TIME", "how long, as 8h or 30d (default 8h)"),
                CommandOption("label", "TEXT", "whose it is; the audit log names it"),
            ], makeConsoleToken,
            examples: ["rouse console token --role admin --expires 8h --label anna"],
            notes: """
                Prints the token, this once: the store keeps a hash of it. The console is at
                /console of console.host and console.port; it is off unless the port is set.
                """),
        command(
            "console token list", "list the console tokens", [], [], listConsoleTokens,
            examples: ["rouse console token list --config rouse.conf"]),
        command(
            "console token revoke", "end a console token and the sessions it opened", ["TOKEN"],
            [], revokeConsoleToken, examples: ["rouse console token revoke TOKEN"],
            notes: "TOKEN is its id, as the list shows it."),
        command(
            "console audit", "list what operators changed, newest first", [],
            [CommandOption("limit", "NUMBER", "how many changes, 1 to 500 (default 50)")],
            listAudit, examples: ["rouse console audit --limit 20 --config rouse.conf"],
            notes: """
                Every change through the console, the admin socket or a command on the store,
                written down before it is carried out; secrets are left out. 90 days, and of more
                than 10,000 changes the newest.
                """),
    ]

    private static func makeConsoleToken(_ arguments: Arguments) throws {
        var fields: [String: JSONValue] = [:]
        if let role = arguments.string("role") { fields["role"] = .text(role) }
        if let label = arguments.string("label") { fields["label"] = .text(label) }
        if let text = arguments.string("expires") {
            guard let seconds = Measure.seconds(text), (60...2_592_000).contains(seconds) else {
                throw UsageError("--expires must be a time from 1m to 30d, not `\(text)`")
            }
            fields["expires_seconds"] = .number(Int64(seconds))
        }
        let connection = try AdminConnection(arguments)
        let token = try connection.ask("POST", ["console", "tokens"], .object(fields)) { token in
            let id = token["id"].words
            return "console token \(id) is live, and its secret is lost: revoke it by "
                + "`rouse console token revoke \(id)\(storeOptions(arguments))`"
        }
        connection.remark(
            "token \(token["id"].words), \(token["role"].words), until "
                + "\(token["expires_at"].words); shown this once:")
        connection.say(token["secret"].words)
        if let way = wayToConsole(arguments) { connection.remark(way) }
    }

    /// Where the token is taken, as far as the settings that were given say so.
    private static func wayToConsole(_ arguments: Arguments) -> String? {
        guard arguments.string("config") != nil,
            let settings = try? servedConfiguration(arguments)
        else { return nil }
        guard let port = settings.consolePort else {
            return "the console is off: these settings have no console.port"
        }
        let host =
            settings.consoleHost.contains(":")
            ? "[\(settings.consoleHost)]"
            : settings.consoleHost
        return port == 0
            ? "the console's port is told in the server's log" : "http://\(host):\(port)/console/"
    }

    private static func listConsoleTokens(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments, reads: true)
        let tokens = try connection.ask("GET", ["console", "tokens"])["tokens"].items
        let rows = tokens.map { token in
            ["id", "role", "expires_at", "label"].map { token[$0].words }
        }
        connection.say(
            rows.isEmpty
                ? "no console tokens" : textTable(["TOKEN", "ROLE", "UNTIL", "LABEL"], rows))
    }

    private static func revokeConsoleToken(_ arguments: Arguments) throws {
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", ["console", "tokens", arguments.operands[0]])
        connection.say("console token \(arguments.operands[0]) revoked")
    }

    private static func listAudit(_ arguments: Arguments) throws {
        let limit: Int = try arguments.number("limit", in: 1...500) ?? 50
        let connection = try AdminConnection(arguments, reads: true)
        let changes = try connection.ask("GET", ["audit"], limit: limit)["changes"].items
        let rows = changes.map { change in
            let status = change["status"].words
            let isLost = change["lost"].words == "true"
            return ["at", "actor", "action"].map { change[$0].words }
                + [
                    status.isEmpty ? (isLost ? "not known" : "under way") : status,
                    change["detail"].words,
                ]
        }
        connection.say(
            rows.isEmpty
                ? "no changes" : textTable(["AT", "WHO", "WHAT", "STATUS", "WITH"], rows))
    }
}

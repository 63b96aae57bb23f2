extension Rouse {
    /// `rouse app suspend` and `resume`.
    static let appAccessCommands: [Command] = [
        command(
            "app suspend", "let nobody of an app in and send no pushes for it", ["APP"], [],
            { try changeApp($0, "suspend", "is suspended") },
            examples: ["rouse app suspend shop"]),
        command(
            "app resume", "let an app's users in again", ["APP"], [],
            { try changeApp($0, "resume", "is served again") },
            examples: ["rouse app resume shop"]),
    ]

    /// `rouse app user`.
    static let userAccessCommands: [Command] = [
        command(
            "app user revoke", "end all sessions of a user and forget their tokens",
            ["APP", "USER"], [],
            { try changeUser($0, ["sessions", "revoke"], "is logged out everywhere") },
            examples: ["rouse app user revoke shop anna"]),
        command(
            "app user suspend", "let a user in no more and send no pushes", ["APP", "USER"], [],
            { try changeUser($0, ["suspend"], "is suspended") },
            examples: ["rouse app user suspend shop anna"]),
        command(
            "app user resume", "let a user in again", ["APP", "USER"], [],
            { try changeUser($0, ["resume"], "may log in again") },
            examples: ["rouse app user resume shop anna"]),
    ]

    private static func changeApp(
        _ arguments: Arguments, _ verb: String, _ said: String
    ) throws {
        let connection = try AdminConnection(arguments)
        try connection.ask("POST", ["apps", arguments.operands[0], verb])
        connection.say("\(arguments.operands[0]) \(said)")
    }

    private static func changeUser(
        _ arguments: Arguments, _ verb: [String], _ said: String
    ) throws {
        let (app, user) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments)
        try connection.ask("POST", ["apps", app, "users", user] + verb)
        connection.say("\(user) \(said)")
    }
}

import JSONTree

extension Rouse {
    /// `rouse app devices` and `device`.
    static let deviceCommands: [Command] = [
        command(
            "app devices", "list a user's devices", ["APP", "USER"], [], listDevices,
            examples: ["rouse app devices shop anna"]),
        command(
            "app device show", "show a device", ["APP", "DEVICE"], [], showDevice,
            examples: ["rouse app device show shop 0190a1b2-c3d4-7123-8456-789abcdef013"]),
        command(
            "app device remove", "end a device's sessions and forget its push token",
            ["APP", "DEVICE"], [], removeDevice,
            examples: ["rouse app device remove shop 0190a1b2-c3d4-7123-8456-789abcdef013"]),
    ]

    private static func listDevices(_ arguments: Arguments) throws {
        let (app, user) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments, reads: true)
        let devices = try connection.ask("GET", ["apps", app, "users", user, "devices"])
        let rows = devices["devices"].items.map { device in
            [
                device["id"].words, device["reachability"].words,
                "\(device["feed"]["applied"].words)/\(device["feed"]["head"].words)",
                device["last_seen_at"].words,
                "\(device["client"]["name"].words) \(device["client"]["version"].words)",
            ]
        }
        connection.say(
            rows.isEmpty
                ? "\(user) has no devices"
                : textTable(["DEVICE", "REACHABILITY", "APPLIED", "LAST SEEN", "CLIENT"], rows))
    }

    private static func showDevice(_ arguments: Arguments) throws {
        let (app, id) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments, reads: true)
        let device = try connection.ask("GET", ["apps", app, "devices", id])
        let token = device["push_token"]
        var lines = [
            "device \(device["id"].words) of \(device["user"].words): "
                + device["reachability"].words,
            "  feed: applied \(device["feed"]["applied"].words) of \(device["feed"]["head"].words)",
            "  push token: "
                + (token["is_held"] == .flag(true)
                    ? "held, \(token["environment"].words), \(token["topic"].words), confirmed "
                        + token["confirmed_at"].words
                    : "none"),
            "  client: \(device["client"]["name"].words) \(device["client"]["version"].words)",
            "  settings: \(device["settings"].words)",
            "  created \(device["created_at"].words), last seen \(device["last_seen_at"].words)",
        ]
        for session in device["sessions"].items { lines.append("  session: \(session.words)") }
        connection.say(lines.joined(separator: "\n"))
    }

    private static func removeDevice(_ arguments: Arguments) throws {
        let (app, id) = (arguments.operands[0], arguments.operands[1])
        let connection = try AdminConnection(arguments)
        try connection.ask("DELETE", ["apps", app, "devices", id])
        connection.say("device \(id) is logged out and gets no pushes; it may log in anew")
    }
}

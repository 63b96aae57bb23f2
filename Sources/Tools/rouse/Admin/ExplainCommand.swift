import JSONTree

extension Rouse {
    /// `rouse explain`.
    static let explainCommands: [Command] = [
        command(
            "explain", "say why devices were pushed to for a message, or were not", [],
            [
                CommandOption("app", "APP", "the app"),
                CommandOption("message", "ID", "the message or announcement"),
                CommandOption("user", "USER", "only this recipient; an announcement needs it"),
                CommandOption("device", "ID", "only this device"),
            ], explain,
            examples: [
                "rouse explain --app shop --message 0190a1b2-c3d4-7123-8456-789abcdef013",
                "rouse explain --app shop --message 0190a1b2-... --user anna",
            ])
    ]

    private static func explain(_ arguments: Arguments) throws {
        let app = try arguments.required("app")
        let message = try arguments.required("message")
        let user = arguments.string("user").map { ["users", $0] } ?? []
        let connection = try AdminConnection(arguments, reads: true)
        let found = try connection.ask(
            "GET", ["apps", app] + user + ["messages", message, "explain"])
        connection.say(timeline(found, device: arguments.string("device")))
    }

    /// - Parameter device: the only one to show; `nil`: all.
    private static func timeline(_ found: JSONValue, device only: String?) -> String {
        var lines = [
            "message \(found["message"].words), \(found["urgency"].words), "
                + "sent \(found["sent_at"].words)"
        ]
        let trace = found["trace"].words
        if !trace.isEmpty { lines.append("trace \(trace)") }
        for subject in found["subjects"].items {
            let device = subject["device"].words
            if let only, !device.isEmpty, device != only { continue }
            lines.append(
                "\(subject["user"].words)" + (device.isEmpty ? "" : ", device \(device)"))
            for step in subject["steps"].items {
                let at = step["at"].words
                var line = "  \(at.isEmpty ? "now" : at)  \(step["reason"].words)"
                let until = step["until"].words
                if !until.isEmpty { line += ", until \(until)" }
                let answer = step["answer"].words
                if !answer.isEmpty { line += ", APNs: \(step["status"].words) \(answer)" }
                let push = step["push"].words
                if !push.isEmpty { line += ", push \(push)" }
                lines.append(line)
            }
        }
        if found["is_cut"] == .flag(true) {
            lines.append("there are more recipients: name one with --user")
        }
        return lines.joined(separator: "\n")
    }
}

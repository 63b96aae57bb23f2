import Scenario

/// `rouse demo`: the story of waking, played for real.
extension Rouse {
    static let demoCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "demo", summary: "play the story of waking over real sockets",
                options: [
                    CommandOption("once", "end after the story; 0 only if every step happened"),
                    CommandOption("json", "one JSON object a step on stdout, and one at the end"),
                    CommandOption(
                        "patience", "SECONDS", "what was not seen by then did not happen (45)"),
                    CommandOption(
                        "revoke-key", "revoke the key that signs pushes; the run must fail"),
                    CommandOption("keep", "keep the folder with stores and logs"),
                ],
                examples: ["rouse demo --once", "rouse demo --once --json"],
                notes: """
                    It starts a server and an APNs simulator of its own, with free ports and a
                    temporary folder, and three devices that sync over TLS. Times are seconds since
                    the beginning. Without --once both run on after the story, until Ctrl-C.
                    """),
            run: { try demo($0) })
    ]

    private static func demo(_ arguments: Arguments) throws -> Int32 {
        var options = DemoOptions()
        options.executable = try ownExecutable()
        options.keepsFolder = arguments.has("keep")
        options.patienceSeconds = try arguments.number("patience", in: 1...3_600) ?? 45
        options.revokesKey = arguments.has("revoke-key")
        options.keepsServing = !arguments.has("once")
        let isJSON = arguments.has("json")
        let hasColour = Terminal.hasColour
        options.tell = { moment in
            if !isJSON {
                Terminal.print(moment.text(colour: hasColour))
            } else if let line = moment.json {
                Terminal.print(line)
            }
        }
        options.remark = { Terminal.complain($0) }
        let report = try Demo.run(options)
        guard let failed = report.failedStep else { return ExitStatus.success }
        Terminal.complain(
            "rouse demo: the step `\(failed)` did not happen: \(report.failure ?? "")")
        return ExitStatus.failure
    }
}

import APNsSimulator
import FoundationEssentials
import RouseServer

extension Rouse {
    /// `rouse push`: how it stands with the way to APNs.
    static let pushCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "push check",
                summary: "try push credentials out and say what is wrong with them",
                options: [
                    CommandOption("config", "FILE", "the server's configuration"),
                    CommandOption("store", "PATH", "the store's file (default rouse.db)"),
                    CommandOption("app", "APP", "only of this app"),
                    CommandOption("environment", "production|development", "only of this one"),
                    CommandOption("name", "NAME", "only those of this name"),
                    CommandOption("json", nil, "print the findings as JSON"),
                ],
                examples: ["rouse push check --config rouse.conf --app shop"],
                notes: """
                    It signs, connects and sends one push for each topic to a token that cannot
                    exist; that APNs refuses only the token proves that key, team, topic and
                    environment are right. It reads the store's file itself, also while a server
                    runs; the provider token it sends is the server's, or kept for it. Exit
                    status: 0 all is right, 1 something is wrong, 69 the store cannot be read. Do
                    not run it in a loop: APNs slows down senders of wrong tokens.
                    """),
            run: { try checkPush($0) })
    ]

    private static func checkPush(_ arguments: Arguments) throws -> Int32 {
        let place =
            try arguments.string("store").map { .file($0) }
            ?? servedConfiguration(arguments).storePlace
        let checks = try check(place, arguments)
        guard !checks.isEmpty else {
            throw AdminRefusal(
                description: "there is no such push credential in \(place.name); "
                    + "`rouse app push set` adds one")
        }
        if arguments.has("json") {
            let encoder = JSONEncoder()
            encoder.keyEncodingStrategy = .convertToSnakeCase
            encoder.outputFormatting = [.sortedKeys]
            Terminal.print(String(decoding: try encoder.encode(checks), as: UTF8.self))
        } else {
            Terminal.print(checks.map { text(of: $0) }.joined(separator: "\n\n"))
        }
        return checks.allSatisfy(\.isGood) ? ExitStatus.success : ExitStatus.failure
    }

    private static func check(
        _ place: StorePlace, _ arguments: Arguments
    ) throws -> [CredentialCheck] {
        if case .file(let path) = place, !FileManager.default.fileExists(atPath: path) {
            throw AdminRefusal(
                description: "there is no store at \(path); give --store, or --config of the "
                    + "server, which makes it at its first start",
                status: ExitStatus.unavailable)
        }
        let upgrades = StoreUpgrades(refuses: true)
        do {
            return try CredentialCheck.run(
                place: place, app: arguments.string("app"),
                environment: arguments.string("environment"), name: arguments.string("name"),
                upgrades: upgrades)
        } catch {
            if upgrades.hasRefused {
                throw AdminRefusal(description: ErrorWords.of(error), status: ExitStatus.badData)
            }
            throw AdminRefusal(
                description:
                    "\(place.name) cannot be read: \(ErrorWords.of(error)); is it the "
                    + "store of a server of this version, and yours to read?",
                status: ExitStatus.unavailable)
        }
    }

    private static func text(of check: CredentialCheck) -> String {
        let head = "\(check.app), \(check.environment), \(check.name): "
        let lines = check.findings.map {
            "  \($0.isGood ? "ok   " : "WRONG") \($0.check): \($0.text)"
        }
        return ([head + (check.isGood ? "good" : "NOT good")] + lines).joined(separator: "\n")
    }
}

import FoundationEssentials
import Model
import RouseServer

/// `rouse import`, `rouse export`, `rouse migrate` and `rouse epoch new`: stores in PostgreSQL.
extension Rouse {
    static let databaseOptions = [
        CommandOption("config", "FILE", "the nodes' configuration, which names the database"),
        CommandOption(
            "set", "KEY=VALUE", "one setting, above the file", choices: settingChoices),
        CommandOption("json", "end with one JSON object on stdout"),
    ]

    static let storeCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "import", summary: "take a store from a file into PostgreSQL",
                operands: ["FILE"], options: databaseOptions,
                examples: [
                    "rouse import --config node.conf rouse.db",
                    "rouse import --set store.postgres=postgresql://rouse@db/rouse rouse.db",
                ],
                notes: """
                    Stop the server of FILE first, and start no node before this has ended. All of
                    it is one transaction: a kill at any moment leaves the database empty. Cursors,
                    numbers of mutations and session tokens stay what they are: devices go on where
                    they were. FILE keeps its rows, but is brought to this program's
                    schema where an earlier one has made it, which is said: copy it before
                    if you may go back. The database is looked at first. Do not serve it again.
                    Exit status: 69 FILE or the database cannot be used, or is in use.
                    """),
            run: { arguments in
                try copy(
                    "import", arguments, from: .file(arguments.operands[0]),
                    to: try database(arguments))
            }),
        Command(
            description: CommandDescription(
                name: "export", summary: "take a store from PostgreSQL into a file",
                operands: ["FILE"], options: databaseOptions,
                examples: ["rouse export --config node.conf rouse.db"],
                notes: """
                    Stop all nodes first. FILE must not exist, and is a store that `rouse serve`
                    takes with `store.path`. What is said of `rouse import` holds in this
                    direction, too.
                    Exit status: 69 the database or FILE cannot be used, or is in use.
                    """),
            run: { arguments in
                try copy(
                    "export", arguments, from: try database(arguments),
                    to: .file(arguments.operands[0]))
            }),
        Command(
            description: CommandDescription(
                name: "migrate", summary: "bring a store's tables to this program's schema",
                options: databaseOptions + [
                    CommandOption("store", "PATH", "a store's file, in place of what is configured")
                ],
                examples: [
                    "rouse migrate --config owner.conf", "rouse migrate --store rouse.db",
                ],
                notes: """
                    There is no way back but a backup: make one before. A file is also brought up
                    to date by the next start of its server; stop the server for this command. In
                    PostgreSQL it makes the tables, too.
                    For nodes with `store.migrate = off`, whose role may not make tables: this one
                    does, with a role that owns the schema. Nodes of the version before go on
                    meanwhile; a node that finds a newer schema than it knows refuses to start.
                    Exit status: 69 the store cannot be used, or a server has the file open.
                    """),
            run: { try migrate($0) }),
        Command(
            description: CommandDescription(
                name: "epoch new", summary: "tell a store that was taken back of its lost end",
                options: databaseOptions,
                examples: ["rouse epoch new --config node.conf"],
                notes: """
                    For a database that was recovered to an earlier moment, or loaded from a dump;
                    `rouse restore` does it by itself. Stop all nodes first, and start none between
                    the recovery and this. Devices know what the store has lost: they learn at their
                    next connection that history has changed, take a snapshot, and send their own
                    messages of the last 7 days again. Every user logs in anew, and every operator
                    of the console with a new token; numbers of webhooks' events are passed over;
                    campaigns that were not over are paused. Without it devices would take new
                    entries for those they have, and miss them.
                    Exit status: 69 the store cannot be used, or a node is there.
                    """),
            run: { try drawEpoch($0) }),
    ]

    private static func drawEpoch(_ arguments: Arguments) throws -> Int32 {
        let place = try servedConfiguration(arguments).storePlace
        let drawn = try NewEpoch.draw(in: place, upgrades: upgrades(of: "epoch new"))
        if arguments.has("json") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            Terminal.print(String(decoding: try encoder.encode(drawn), as: UTF8.self))
        } else {
            Terminal.print(
                "\(place.name): new epoch: the devices of \(drawn.users) users take a "
                    + "snapshot; \(drawn.tokens) session tokens dropped")
            sayEnded(consoleTokens: drawn.consoleTokens)
        }
        return ExitStatus.success
    }

    static func database(_ arguments: Arguments) throws -> StorePlace {
        let place = try servedConfiguration(arguments).storePlace
        guard case .postgres = place else {
            throw AdminRefusal(
                description: "no database is named: give --config with store.postgres, or --set "
                    + "store.postgres=postgresql://...",
                status: ExitStatus.configuration)
        }
        return place
    }

    private static func copy(
        _ command: String, _ arguments: Arguments, from source: StorePlace, to target: StorePlace
    ) throws -> Int32 {
        let progress = Progress()
        var shown: UInt64 = 0
        let copied = try StoreCopy.run(
            from: source, to: target,
            upgrades: upgrades(of: command)
        ) { table, rows in
            guard rows >= shown + 100_000 else { return }
            shown = rows
            progress.show("\(rows) rows, \(table)")
        }
        progress.end()
        if arguments.has("json") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys]
            Terminal.print(String(decoding: try encoder.encode(copied), as: UTF8.self))
        } else {
            Terminal.print(
                "\(target.name): \(copied.rows) rows of \(copied.tables) tables, from "
                    + source.name)
        }
        return ExitStatus.success
    }

    /// Says what becomes of a store of an older schema.
    private static func upgrades(of command: String) -> StoreUpgrades {
        StoreUpgrades { Terminal.complain("rouse \(command): \($0)") }
    }

    private static func migrate(_ arguments: Arguments) throws -> Int32 {
        var configuration = try servedConfiguration(arguments)
        configuration.postgresMigrates = true
        if let store = arguments.string("store") {
            (configuration.storePath, configuration.postgres) = (store, "")
        } else if arguments.string("config") == nil {
            _ = try database(arguments)
        }
        let upgrade = try StoreMigration.run(configuration.storePlace)
        let name = configuration.storePlace.name
        if arguments.has("json") {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            Terminal.print(
                String(decoding: try encoder.encode(Migrated(name, upgrade)), as: UTF8.self))
        } else {
            let words =
                switch upgrade {
                case nil: "the tables were those of this program already"
                case .create: "the tables were made"
                case .migrate(let from, let to): "brought from schema \(from) to \(to)"
                }
            Terminal.print("\(name): \(words)")
        }
        return ExitStatus.success
    }

    /// The object that `rouse migrate --json` prints: schemas where there was something to do.
    private struct Migrated: Encodable {
        let store: String
        let change: String
        var from: Int?
        var to: Int?

        init(_ name: String, _ upgrade: StoreUpgrade?) {
            store = name
            switch upgrade {
            case nil: change = "none"
            case .create: change = "created"
            case .migrate(let from, let to):
                change = "migrated"
                (self.from, self.to) = (from, to)
            }
        }
    }
}

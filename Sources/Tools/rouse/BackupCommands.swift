import EventLoop
import FoundationEssentials
import RouseServer

/// `rouse backup` and `rouse restore`.
extension Rouse {
    private static let storeOptions = [
        CommandOption("store", "PATH", "the store's file (default rouse.db)"),
        CommandOption("config", "FILE", "the server's configuration, which names it"),
        CommandOption("json", "end with one JSON object on stdout"),
    ]

    static let backupCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "backup", summary: "copy the store, also of a running server",
                operands: ["FILE"],
                options: storeOptions + [
                    CommandOption("force", "replace FILE if it exists and is a plain file"),
                    CommandOption("verify", "check FILE, a backup, and copy nothing"),
                ],
                examples: [
                    "rouse backup --config rouse.conf /backups/rouse-monday.backup",
                    "rouse backup --verify /backups/rouse-monday.backup",
                ],
                notes: """
                    The server goes on: the copy holds everything acknowledged before it began, and
                    nothing of what came later. FILE appears under its name only when it is whole,
                    checked and on disk, readable by its owner alone; until then it is
                    FILE.partial, which SIGHUP, SIGINT and SIGTERM remove. It holds message texts
                    and push keys: keep it like the store. Copy it to another machine; the only
                    disk is what a backup is for. --force leaves devices, pipes, directories and
                    symbolic links alone: name the file that a link leads to.
                    A store or a backup that an older program has made is taken, too, and keeps its
                    schema; one of a newer program is refused.
                    Exit status: 65 --verify found it bad, or the store is, 69 there is no store,
                    73 not written, 78 the store is in PostgreSQL.
                    """),
            run: { try backup($0) }),
        Command(
            description: CommandDescription(
                name: "restore", summary: "put a backup in the store's place",
                operands: ["FILE"], options: storeOptions,
                examples: ["rouse restore --config rouse.conf /backups/rouse-monday.backup"],
                notes: """
                    Stop the server first. FILE is checked before anything is touched; the store
                    that was there is kept beside the new one; a kill at any moment leaves one of
                    the two. What was acknowledged after the backup is lost on the server: devices
                    learn at their next connection that history has changed, keep what they have,
                    take a snapshot, and send their own messages of the last 7 days again. Every
                    user logs in anew, and every operator of the console with a new token. Keys,
                    push credentials, suspensions and deletions of users are as of the backup:
                    repeat what was changed since. What an older program has made is brought to
                    this program's schema, which is said; FILE stays as it is.
                    Exit status: 65 FILE is no sound backup, 69 a server has the store open or it
                    cannot be written, 78 the store is in PostgreSQL.
                    """),
            run: { try restore($0) }),
    ]

    private static func storePath(_ arguments: Arguments) throws -> String {
        if let path = arguments.string("store") { return path }
        let configuration = try servedConfiguration(arguments)
        guard configuration.postgres.isEmpty else {
            throw AdminRefusal(
                description: "the store is in PostgreSQL: use what backs up that database, for "
                    + "one pg_dump of the schema \(configuration.postgresSchema)",
                status: ExitStatus.configuration)
        }
        return configuration.storePath
    }

    private static func backup(_ arguments: Arguments) throws -> Int32 {
        let file = arguments.operands[0]
        let contents: Backup.Contents
        if arguments.has("verify") {
            contents = try Backup.verify(file)
        } else {
            let progress = Progress()
            contents = try Backup.make(
                store: try storePath(arguments), to: file, replaces: arguments.has("force"),
                progress: { copied, total in
                    let percent = total > 0 ? Double(copied) * 100 / Double(total) : 100
                    progress.show(
                        "copied \(copied >> 20) of \(total >> 20) MiB (\(Int(percent)) %)")
                }, making: { Signals.removeAtEnd($0) })
            progress.end()
        }
        if arguments.has("json") {
            Terminal.print(try json(contents, file))
        } else {
            Terminal.print("\(file): \(words(contents))")
        }
        return ExitStatus.success
    }

    private static func restore(_ arguments: Arguments) throws -> Int32 {
        let file = arguments.operands[0]
        let store = try storePath(arguments)
        let restored = try Backup.restore(file, to: store)
        if arguments.has("json") {
            Terminal.print(try json(restored.contents, store, restored))
            return ExitStatus.success
        }
        Terminal.print(
            """
            \(store): \(words(restored.contents))
            new epoch: the devices of \(restored.users) users take a snapshot; \
            \(restored.tokens) session tokens dropped
            """)
        sayEnded(consoleTokens: restored.consoleTokens)
        if restored.contents.schema < Backup.schema {
            Terminal.print("brought from schema \(restored.contents.schema) to \(Backup.schema)")
        }
        if let kept = restored.kept { Terminal.print("the store before: \(kept)") }
        return ExitStatus.success
    }

    /// Also tells operators, whose console asks for a token again.
    static func sayEnded(consoleTokens: UInt64) {
        guard consoleTokens > 0 else { return }
        Terminal.print(
            "\(consoleTokens) console tokens dropped; make new ones with `rouse console token`")
    }

    private static func words(_ contents: Backup.Contents) -> String {
        let time = contents.asOf.map { "as of \(text($0))" } ?? "never served"
        return "\(contents.bytes) bytes, \(time); \(contents.apps) apps, \(contents.users) users, "
            + "\(contents.devices) devices, \(contents.conversations) conversations, "
            + "\(contents.messages) messages"
            + (contents.schema < Backup.schema ? "; schema \(contents.schema)" : "")
    }

    private static func text(_ time: Date) -> String {
        time.formatted(.iso8601)
    }

    /// The object `--json` ends with.
    private struct Report: Encodable {
        let file: String
        let bytes: UInt64
        let asOf: String?
        let apps: UInt64
        let users: UInt64
        let devices: UInt64
        let conversations: UInt64
        let messages: UInt64
        let schema: Int
        let kept: String?
        let tokensDropped: UInt64?
        let consoleTokensDropped: UInt64?
    }

    private static func json(
        _ contents: Backup.Contents, _ file: String, _ restored: Backup.Restored? = nil
    ) throws -> String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let report = Report(
            file: file, bytes: contents.bytes, asOf: contents.asOf.map(text), apps: contents.apps,
            users: contents.users, devices: contents.devices,
            conversations: contents.conversations, messages: contents.messages,
            schema: contents.schema, kept: restored?.kept, tokensDropped: restored?.tokens,
            consoleTokensDropped: restored?.consoleTokens)
        return String(decoding: try encoder.encode(report), as: UTF8.self)
    }
}

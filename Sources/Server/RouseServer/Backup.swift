import Crypto
import Feed
public import FoundationEssentials
import Model
import SQLiteStore

/// Backups of a server's store: `rouse backup` and `rouse restore`.
public enum Backup {
    /// What a backup holds.
    public struct Contents: Equatable, Sendable {
        public var bytes: UInt64
        public var apps: UInt64
        public var users: UInt64
        public var devices: UInt64
        public var conversations: UInt64
        public var messages: UInt64
        /// The number of its schema, this program's or an older one.
        public var schema: Int
        /// When a server last said, every two seconds, that it was there: the backup holds
        /// everything acknowledged before. `nil`: no server has had the store yet.
        public var asOf: Date?
    }

    /// The schema that this program gives a store: a restored one has it, too.
    public static let schema = Schema.tables.map(\.schema).max() ?? 1

    /// What a restore came to.
    public struct Restored: Equatable, Sendable {
        public var contents: Contents
        /// Where the store that was there is now; `nil`: there was none.
        public var kept: String?
        /// Feeds whose cursors are void, and session tokens that let nobody in any more.
        public var users: UInt64
        public var tokens: UInt64
        /// Tokens of operators, which let nobody into the console any more.
        public var consoleTokens: UInt64
    }

    /// Copies a store, also one that a server writes, to `path`, checks the copy and gives it its
    /// name. A store of an older schema and its copy keep that.
    ///
    /// - Parameters:
    ///   - progress: bytes copied, and of how many.
    ///   - making: told the files that are in the making, and none when the copy is whole.
    /// - Throws: `BackupError`; nothing has changed.
    public static func make(
        store: String, to path: String, replaces: Bool,
        progress: (UInt64, UInt64) -> Void = { _, _ in }, making: ([String]) -> Void = { _ in }
    ) throws(BackupError) -> Contents {
        guard FileManager.default.fileExists(atPath: store) else {
            throw BackupError(
                .store, "there is no store at \(store); give --store or --config")
        }
        if let problem = SQLiteBackup.problem(ofTarget: path) {
            throw BackupError(.output, problem)
        }
        if !replaces, FileManager.default.fileExists(atPath: path) {
            throw BackupError(.output, "\(path) exists; --force replaces it")
        }
        let problem: String?
        do throws(StoreError) {
            problem = try SQLiteBackup.problem(ofStore: store, tables: Schema.tables)
        } catch {
            throw BackupError(.store, error.words)
        }
        if let problem { throw BackupError(.backup, problem) }
        var contents: Contents?
        var isUnsound = false
        do throws(StoreError) {
            try SQLiteBackup.copy(
                store: store, to: path, replaces: replaces,
                progress: { progress($0.copied, $0.total) }, making: making,
                check: { file throws(StoreError) in
                    isUnsound = true
                    contents = try self.contents(of: file)
                    isUnsound = false
                })
        } catch {
            guard isUnsound else { throw BackupError(.output, error.words) }
            // The copy is gone, and what is wrong with it is wrong with the store.
            throw BackupError(
                .backup, error.words.replacing("\(path).partial", with: "the copy of \(store)"))
        }
        guard let contents else { throw BackupError(.output, "\(path): was not checked") }
        return contents
    }

    /// Reads a whole backup and says what it holds.
    ///
    /// - Throws: `BackupError` of kind `.backup`: it cannot be restored, and why.
    public static func verify(_ path: String) throws(BackupError) -> Contents {
        do throws(StoreError) {
            let file = try SQLiteBackupFile(path: path)
            defer { file.close() }
            return try contents(of: file)
        } catch {
            throw BackupError(.backup, error.words)
        }
    }

    /// Verifies a backup and puts it in the place of the store, which no server has open. What an
    /// older program has made is brought to this program's schema on its way; the backup is not.
    ///
    /// - Throws: `BackupError`; the store is as it was.
    public static func restore(_ path: String, to store: String) throws(BackupError) -> Restored {
        let contents = try verify(path)
        var restored = Restored(contents: contents, users: 0, tokens: 0, consoleTokens: 0)
        let half = Server.drawnHalf()
        let format = Date.ISO8601FormatStyle(
            dateSeparator: .omitted, dateTimeSeparator: .standard, timeSeparator: .omitted)
        do throws(StoreError) {
            restored.kept = try SQLiteBackup.restore(
                path, to: store, tables: Schema.tables,
                keepingOldAs: ".before-\(Date().formatted(format))"
            ) { copy throws(StoreError) in
                for outcome in try copy.commit([.restore(epochHalf: half)]) {
                    guard
                        case .restored(let users, let tokens, let consoleTokens) =
                            try outcome.get().answer
                    else { throw .corrupt("the restore was refused") }
                    restored.users = users
                    restored.tokens = tokens
                    restored.consoleTokens = consoleTokens
                }
            }
        } catch {
            throw BackupError(.store, error.words)
        }
        return restored
    }

    private static func contents(of file: SQLiteBackupFile) throws(StoreError) -> Contents {
        let schema = try file.verify(tables: Schema.tables, rules: rules)
        let alive = try file.row(MetaRecord.table, key: [.text(MetaRecord.aliveName)])
        return Contents(
            bytes: try file.size(), apps: try file.count(AppRecord.table),
            users: try file.count(UserRecord.table), devices: try file.count(DeviceRecord.table),
            conversations: try file.count(ConversationRecord.table),
            messages: try file.count(MessageRecord.table), schema: schema,
            asOf: try alive.map { row throws(StoreError) in
                let milliseconds = try MetaRecord(row: row).number
                return Date(timeIntervalSince1970: Double(milliseconds) / 1000)
            })
    }

    /// What must hold between rows, with the statement that counts where it does not. A removed
    /// app's rows go table by table: they are left out.
    private static let rules: [(rule: String, violations: String)] = [
        (
            "a feed's entries end at its head",
            """
            SELECT count(*) FROM "user" AS u WHERE u.head < (
              SELECT max(seq) FROM "entry" AS e WHERE e.app = u.app AND e.user = u.user)
            """
        ),
        (
            "a conversation's messages end at its position",
            """
            SELECT count(*) FROM "conversation" AS c WHERE c.position < (
              SELECT max(position) FROM "message" AS m
              WHERE m.app = c.app AND m.conversation = c.conversation)
            """
        ),
        (
            "a device has applied no more than its feed holds",
            """
            SELECT count(*) FROM "device" AS d JOIN "user" AS u USING (app, user)
            WHERE d.applied > u.head
            """
        ),
        (
            "a device is a user's",
            """
            SELECT count(*) FROM "device" AS d JOIN "app" USING (app) WHERE NOT EXISTS (
              SELECT 1 FROM "user" AS u WHERE u.app = d.app AND u.user = d.user)
            """
        ),
        (
            "an entry is in a user's feed",
            """
            SELECT count(*) FROM "entry" AS e JOIN "app" USING (app) WHERE NOT EXISTS (
              SELECT 1 FROM "user" AS u WHERE u.app = e.app AND u.user = e.user)
            """
        ),
    ]
}

/// Why a backup or restore did not come about: what, and what to do.
public struct BackupError: Error, Equatable, Sendable, CustomStringConvertible {
    public enum Kind: Sendable {
        /// The file given is no sound backup, or no sound store to make one of.
        case backup
        /// The store cannot be used: there is none, or a server has it.
        case store
        /// The backup cannot be written.
        case output
    }

    public let kind: Kind
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

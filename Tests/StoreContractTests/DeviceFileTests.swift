import Foundation
import Model
import SyncClient
import Testing
import Wire

@testable import SQLiteStore

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The file of a device's store, as Apple's systems have it.
@Suite struct DeviceFileTests {
    private static let room = ConversationID(high: 3, low: 3)

    /// What an app on such a system opens its store with.
    private var apple: SQLiteOptions {
        var options = SQLiteOptions.device
        options.locks = .fileAtPlace
        return options
    }

    private func open(_ path: String, _ options: SQLiteOptions) throws(StoreError) -> SQLiteStore {
        try SQLiteStore(path: path, tables: LocalSchema.tables, options: options)
    }

    /// Whether nobody has locked the file by `flock`, as XNU would ask for SQLite's own locks, too.
    private func isFree(_ path: String) -> Bool {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        // Not closed: SQLite's locks of this process would go.
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        return flock(descriptor, LOCK_UN) == 0
    }

    @Test("which file is locked follows from the system, and on Apple's the database is not")
    func plan() {
        let (name, place) = ("/link/rouse.db", "/var/mobile/rouse.db")
        #expect(LockPlan.fileAndDatabase.lockFile(of: name, at: place) == "/link/rouse.db.lock")
        #expect(LockPlan.fileAtPlace.lockFile(of: name, at: place) == "/var/mobile/rouse.db.lock")
        #if canImport(Darwin)
            #expect(LockPlan.ofSystem == .fileAtPlace)
        #else
            #expect(LockPlan.ofSystem == .fileAndDatabase)
        #endif
        #expect(SQLiteOptions.device.locks == .ofSystem)
    }

    @Test("the place of a file is where links lead to, also of one that is still to be made")
    func place() throws {
        try withFolder { folder throws in
            let real = LockPlan.place(of: folder)
            try FileManager.default.createDirectory(
                atPath: "\(folder)/a", withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/b", withDestinationPath: "\(folder)/a")
            #expect(LockPlan.place(of: "\(folder)/b/x.db") == "\(real)/a/x.db")
            #expect(LockPlan.place(of: "/nothing.here") == "/nothing.here")
            #expect(LockPlan.place(of: "\(folder)/none/x.db") == "\(folder)/none/x.db")
        }
    }

    @Test("a store of Apple's plan leaves the database to SQLite, and is opened once at a time")
    func oneAtATime() throws {
        try withFolder { folder throws in
            let path = "\(folder)/rouse.db"
            let first = try open(path, apple)
            #expect(isFree(path))
            let link = "\(folder)/link.db"
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            for name in [path, link] {
                #expect {
                    _ = try open(name, apple)
                } throws: {
                    "\($0)".contains("is locked")
                }
            }
            first.close()
            let second = try open(link, apple)
            #expect(isFree(path))
            second.close()
        }
        // The server's keeps others out by the file itself.
        try withFolder { folder throws in
            let store = try open("\(folder)/rouse.db", SQLiteOptions())
            defer { store.close() }
            #expect(!isFree("\(folder)/rouse.db"))
        }
    }

    private func message(_ number: UInt64) -> Entry {
        Entry(
            seq: number, conversation: Self.room, object: MessageID(high: 1, low: number).bytes,
            version: 1,
            body: .message(
                MessageState(
                    position: number, sender: "ben",
                    parts: [
                        Part(
                            mimeType: "text/plain", content: [UInt8](repeating: 120, count: 3_000))
                    ])))
    }

    /// The disk of an app that was killed: a journal is left, and pages of the file are damaged.
    private func damaged(in folder: String) throws -> String {
        let (path, left) = ("\(folder)/rouse.db", "\(folder)/left.db")
        var store = TableLocalStore(store: try open(path, .device))
        let epoch = Epoch(high: 1, low: 1)
        _ = try store.apply(
            LocalChange(
                entries: (1...200).map { message($0) }, to: Cursor(epoch: epoch, seq: 200)))
        store.close()
        store = TableLocalStore(store: try open(path, .device))
        _ = try store.enqueue(.deleteMessage(DeleteMessage()), at: Timestamp(milliseconds: 1))
        for ending in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: path + ending, toPath: left + ending)
        }
        store.close()
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: left))
        let size = try file.seekToEnd()
        for offset in stride(from: UInt64(20 * 4_096), to: size, by: 4_096) {
            try file.seek(toOffset: offset)
            file.write(Data(repeating: 0xee, count: 64))
        }
        try file.close()
        return left
    }

    @Test("a device's store opens without reading all, and what is damaged is told when it is met")
    func damage() throws {
        try withFolder { folder throws in
            let path = try damaged(in: folder)
            let engine = try open(path, .device)
            let store = TableLocalStore(store: engine)
            defer { store.close() }
            #expect(!engine.isDamaged)
            for _ in 0..<2 {
                #expect {
                    _ = try store.messages(of: Self.room, limit: 200)
                } throws: { error in
                    if case LocalStoreError.corrupt = error { true } else { false }
                }
            }
            // Whoever writes is told so, too.
            #expect {
                try store.saveSession(token: [1], user: "anna")
            } throws: { error in
                if case LocalStoreError.corrupt = error { true } else { false }
            }
            #expect(engine.isDamaged)
        }
        // A server's is looked through after an end like that.
        try withFolder { folder throws in
            let path = try damaged(in: folder)
            #expect {
                _ = try open(path, SQLiteOptions())
            } throws: {
                ($0 as? StoreError)?.isDamage == true
            }
        }
    }

    @Test("the file of a newer version of the app is told apart")
    func newer() throws {
        try withFolder { folder throws in
            let path = "\(folder)/rouse.db"
            try open(path, .device).close()
            let connection = try Connection(path: path, mode: .writer, busyTimeout: 0)
            try connection.execute(
                "INSERT INTO schema_migration SELECT max(number) + 1, 'of the future', 0 "
                    + "FROM schema_migration")
            connection.close()
            #expect {
                _ = try open(path, .device)
            } throws: { error in
                guard let error = error as? StoreError, error.isOfNewerProgram else { return false }
                let told = LocalStoreError(
                    error, isDamage: error.isDamage, isNewer: error.isOfNewerProgram)
                if case .newer = told { return true } else { return false }
            }
            #expect(!StoreError.unavailable("else").isOfNewerProgram)
            // No word of a server to whoever holds the phone.
            for error in [LocalStoreError.newer("fuser"), .corrupt("fuser"), .unavailable("fuser")]
            {
                #expect(!error.forPeople.contains("fuser") && "\(error)".contains("fuser"))
            }
        }
    }

    @Test("rows of another device are erased, its credential and what waited among them")
    func anotherDevice() throws {
        try withFolder { folder throws in
            let (old, new) = (DeviceID(high: 1, low: 1), DeviceID(high: 2, low: 2))
            let store = TableLocalStore(store: try open("\(folder)/rouse.db", .device))
            defer { store.close() }
            // One that was kept before devices were noted is this one's.
            try store.saveSession(token: [1], user: "anna")
            let number = try store.enqueue(
                .sendMessage(SendMessage()), at: Timestamp(milliseconds: 1))
            try store.belong(to: old)
            try store.belong(to: old)
            #expect(try store.load().sessionToken == [1])
            #expect(try store.load().firstUnanswered == number)
            try store.belong(to: new)
            let state = try store.load()
            #expect(state.sessionToken.isEmpty && state.user.isEmpty)
            #expect(state.firstUnanswered == nil && state.lastMutation == number)
            try store.saveSession(token: [2], user: "anna")
            try store.erase()
            // Whose it is outlives a logout.
            try store.saveSession(token: [3], user: "anna")
            try store.belong(to: new)
            #expect(try store.load().sessionToken == [3])
            try store.belong(to: old)
            #expect(try store.load().sessionToken.isEmpty)
        }
    }
}

import CSQLite

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// SQLite's own access to files, but what one commit appends to the journal is written at once.
///
/// SQLite writes each page of a commit by two calls of the system, one for 24 bytes before it: 34
/// for a publish that is alone in its group, and they were most of what the system did for the
/// writer. This is its extension point for that (sqlite.org/vfs.html).
///
/// Only for a connection with `synchronous = FULL`: then SQLite syncs the journal with each commit,
/// before it tells its readers of the new pages, and a sync writes what is held back. Without the
/// sync they would look for pages that are not in the file.
enum JournalFiles {
    /// The name to open a writing connection by; `nil`: SQLite knows no files of the system's.
    static let name: String? = register()

    private static func register() -> String? {
        // Looking for it initializes the library.
        _ = Connection.isConfigured
        guard let system = sqlite3_vfs_find(nil) else { return nil }
        let name = "rouse-journal"
        let own = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        own.initialize(to: system.pointee)
        own.pointee.pNext = nil
        own.pointee.zName = UnsafePointer(strdup(name))
        own.pointee.szOsFile = Int32(JournalFile.headBytes) + system.pointee.szOsFile
        own.pointee.xOpen = open
        // Neither is ever freed: SQLite keeps them until the process ends.
        return sqlite3_vfs_register(own, 0) == SQLITE_OK ? name : nil
    }

    /// The system's error of the last write to the journal that failed, once; 0: there was none.
    /// SQLite keeps that of no error inside COMMIT, and would name an older one.
    static func takeFailure(of file: UnsafeMutablePointer<sqlite3_file>?) -> Int32 {
        guard let file, file.pointee.pMethods == JournalFile.methods else { return 0 }
        defer { journal(file).pointee.failure = 0 }
        return journal(file).pointee.failure
    }
}

/// The head of a journal's `sqlite3_file`; the system's own file follows it in the same memory.
private struct JournalFile {
    var base = sqlite3_file()
    /// What is to be written from `start` on; allocated with the file.
    var held: UnsafeMutableRawPointer
    var count = 0
    var start: Int64 = 0
    /// The system's error of the last write that failed; 0: none, or it was asked for.
    var failure: Int32 = 0

    /// The most that is held back, in bytes: a commit of more pages is written by several calls.
    /// SQLite's own file takes less than 128 KiB at once.
    static let heldMax = 96 << 10
    static let headBytes = (MemoryLayout<JournalFile>.size + 15) & ~15

    /// Never changed after it was made, so that any thread may read it.
    nonisolated(unsafe) static let methods: UnsafePointer<sqlite3_io_methods> = {
        let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        var own = sqlite3_io_methods()
        // Version 1: shared memory and mapped pages are asked of the database's file alone.
        own.iVersion = 1
        own.xClose = close
        own.xRead = read
        own.xWrite = write
        own.xTruncate = truncate
        own.xSync = sync
        own.xFileSize = size
        own.xLock = { under($0).pointee.pMethods.pointee.xLock(under($0), $1) }
        own.xUnlock = { under($0).pointee.pMethods.pointee.xUnlock(under($0), $1) }
        own.xCheckReservedLock = {
            under($0).pointee.pMethods.pointee.xCheckReservedLock(under($0), $1)
        }
        own.xFileControl = { under($0).pointee.pMethods.pointee.xFileControl(under($0), $1, $2) }
        own.xSectorSize = { under($0).pointee.pMethods.pointee.xSectorSize(under($0)) }
        own.xDeviceCharacteristics = {
            under($0).pointee.pMethods.pointee.xDeviceCharacteristics(under($0))
        }
        methods.initialize(to: own)
        return UnsafePointer(methods)
    }()
}

private typealias File = UnsafeMutablePointer<sqlite3_file>

/// The system's file below a journal's.
private func under(_ file: File?) -> File {
    let start = UnsafeMutableRawPointer(file!) + JournalFile.headBytes
    return start.assumingMemoryBound(to: sqlite3_file.self)
}

private func journal(_ file: File?) -> UnsafeMutablePointer<JournalFile> {
    UnsafeMutableRawPointer(file!).assumingMemoryBound(to: JournalFile.self)
}

/// Opens a journal with its buffer, and every other file as SQLite does.
private func open(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: sqlite3_filename?, _ file: File?,
    _ flags: Int32, _ given: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let system = sqlite3_vfs_find(nil), let file else { return SQLITE_CANTOPEN }
    guard flags & SQLITE_OPEN_WAL != 0 else {
        return system.pointee.xOpen(system, name, file, flags, given)
    }
    let base = under(file)
    base.pointee.pMethods = nil
    file.pointee.pMethods = nil
    let code = system.pointee.xOpen(system, name, base, flags, given)
    guard code == SQLITE_OK else {
        // By the contract of xOpen a file with methods is closed even if it could not be opened.
        if let methods = base.pointee.pMethods { _ = methods.pointee.xClose(base) }
        return code
    }
    let held = UnsafeMutableRawPointer.allocate(byteCount: JournalFile.heldMax, alignment: 16)
    journal(file).initialize(to: JournalFile(held: held))
    file.pointee.pMethods = JournalFile.methods
    return SQLITE_OK
}

/// Writes what is held back. After an error it is dropped: SQLite takes its commit back.
private func flush(_ file: File?) -> Int32 {
    let own = journal(file)
    let count = own.pointee.count
    guard count > 0 else { return SQLITE_OK }
    own.pointee.count = 0
    return writeNow(file, own.pointee.held, Int32(count), own.pointee.start)
}

private func writeNow(
    _ file: File?, _ bytes: UnsafeRawPointer, _ count: Int32, _ offset: Int64
) -> Int32 {
    let base = under(file)
    let code = base.pointee.pMethods.pointee.xWrite(base, bytes, count, offset)
    if code != SQLITE_OK { journal(file).pointee.failure = errno }
    return code
}

private func write(
    _ file: File?, _ bytes: UnsafeRawPointer?, _ count: Int32, _ offset: Int64
) -> Int32 {
    guard let bytes, count > 0 else { return SQLITE_OK }
    let own = journal(file)
    let follows = offset == own.pointee.start + Int64(own.pointee.count)
    if !follows || own.pointee.count + Int(count) > JournalFile.heldMax {
        let code = flush(file)
        guard code == SQLITE_OK else { return code }
    }
    guard count <= JournalFile.heldMax else { return writeNow(file, bytes, count, offset) }
    if own.pointee.count == 0 { own.pointee.start = offset }
    (own.pointee.held + own.pointee.count).copyMemory(from: bytes, byteCount: Int(count))
    own.pointee.count += Int(count)
    return SQLITE_OK
}

private func read(
    _ file: File?, _ bytes: UnsafeMutableRawPointer?, _ count: Int32, _ offset: Int64
) -> Int32 {
    let own = journal(file)
    // A transaction too large for the page cache reads what it has written itself.
    if own.pointee.count > 0, offset + Int64(count) > own.pointee.start {
        let code = flush(file)
        guard code == SQLITE_OK else { return code }
    }
    let base = under(file)
    return base.pointee.pMethods.pointee.xRead(base, bytes, count, offset)
}

private func sync(_ file: File?, _ flags: Int32) -> Int32 {
    let code = flush(file)
    guard code == SQLITE_OK else { return code }
    let base = under(file)
    return base.pointee.pMethods.pointee.xSync(base, flags)
}

private func truncate(_ file: File?, _ size: Int64) -> Int32 {
    let code = flush(file)
    guard code == SQLITE_OK else { return code }
    let base = under(file)
    return base.pointee.pMethods.pointee.xTruncate(base, size)
}

private func size(_ file: File?, _ size: UnsafeMutablePointer<Int64>?) -> Int32 {
    let code = flush(file)
    guard code == SQLITE_OK else { return code }
    let base = under(file)
    return base.pointee.pMethods.pointee.xFileSize(base, size)
}

private func close(_ file: File?) -> Int32 {
    let code = flush(file)
    journal(file).pointee.held.deallocate()
    let base = under(file)
    let closed = base.pointee.pMethods.pointee.xClose(base)
    return code == SQLITE_OK ? closed : code
}

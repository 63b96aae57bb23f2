public import Model

/// How a database file is used. The defaults are for the server.
public struct SQLiteOptions: Sendable {
    /// When the whole file is checked at opening (`PRAGMA quick_check`, which reads all of it).
    public enum Check: Sendable {
        case never
        /// When the last owner left a journal behind: it was killed, or the machine lost power.
        case afterUncleanStop
        case always
    }

    /// How long a statement waits for a lock that an outside process or, at a full journal, a
    /// reader holds, in milliseconds.
    public var busyTimeout: Milliseconds = 5_000
    /// Page cache of the writing connection, in KiB.
    public var cacheSize = 64 * 1024
    /// Page cache of each reader, in KiB.
    public var readerCacheSize = 8 * 1024
    /// Every time a write finds that the journal grew by this many bytes, it moves what no reader
    /// is in the way of.
    public var journalStep = 16 << 20
    /// A write that leaves the journal larger than this, in bytes, waits for the readers (up to
    /// the busy timeout) and empties it; if they do not end, so does one write in each further
    /// step. Readers are short: one that holds its snapshot lets the journal grow.
    public var journalLimit = 64 << 20
    public var check = Check.afterUncleanStop
    /// Every commit is on disk before it returns. Off: nothing is ever synced, neither commits nor
    /// checkpoints; a commit survives the end of its process, but a loss of power may take it or
    /// damage the file. For simulated devices, hundreds of which would share one disk's syncs.
    public var syncs = true

    public init() {}
}

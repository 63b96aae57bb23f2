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

    /// How long a statement waits for a lock that an outside process holds, in milliseconds;
    /// opening and closing the store wait as long for readers of the journal.
    public var busyTimeout: Milliseconds = 5_000
    /// Page cache of the writing connection, in KiB. It is small, because rows that are asked
    /// for again stay in the working set and a page that is missing here comes from the kernel's
    /// cache, while SQLite walks through all of this one at each commit that has divided a page.
    public var cacheSize = 16 * 1024
    /// Page cache of each reader, in KiB.
    public var readerCacheSize = 8 * 1024
    /// The bytes of journal after which a checkpoint is due. A write that finds twice as many
    /// since the last checkpoint moves, itself, the pages that no reader still needs.
    public var journalStep = 10 << 20
    /// Above this many bytes of journal, the server's readers are asked to rest for a moment, so
    /// that the journal can begin anew. Once it has, its file is cut back to this length. No write
    /// and no checkpoint ever waits for a reader: while one holds its snapshot, the journal grows.
    public var journalLimit = 64 << 20
    /// The most bytes that one write cuts off the file of a journal that was longer. Cutting two
    /// megabytes holds the write up for less than a millisecond.
    public var journalCut = 2 << 20
    /// What a move beside the store may leave for it to move itself, in bytes of journal: little
    /// enough for some milliseconds. Then the journal can begin anew.
    public var journalRest = 3 << 20
    public var check = Check.afterUncleanStop
    /// From a failed attempt to open the file anew to the next one, at least: each may write the
    /// whole journal once more.
    public var reopeningPause: Milliseconds = 1_000
    /// Every commit is on disk before it returns. Off: nothing is ever synced, neither commits nor
    /// checkpoints; a commit survives the end of its process, but a loss of power may take it or
    /// damage the file. For simulated devices, hundreds of which would share one disk's syncs.
    public var syncs = true

    /// For tests of what another system does.
    var locks = LockPlan.ofSystem

    public init() {}

    /// For one user's rows on a phone.
    public static var device: SQLiteOptions {
        var options = SQLiteOptions()
        options.cacheSize = 4 * 1_024
        options.readerCacheSize = 1_024
        options.journalStep = 1 << 20
        options.journalLimit = 4 << 20
        // A phone ends its apps by a signal, which leaves a journal each time: reading all of the
        // file would hold up every start. What is damaged is found when it is met.
        options.check = .never
        return options
    }
}

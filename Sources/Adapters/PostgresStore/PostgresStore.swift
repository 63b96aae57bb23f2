import Glibc
public import Model

/// The `Store` contract on PostgreSQL 15 or newer, for any number of nodes at once.
///
/// A transaction is READ COMMITTED with row locks: what it writes it has locked first, in the
/// order that the rules keep, so that each read shows what others have committed until then.
/// Reading beside it is REPEATABLE READ. A connection that was lost is made anew with the next
/// call.
public final class PostgresStore: DistantStore {
    private let session: PostgresSession
    private let tables: PostgresTables
    /// Statements for a thread of its own.
    private let makeTables: () -> PostgresTables
    private var connection: PostgresConnection?
    private var mark = PostgresCommitMark()
    private var pause = ConnectPause()
    /// The connection's server has the row that tells of commits.
    private var isMarked = true
    private var isClosed = false
    private var isBusy = false
    /// The server's clock less this machine's, in milliseconds, and when it was looked at.
    private var clock: (offset: Int64, at: UInt64)?
    /// Over connections that are no more.
    private var effortBefore = StoreEffort()

    /// Milliseconds for which the difference of the clocks is taken to stay.
    private static let clockInterval: UInt64 = 10_000
    /// Milliseconds of the slowest answer that says when the server looked at its clock.
    private static let answerMax: UInt64 = 500

    /// Connects, and makes the tables or checks them.
    ///
    /// - Parameter lockRanks: The place of each table in the order of locks, by its name.
    /// - Throws: `.unavailable`: nobody answers, the role may not, or the schema is of another
    ///   version or of something else.
    public init(
        tables: [Table], lockRanks: [String: Int] = [:], options: PostgresOptions
    ) throws(StoreError) {
        for table in tables {
            if let problem = table.problem() { preconditionFailure(problem) }
        }
        precondition(PostgresOptions.isSchema(options.schema), "no name of a schema")
        session = PostgresSession(options: options)
        makeTables = { PostgresTables(tables, schema: options.schema, ranks: lockRanks) }
        self.tables = makeTables()
        if options.migrates {
            let other = try session.connect("migration", isPatient: true)
            defer { other.close() }
            try PostgresMigration(connection: other, tables: tables, schema: options.schema)
                .bringUp()
        }
        let first = try session.connect("writer")
        do throws(StoreError) {
            try PostgresMigration(connection: first, tables: tables, schema: options.schema)
                .check()
            try mark.make(on: first)
        } catch {
            first.close()
            throw error
        }
        connection = first
    }

    deinit { close() }

    public var effort: StoreEffort {
        guard let connection else { return effortBefore }
        return effortBefore + connection.effort
    }

    // MARK: Transactions

    public func write(_ body: (any StoreTransaction) throws(StoreError) -> Void)
        throws(StoreError)
    {
        try writeFetching { transaction throws(StoreError) in try body(transaction) }
    }

    public func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        let connection = try begin()
        defer { isBusy = false }
        do throws(StoreError) {
            if !isMarked { try mark.make(on: connection) }
            isMarked = true
            try connection.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            let transaction = PostgresTransaction(connection, tables, isWriting: true)
            defer { transaction.end() }
            try body(transaction)
            if let failure = transaction.failure { throw failure }
            try transaction.writePending()
            try mark.write(on: connection)
        } catch {
            rollBack(connection)
            throw error
        }
        try commit(connection)
    }

    private func commit(_ connection: PostgresConnection) throws(StoreError) {
        do throws(StoreError) {
            try connection.run("COMMIT")
            try connection.synchronize()
        } catch {
            guard connection.isLost else {
                rollBack(connection)
                mark.takeBack()
                throw error
            }
            forget(connection)
            guard try resolve(after: error) else {
                throw .conflict("nothing was committed: \(error)")
            }
        }
    }

    /// Whether a transaction was committed whose answer was lost.
    ///
    /// - Throws: `error`, if the server does not answer in time: then it is unknown.
    private func resolve(after error: StoreError) throws(StoreError) -> Bool {
        let end = PostgresSession.monotonicClock() + session.options.resolveTimeout
        var pause: UInt32 = 50_000
        while true {
            do throws(StoreError) {
                let connection = try usable()
                return try mark.isCommitted(on: connection)
            } catch {
                if let connection, connection.isLost { forget(connection) }
            }
            guard PostgresSession.monotonicClock() < end else { throw error }
            usleep(pause)
            pause = min(2 * pause, 1_000_000)
        }
    }

    private func rollBack(_ connection: PostgresConnection) {
        do throws(StoreError) {
            try connection.rollBack()
        } catch {
            connection.close()
        }
        if connection.isLost { forget(connection) }
    }

    public func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void)
        throws(StoreError)
    {
        let connection = try begin()
        defer { isBusy = false }
        do throws(StoreError) {
            try connection.snapshot(tables, body)
        } catch {
            rollBack(connection)
            throw error
        }
    }

    private func begin() throws(StoreError) -> PostgresConnection {
        precondition(!isBusy, "write or read inside a body of the same store")
        let connection = try usable()
        // Transactions are all that a lane ever does, and inside of one nobody can look.
        if isClockOld { lookAtClock(over: connection) }
        isBusy = true
        return connection
    }

    private func usable() throws(StoreError) -> PostgresConnection {
        if isClosed { throw .unavailable("the store is closed") }
        connection?.probe()
        if let connection, !connection.isLost { return connection }
        if let connection { forget(connection) }
        if let refusal = pause.refusal { throw refusal }
        do throws(StoreError) {
            let fresh = try session.connect("writer")
            pause = ConnectPause()
            connection = fresh
            isMarked = false
            return fresh
        } catch {
            pause.note(error)
            throw error
        }
    }

    private func forget(_ lost: PostgresConnection) {
        effortBefore = effortBefore + lost.effort
        lost.close()
        connection = nil
    }

    public func reader() throws(StoreError) -> any StoreReader {
        if isClosed { throw .unavailable("the store is closed") }
        return try PostgresReader(session, makeTables())
    }

    // MARK: The rest

    /// The server's clock, so that nodes agree on what is due: this machine's, corrected by the
    /// difference that was last seen.
    public func now() -> Timestamp {
        // A connection is made before: that may take long.
        if !isBusy, isClockOld, let connection = try? usable() { lookAtClock(over: connection) }
        let now = session.options.machineClock() + (clock?.offset ?? 0)
        return Timestamp(milliseconds: UInt64(max(0, now)))
    }

    private var isClockOld: Bool {
        guard let clock else { return true }
        return PostgresSession.monotonicClock() > clock.at + Self.clockInterval
    }

    private func lookAtClock(over connection: PostgresConnection) {
        let before = session.options.machineClock()
        let start = PostgresSession.monotonicClock()
        guard let now = try? PostgresSession.now(connection),
            case let passed = PostgresSession.monotonicClock() - start, passed <= Self.answerMax
        else { return }
        // In the middle of the question the server looked at its clock.
        clock = (now - before - Int64(passed / 2), start)
    }

    /// The server moves its journal by itself.
    public func checkpoint() throws(StoreError) {
        if isClosed { throw .unavailable("the store is closed") }
    }

    public func close() {
        precondition(!isBusy, "close inside a body of the same store")
        if isClosed { return }
        isClosed = true
        if let connection { forget(connection) }
    }
}

/// Reads the store over a connection of its own, beside the writer.
final class PostgresReader: StoreReader {
    private let session: PostgresSession
    private let tables: PostgresTables
    private var connection: PostgresConnection?
    private var pause = ConnectPause()
    private var isClosed = false
    private var isBusy = false

    init(_ session: PostgresSession, _ tables: PostgresTables) throws(StoreError) {
        self.session = session
        self.tables = tables
        connection = try session.connect("reader")
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        precondition(!isBusy, "read inside a body of the same reader")
        if isClosed { throw .unavailable("the reader is closed") }
        connection?.probe()
        if connection?.isLost ?? true { try reconnect() }
        guard let connection else { throw .unavailable("no connection") }
        isBusy = true
        defer { isBusy = false }
        do throws(StoreError) {
            try connection.snapshot(tables, body)
        } catch {
            do throws(StoreError) { try connection.rollBack() } catch { connection.close() }
            throw error
        }
    }

    private func reconnect() throws(StoreError) {
        if let refusal = pause.refusal { throw refusal }
        do throws(StoreError) {
            connection = try session.connect("reader")
            pause = ConnectPause()
        } catch {
            pause.note(error)
            throw error
        }
    }

    func close() {
        isClosed = true
        connection?.close()
        connection = nil
    }
}

extension PostgresConnection {
    /// Runs `body` on what is committed at this moment. The end of the transaction is sent and not
    /// waited for.
    func snapshot(
        _ tables: PostgresTables,
        _ body: (any StoreSnapshot) throws(StoreError) -> Void
    ) throws(StoreError) {
        // BEGIN alone takes no snapshot: the first statement does.
        try run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try run("SELECT 1")
        try synchronize()
        let transaction = PostgresTransaction(self, tables, isWriting: false)
        defer { transaction.end() }
        try body(transaction)
        if let failure = transaction.failure { throw failure }
        try run("COMMIT")
        try send()
    }

    /// Ends the transaction without its effects. What was queued and not sent is undone as well.
    func rollBack() throws(StoreError) {
        guard !isLost else { return }
        _ = try? synchronize()
        guard isInTransaction else { return }
        try run("ROLLBACK")
        try synchronize()
    }
}

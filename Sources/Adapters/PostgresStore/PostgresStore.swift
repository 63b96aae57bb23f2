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
    /// The connection's server has the row that tells of commits, as far as is known.
    private var isMarked = true
    private var isClosed = false
    private var isBusy = false
    /// Told what came of the commit that is on its way; `nil`: none is. A transaction writes its
    /// number only when that is known: `mark` stands for one transaction whose end is not known.
    private var ahead: ((StoreError?) -> Void)?
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
    /// - Parameters:
    ///   - lockRanks: The place of each table in the order of locks, by its name.
    ///   - before: Is told of tables that are made or changed, before they are.
    /// - Throws: `.unavailable`: nobody answers, the role may not, or the schema is of another
    ///   version or of something else.
    public init(
        tables: [Table], lockRanks: [String: Int] = [:], options: PostgresOptions,
        before: (StoreUpgrade) throws(StoreError) -> Void = { _ in }
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
                .bringUp(before)
        }
        let first = try session.connect("writer")
        do throws(StoreError) {
            try PostgresMigration(connection: first, tables: tables, schema: options.schema)
                .check()
            if options.isLed { try options.witness.verify(first) }
            try makeMark(on: first)
        } catch {
            first.close()
            throw error
        }
        connection = first
    }

    /// What is on its way is not waited for: nobody is left who could be told.
    deinit { if let connection { forget(connection) } }

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
        try carryOut(body, over: connection)
        do throws(StoreError) {
            try connection.run("COMMIT")
            try connection.synchronize()
        } catch {
            if let reason = reason(for: error, over: connection) { throw reason }
        }
        if !session.options.isLed { session.options.witness.note(mark) }
    }

    public func writeAhead(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void,
        ended: @escaping (StoreError?) -> Void
    ) throws(StoreError) {
        let connection = try begin(behindAnother: true)
        defer { isBusy = false }
        try carryOut(body, over: connection)
        precondition(ahead == nil, "a transaction ended before the one ahead of it")
        ahead = ended
        do throws(StoreError) {
            try connection.run("COMMIT")
            try connection.send { [unowned self] in tell($0) }
        } catch {
            // Lost. Whether it was committed is found out where that is waited for.
        }
    }

    public func settle() {
        guard ahead != nil, let connection else { return }
        precondition(!isBusy, "settle inside a body of the same store")
        isBusy = true
        defer { isBusy = false }
        do throws(StoreError) {
            try connection.drain()
            // It was told; of one that failed something is still open.
            if connection.isInTransaction { rollBack(connection) }
        } catch {
            endAhead(after: error)
        }
    }

    /// The server has said what came of the commit that was on its way.
    private func tell(_ failure: StoreError?) {
        if let failure { takeBackMark(after: failure) }
        let ended = ahead
        ahead = nil
        ended?(failure)
    }

    private func makeMark(on connection: PostgresConnection) throws(StoreError) {
        try mark.make(on: connection)
        isMarked = true
        if !session.options.isLed { session.options.witness.note(mark, isFresh: true) }
    }

    /// The server has said that the transaction failed which wrote its number last.
    private func takeBackMark(after failure: StoreError) {
        mark.takeBack()
        if failure == PostgresCommitMark.isGone { isMarked = false }
    }

    /// The connection was lost. If a commit was on its way over it, another connection shows what
    /// came of it.
    private func endAhead(after error: StoreError) {
        guard let ended = ahead else { return }
        if let connection { forget(connection) }
        ahead = nil
        ended(outcome(after: error))
    }

    /// Carries `body` out, and queues all that comes before COMMIT.
    private func carryOut(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void,
        over connection: PostgresConnection
    ) throws(StoreError) {
        do throws(StoreError) {
            if !isMarked { try makeMark(on: connection) }
            try connection.run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            let transaction = PostgresTransaction(connection, tables, isWriting: true)
            defer { transaction.end() }
            try body(transaction)
            if let failure = transaction.failure { throw failure }
            // One that reads nothing has not waited for the end of the one ahead of it.
            if ahead != nil { try connection.synchronize() }
            try transaction.writePending()
            try mark.write(on: connection)
        } catch {
            // What was on its way comes to its end with that, unless the connection is lost.
            rollBack(connection)
            endAhead(after: error)
            throw error
        }
    }

    /// Why a transaction was not committed whose COMMIT ended with an error; `nil`: it was.
    private func reason(
        for error: StoreError, over connection: PostgresConnection
    ) -> StoreError? {
        guard connection.isLost else {
            rollBack(connection)
            takeBackMark(after: error)
            return error
        }
        forget(connection)
        return outcome(after: error)
    }

    private func outcome(after error: StoreError) -> StoreError? {
        do throws(StoreError) {
            return try resolve(after: error) ? nil : .conflict("nothing was committed: \(error)")
        } catch {
            return error
        }
    }

    /// Whether a transaction was committed whose answer was lost.
    ///
    /// - Throws: `error` and why that is not found out in time: then it is unknown.
    private func resolve(after error: StoreError) throws(StoreError) -> Bool {
        let end = PostgresSession.monotonicClock() + session.options.resolveTimeout
        var pause: UInt32 = 50_000
        while true {
            var reason = error
            do throws(StoreError) {
                let connection = try usable()
                return try mark.isCommitted(on: connection)
            } catch {
                reason = error
                // What it has begun would refuse every further attempt.
                if let connection { rollBack(connection) }
            }
            guard PostgresSession.monotonicClock() < end else {
                throw .unavailable("\(error.words); and then: \(reason.words)")
            }
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

    /// - Parameter behindAnother: What is on its way need not have ended.
    private func begin(behindAnother: Bool = false) throws(StoreError) -> PostgresConnection {
        precondition(!isBusy, "write or read inside a body of the same store")
        connection?.probe()
        // A connection that is lost says nothing more of what was on its way, and a look at the
        // clock must not wait for it.
        let isDoubted = connection.map(session.doubts) ?? true
        if !behindAnother || isClockOld || isDoubted || connection?.isLost ?? true { settle() }
        let connection = if ahead != nil, let connection { connection } else { try usable() }
        // Transactions are all that a lane ever does, and inside of one nobody can look.
        if isClockOld { lookAtClock(over: connection) }
        isBusy = true
        return connection
    }

    private func usable() throws(StoreError) -> PostgresConnection {
        if isClosed { throw .unavailable("the store is closed") }
        connection?.probe()
        if let connection, !connection.isLost, !session.doubts(connection) { return connection }
        if let connection, connection.isLost { forget(connection) }
        if let refusal = pause.refusal { throw refusal }
        do throws(StoreError) {
            let usable = if let connection { connection } else { try session.connect("writer") }
            if connection == nil { isMarked = false }
            connection = usable
            if session.options.isLed { try session.options.witness.verify(usable) }
            pause = ConnectPause()
            return usable
        } catch {
            if let connection, connection.isLost { forget(connection) }
            pause.note(error)
            throw error
        }
    }

    private func forget(_ lost: PostgresConnection) {
        guard connection === lost else { return }
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
        if !isBusy, ahead == nil, isClockOld, let connection = try? usable() {
            lookAtClock(over: connection)
        }
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
        settle()
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
        let connection = try usable()
        isBusy = true
        defer { isBusy = false }
        do throws(StoreError) {
            try connection.snapshot(tables, body)
        } catch {
            do throws(StoreError) { try connection.rollBack() } catch { connection.close() }
            throw error
        }
    }

    private func usable() throws(StoreError) -> PostgresConnection {
        let witness = session.options.witness
        if let connection, !connection.isLost, !witness.doubts(connection) { return connection }
        if let refusal = pause.refusal { throw refusal }
        do throws(StoreError) {
            let known = connection.flatMap { $0.isLost ? nil : $0 }
            let usable = if let known { known } else { try session.connect("reader") }
            connection = usable
            try witness.verify(usable)
            pause = ConnectPause()
            return usable
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

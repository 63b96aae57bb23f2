import CPostgres
import Glibc
import Model

/// One connection to PostgreSQL in pipeline mode: statements are queued and go to the server
/// together with the first one whose answer is waited for. The server carries them out in order;
/// after one that failed it skips all up to the next synchronization.
///
/// Used by one thread, which waits for answers.
final class PostgresConnection {
    /// The use of one result; results come in the order of the statements.
    private enum Expected {
        /// A statement was prepared, or run for its effect.
        case effect
        /// Rows with these columns, of the statement that is waited for.
        case rows([Column])
        /// The end of what was sent together, and who is told what came of it. Without anybody it
        /// comes to whoever waits for what follows.
        case synchronization(told: ((StoreError?) -> Void)?)
    }

    private var handle: OpaquePointer?
    private var expected: [Expected] = []
    /// Names of prepared statements, by their SQL.
    private var prepared: [String: String] = [:]
    /// What was done over it.
    private(set) var effort = StoreEffort()
    /// The server's host, port and database, for messages; never a password.
    private(set) var place = ""
    /// Nothing can be sent or awaited any more.
    private(set) var isLost = false

    /// The last turn of a `PostgresWitness` that was seen over it.
    var witnessedTurn: UInt64?

    /// The prepared statements that the server has not confirmed yet.
    private var unconfirmed: [String] = []
    private var lastName = 0

    /// Statements that are kept; the code has a few hundred shapes, so it is never reached.
    private static let preparedMax = 2_048

    /// Milliseconds without a word of the server after which the connection is given up; -1: never.
    private let silence: Int32

    /// - Parameters:
    ///   - options: Keywords of libpq (PostgreSQL 15, 34.1.2) with their values; they stand above
    ///     those of `address`.
    ///   - silence: Milliseconds that a server may say nothing while an answer is awaited; `nil`:
    ///     for as long as it is there.
    /// - Throws: `.unavailable`: why nobody answers, or refuses, or that there is no libpq.
    init(
        _ address: String, options: [(String, String)], silence: Int?
    ) throws(StoreError) {
        if let problem = rouse_pg_load() { throw .unavailable(String(cString: problem)) }
        self.silence = silence.map { Int32(clamping: $0) } ?? -1
        // `dbname` holds the address, which is taken apart; what follows it stands above it.
        let all = [("dbname", address)] + options
        handle = Self.withStrings(all.map(\.0)) { keywords in
            Self.withStrings(all.map(\.1)) { PQconnectdbParams(keywords, $0, 1) }
        }
        guard let handle else { throw .unavailable("out of memory") }
        rouse_pg_ignore_notices(handle)
        place =
            "\(Self.text(PQhost(handle))):\(Self.text(PQport(handle)))/"
            + Self.text(PQdb(handle))
        guard PQstatus(handle) == CONNECTION_OK else {
            let reason = Self.text(PQerrorMessage(handle))
            close()
            throw .unavailable("PostgreSQL at \(place): \(reason)")
        }
        guard PQserverVersion(handle) >= 150_000 else {
            close()
            throw .unavailable("PostgreSQL at \(place) is older than version 15")
        }
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
            let reason = Self.text(PQerrorMessage(handle))
            close()
            throw .unavailable("PostgreSQL at \(place): \(reason)")
        }
    }

    deinit { close() }

    func close() {
        isLost = true
        expected = []
        PQfinish(handle)
        handle = nil
    }

    /// The open transaction can only be rolled back, or is lost with the connection.
    var hasFailed: Bool { isLost || PQtransactionStatus(handle) == PQTRANS_INERROR }

    /// A transaction is open as far as the server has said.
    var isInTransaction: Bool { !isLost && PQtransactionStatus(handle) != PQTRANS_IDLE }

    /// Looks, without waiting, whether the server has closed the connection since it was used last.
    func probe() {
        guard let handle else { return }
        var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        while !isLost, poll(&descriptor, 1, 0) > 0 {
            if PQconsumeInput(handle) == 0 || PQstatus(handle) != CONNECTION_OK { close() }
        }
    }

    // MARK: Notifications

    /// Readable when the server has said something.
    var descriptor: Int32 { handle.map { PQsocket($0) } ?? -1 }

    /// What other sessions have told by NOTIFY since the last call. Nothing is waited for. What was
    /// told over this connection comes back as well, and is left out.
    func notifications() throws(StoreError) -> [String] {
        probe()
        let handle = try usable()
        let own = PQbackendPID(handle)
        var texts: [String] = []
        while let note = PQnotifies(handle) {
            if note.pointee.be_pid != own { texts.append(String(cString: note.pointee.extra)) }
            PQfreemem(note)
        }
        return texts
    }

    // MARK: Sending

    /// Queues a statement whose rows nobody needs; what is wrong with it shows when something is
    /// waited for.
    func run(_ sql: String, _ values: [ColumnValue] = []) throws(StoreError) {
        try run(sql, bound: BoundValues(values))
    }

    func run(_ sql: String, bound values: BoundValues) throws(StoreError) {
        try queue(sql, values)
        expected.append(.effect)
    }

    /// Sends what is queued and this statement, and waits for its rows.
    func rows(
        _ sql: String, _ values: [ColumnValue] = [], columns: [Column]
    ) throws(StoreError) -> [[ColumnValue]] {
        try ask(sql, values, columns: columns)
        return try synchronize().last ?? []
    }

    /// Queues a statement whose rows `synchronize` gives.
    func ask(
        _ sql: String, _ values: [ColumnValue] = [], columns: [Column]
    ) throws(StoreError) {
        try ask(sql, bound: BoundValues(values), columns: columns)
    }

    func ask(_ sql: String, bound values: BoundValues, columns: [Column]) throws(StoreError) {
        try queue(sql, values)
        expected.append(.rows(columns))
    }

    /// Sends what is queued and waits until all of it is carried out.
    ///
    /// - Returns: the rows of each statement that was asked, in order.
    /// - Throws: what the first statement failed with that did not go well.
    @discardableResult
    func synchronize() throws(StoreError) -> [[[ColumnValue]]] {
        try send()
        return try receive()
    }

    /// Sends what is queued without waiting: what comes of it shows with what is waited for next.
    ///
    /// - Parameter told: Called with what the first statement failed with that did not go well, or
    ///   with `nil`, as soon as the answers are there and others are waited for. It must not use
    ///   the connection. Not called where the connection is lost before.
    func send(told: ((StoreError?) -> Void)? = nil) throws(StoreError) {
        guard PQpipelineSync(try usable()) == 1 else { throw lost() }
        expected.append(.synchronization(told: told))
        while try flush() { try wait(for: Int16(POLLIN | POLLOUT)) }
    }

    /// Sends what is queued as far as the system takes it. The server begins with it; what comes of
    /// it shows with what is waited for next.
    func sendQueued() throws(StoreError) { _ = try flush() }

    /// Waits for what was sent.
    func drain() throws(StoreError) {
        _ = try usable()
        try receive()
    }

    private func queue(_ sql: String, _ values: BoundValues) throws(StoreError) {
        let handle = try usable()
        let name = try prepare(sql, on: handle)
        effort.statements += 1
        let lengths = values.places.map { Int32($0?.length ?? 0) }
        let formats = [Int32](repeating: 1, count: values.count)
        // An empty value has an address, too: without one it would be null.
        let isSent = (values.storage + [0]).withUnsafeBytes { storage in
            let places = values.places.map { place in
                place.flatMap {
                    storage.baseAddress?.advanced(by: $0.start)
                        .assumingMemoryBound(to: CChar.self)
                }
            }
            return PQsendQueryPrepared(
                handle, name, Int32(values.count), places, lengths, formats, 1)
        }
        guard isSent == 1 else { throw lost() }
    }

    /// The server finds the types of the places by the columns they are compared with.
    private func prepare(_ sql: String, on handle: OpaquePointer) throws(StoreError) -> String {
        if let name = prepared[sql] { return name }
        var name = ""
        if prepared.count < Self.preparedMax {
            lastName += 1
            name = "s\(lastName)"
            prepared[sql] = name
            unconfirmed.append(sql)
        }
        guard PQsendPrepare(handle, name, sql, 0, nil) == 1 else { throw lost() }
        expected.append(.effect)
        return name
    }

    // MARK: Receiving

    @discardableResult
    private func receive() throws(StoreError) -> [[[ColumnValue]]] {
        effort.roundTrips += 1
        var failure: StoreError?
        var hasFailed = false
        var rows: [[[ColumnValue]]] = []
        var position = 0
        // A connection that is lost expects nothing.
        while position < expected.count {
            let next = expected[position]
            position += 1
            guard let result = try result() else { throw lost() }
            defer { PQclear(result) }
            switch (PQresultStatus(result), next) {
            case (PGRES_TUPLES_OK, .rows(let columns)) where failure == nil:
                do throws(StoreError) {
                    rows.append(try Self.rows(of: result, columns))
                } catch {
                    failure = error
                }
            case (PGRES_COMMAND_OK, _), (PGRES_TUPLES_OK, _): break
            case (PGRES_PIPELINE_SYNC, .synchronization(let told)):
                guard let told else { continue }
                let reason = failure
                (failure, rows) = (nil, [])
                told(reason)
                continue
            case (PGRES_PIPELINE_ABORTED, _): break
            default:
                hasFailed = true
                failure = failure ?? Self.failure(result).error
                if case .unavailable? = failure, PQstatus(handle) != CONNECTION_OK { close() }
            }
            guard !isLost else { break }
            // Each statement's results end with an empty one.
            if let more = try self.result() {
                PQclear(more)
                throw lost()
            }
        }
        expected.removeAll(keepingCapacity: true)
        // The server may have skipped what would have prepared a statement: it gets a new name.
        if hasFailed { for sql in unconfirmed { prepared[sql] = nil } }
        unconfirmed = []
        if let failure { throw failure }
        return rows
    }

    private func result() throws(StoreError) -> OpaquePointer? {
        let handle = try usable()
        while PQisBusy(handle) == 1 {
            _ = try flush()
            try wait(for: Int16(POLLIN))
        }
        return PQgetResult(handle)
    }

    /// - Returns: whether something is left that the system does not take yet.
    private func flush() throws(StoreError) -> Bool {
        switch PQflush(try usable()) {
        case 0: return false
        case 1: return true
        default: throw lost()
        }
    }

    private func wait(for events: Int16) throws(StoreError) {
        let handle = try usable()
        var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
        var ready = poll(&descriptor, 1, silence)
        while ready < 0, errno == EINTR { ready = poll(&descriptor, 1, silence) }
        guard ready != 0 else { throw lost("it has said nothing for \(silence / 1_000) s") }
        guard ready > 0 else { throw lost() }
        if descriptor.revents & ~Int16(POLLOUT) != 0, PQconsumeInput(handle) == 0 { throw lost() }
    }

    // MARK: Errors

    private func usable() throws(StoreError) -> OpaquePointer {
        guard let handle else {
            throw .unavailable("the connection to PostgreSQL at \(place) was lost")
        }
        return handle
    }

    /// - Parameter silence: Why, where libpq does not know of it.
    private func lost(_ silence: String? = nil) -> StoreError {
        let reason = silence ?? handle.map { Self.text(PQerrorMessage($0)) } ?? "closed"
        close()
        return .unavailable("the connection to PostgreSQL at \(place) was lost: \(reason)")
    }

    private static func failure(_ result: OpaquePointer) -> PostgresFailure {
        let detail = text(PQresultErrorField(result, rouse_pg_diag_detail))
        let message = text(PQresultErrorField(result, rouse_pg_diag_message))
        return PostgresFailure(
            state: text(PQresultErrorField(result, rouse_pg_diag_sqlstate)),
            text: [message.isEmpty ? text(PQresultErrorMessage(result)) : message, detail]
                .filter { !$0.isEmpty }.joined(separator: ": "))
    }

    // MARK: Values

    private static func rows(
        of result: OpaquePointer, _ columns: [Column]
    ) throws(StoreError) -> [[ColumnValue]] {
        guard Int(PQnfields(result)) == columns.count else {
            throw .corrupt("rows of \(PQnfields(result)) columns, not \(columns.count)")
        }
        var rows: [[ColumnValue]] = []
        for place in 0..<PQntuples(result) {
            var row: [ColumnValue] = []
            row.reserveCapacity(columns.count)
            for (position, column) in columns.enumerated() {
                row.append(try value(of: result, place, Int32(position), column))
            }
            rows.append(row)
        }
        return rows
    }

    private static func value(
        of result: OpaquePointer, _ row: Int32, _ position: Int32, _ column: Column
    ) throws(StoreError) -> ColumnValue {
        if PQgetisnull(result, row, position) == 1 {
            guard column.isOptional else { throw .corrupt("column \(column.name) is null") }
            return .null
        }
        let bytes = UnsafeRawBufferPointer(
            start: PQgetvalue(result, row, position),
            count: Int(PQgetlength(result, row, position)))
        switch column.type {
        case .integer:
            guard bytes.count == 8 else { throw .corrupt("column \(column.name) is no bigint") }
            return .integer(Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) }))
        case .text:
            guard let text = String(validating: bytes, as: UTF8.self) else {
                throw .corrupt("column \(column.name) is not UTF-8")
            }
            return .text(text)
        case .blob:
            return .blob(Array(bytes))
        }
    }

    private static func text(_ start: UnsafePointer<CChar>?) -> String {
        guard let start else { return "" }
        // libpq breaks its longer texts into lines, and indents them.
        return String(cString: start).split(separator: "\n")
            .map { $0.drop { $0 == "\t" || $0 == " " } }.joined(separator: "; ")
    }

    /// The strings as C expects them: an array that ends with null.
    static func withStrings<Result>(
        _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        let copies = strings.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        return (copies.map { $0.map { UnsafePointer($0) } } + [nil]).withUnsafeBufferPointer {
            guard let start = $0.baseAddress else { preconditionFailure("an array that is empty") }
            return body(start)
        }
    }
}

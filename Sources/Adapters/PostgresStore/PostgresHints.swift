import CPostgres
import Glibc
import Model
import Synchronization

/// Short texts that reach every process on the same schema soon, or are lost: NOTIFY and LISTEN on
/// a connection of their own, on a thread of its own.
public final class PostgresHints: Sendable {
    private struct State {
        var isStopped = false
        /// How often the connection was lost, and with it perhaps a text.
        var losses: UInt64 = 0
    }

    /// The bytes of a text that PostgreSQL takes (PostgreSQL 15, NOTIFY).
    public static let bytesMax = 7_999

    /// Milliseconds to the next attempt to connect, at most.
    private static let retryMax: UInt32 = 2_000

    private let options: PostgresOptions
    private let state = Mutex(State())
    /// A pipe, written to when there is something to send.
    private let bell: (read: Int32, write: Int32)
    private let next: @Sendable () -> [String]
    private let received: @Sendable (String) -> Void
    private let lost: @Sendable () -> Void

    /// How often hints may have been lost, because the connection was.
    public var losses: UInt64 { state.withLock { $0.losses } }

    /// - Parameters:
    ///   - next: The texts to send now, called on the thread after `ring`.
    ///   - received: Called on the thread with each text of others.
    ///   - lost: Called there when the connection is back after texts may have been lost.
    public init(
        _ options: PostgresOptions, next: @escaping @Sendable () -> [String],
        received: @escaping @Sendable (String) -> Void, lost: @escaping @Sendable () -> Void
    ) {
        self.options = options
        self.next = next
        self.received = received
        self.lost = lost
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "no descriptors for a bell: \(errno)")
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        bell = (ends[0], ends[1])
    }

    deinit {
        close(bell.read)
        close(bell.write)
    }

    /// The thread's work; returns after `stop`.
    public func run() {
        var pause: UInt32 = 50
        while !state.withLock({ $0.isStopped }) {
            guard let connection = connect() else {
                // Nodes that lost the same server do not come back in the same moment.
                _ = wait(nil, UInt32.random(in: (pause / 2)...pause))
                pause = min(2 * pause, Self.retryMax)
                continue
            }
            if losses > 0 || pause > 50 { lost() }
            pause = 50
            serve(connection)
            _ = wait(nil, pause)
            PQfinish(connection)
            state.withLock { $0.losses += 1 }
        }
    }

    public func stop() {
        state.withLock { $0.isStopped = true }
        ring()
    }

    /// Has `next` called soon. From any thread.
    public func ring() {
        // A pipe that is full has been rung.
        var one: UInt8 = 1
        _ = write(bell.write, &one, 1)
    }

    private var channel: String { "rouse_\(options.schema)" }

    private func connect() -> OpaquePointer? {
        guard rouse_pg_load() == nil else { return nil }
        let keywords = [
            "dbname", "connect_timeout", "application_name", "keepalives_idle",
            "keepalives_interval", "keepalives_count", "tcp_user_timeout",
            "target_session_attrs",
        ]
        let values = [
            options.address, "\(options.connectTimeout)", "rouse hints", "10", "5", "3",
            "\(options.silence ?? 0)", "read-write",
        ]
        let connection = PostgresConnection.withStrings(keywords) { keywords in
            PostgresConnection.withStrings(values) { PQconnectdbParams(keywords, $0, 1) }
        }
        guard let connection else { return nil }
        rouse_pg_ignore_notices(connection)
        let isListening =
            PQstatus(connection) == CONNECTION_OK
            // A text that is lost costs time and nothing else: none is worth a write to the disk.
            && carryOut("SET synchronous_commit = off", [], on: connection)
            && carryOut("LISTEN \"\(channel)\"", [], on: connection)
        if isListening { return connection }
        PQfinish(connection)
        return nil
    }

    private func carryOut(_ sql: String, _ values: [String], on connection: OpaquePointer) -> Bool {
        let result = PostgresConnection.withStrings(values) { values in
            PQexecParams(connection, sql, Int32(Self.count(values)), nil, values, nil, nil, 0)
        }
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
    }

    private static func count(_ values: UnsafePointer<UnsafePointer<CChar>?>) -> Int {
        var count = 0
        while values[count] != nil { count += 1 }
        return count
    }

    /// Until the connection is lost, or `stop`.
    private func serve(_ connection: OpaquePointer) {
        var isFirst = true
        let own = PQbackendPID(connection)
        while !state.withLock({ $0.isStopped }) {
            // What waited for the connection goes at once.
            guard wait(connection, isFirst ? 0 : nil) else { return }
            isFirst = false
            for text in next() {
                let isSent = carryOut(
                    "SELECT pg_notify($1, $2)", [channel, text], on: connection)
                guard isSent else { return }
            }
            guard PQconsumeInput(connection) == 1 else { return }
            while let note = PQnotifies(connection) {
                // What was sent here comes back as well; it is not worth reading.
                let isOwn = note.pointee.be_pid == own
                let text = isOwn ? "" : String(cString: note.pointee.extra)
                PQfreemem(note)
                if !isOwn { received(text) }
            }
        }
    }

    /// Waits for the bell or the server.
    ///
    /// - Returns: whether the connection is still there.
    private func wait(_ connection: OpaquePointer?, _ milliseconds: UInt32?) -> Bool {
        var both = [
            pollfd(fd: bell.read, events: Int16(POLLIN), revents: 0),
            pollfd(
                fd: connection.map { PQsocket($0) } ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&both, 2, milliseconds.map { Int32($0) } ?? -1) >= 0 || errno == EINTR else {
            return false
        }
        if both[0].revents != 0 {
            var rung = [UInt8](repeating: 0, count: 256)
            _ = read(bell.read, &rung, rung.count)
        }
        return true
    }
}

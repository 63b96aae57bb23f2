import Glibc
public import Model
import Synchronization

/// Short texts that reach every process on the same schema soon, or are lost: NOTIFY and LISTEN on
/// a connection of their own, on a thread of its own.
public final class PostgresHints: Sendable {
    /// What becomes of the connection.
    public enum News: Equatable, Sendable {
        /// It cannot be made, or is lost: told once, until it is back.
        case lost(StoreError)
        /// Texts may have been lost meanwhile.
        case back
    }

    private struct State {
        var isStopped = false
        /// How often the connection was lost, and with it perhaps a text.
        var losses: UInt64 = 0
    }

    /// The bytes of a text that PostgreSQL takes (PostgreSQL 15, NOTIFY).
    public static let bytesMax = 7_999

    /// Milliseconds to the next attempt to connect, at most.
    private static let retryMax: UInt32 = 2_000

    /// Milliseconds after its last word in which the server is asked for one: a connection that
    /// stands and says nothing looks like one on which nobody tells anything.
    private var askInterval: UInt64 { session.options.silence.map { UInt64($0) } ?? 5_000 }

    private let session: PostgresSession
    private let state = Mutex(State())
    /// A pipe, written to when there is something to send.
    private let bell: (read: Int32, write: Int32)
    private let next: @Sendable () -> [String]
    private let received: @Sendable (String) -> Void
    private let onNews: @Sendable (News) -> Void

    /// How often hints may have been lost, because the connection was.
    public var losses: UInt64 { state.withLock { $0.losses } }

    /// - Parameters:
    ///   - next: The texts to send now, called on the thread after `ring`.
    ///   - received: Called on the thread with each text of others.
    ///   - onNews: Called there when the connection is lost or back.
    public init(
        _ options: PostgresOptions, next: @escaping @Sendable () -> [String],
        received: @escaping @Sendable (String) -> Void, onNews: @escaping @Sendable (News) -> Void
    ) {
        session = PostgresSession(options: options)
        self.next = next
        self.received = received
        self.onNews = onNews
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
        var isLost = false
        while !isStopped {
            do throws(StoreError) {
                let connection = try connect()
                defer { connection.close() }
                if isLost { onNews(.back) }
                (isLost, pause) = (false, 50)
                do throws(StoreError) {
                    try serve(connection)
                } catch {
                    state.withLock { $0.losses += 1 }
                    throw error
                }
            } catch {
                if !isLost { onNews(.lost(error)) }
                isLost = true
                // Nodes that lost the same server do not come back in the same moment.
                rest(UInt64(UInt32.random(in: (pause / 2)...pause)))
                pause = min(2 * pause, Self.retryMax)
            }
        }
    }

    public func stop() {
        state.withLock { $0.isStopped = true }
        ring()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Has `next` called soon. From any thread.
    public func ring() {
        // A pipe that is full has been rung.
        var one: UInt8 = 1
        _ = write(bell.write, &one, 1)
    }

    private var channel: String { "rouse_\(session.options.schema)" }

    private func connect() throws(StoreError) -> PostgresConnection {
        let connection = try session.connect("hints")
        do throws(StoreError) {
            try session.options.witness.verify(connection)
            // A text that is lost costs time and nothing else: none is worth a write to the disk.
            try connection.run("SET synchronous_commit = off")
            try connection.run("LISTEN \"\(channel)\"")
            try connection.synchronize()
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    /// Until `stop`.
    ///
    /// - Throws: The connection is lost.
    private func serve(_ connection: PostgresConnection) throws(StoreError) {
        // What waited for the connection goes at once.
        var texts = next()
        var heardAt = PostgresSession.monotonicClock()
        while !isStopped {
            let due = heardAt + askInterval
            if !texts.isEmpty || PostgresSession.monotonicClock() >= due {
                // The channel stands in what `pg_stat_activity` shows: whose hints they are.
                for text in texts {
                    try connection.run("SELECT pg_notify('\(channel)', $1)", [.text(text)])
                }
                // It answers within the session's silence, or is given up.
                if texts.isEmpty { try connection.run("LISTEN \"\(channel)\"") }
                try connection.synchronize()
                try session.options.witness.verify(connection)
                heardAt = PostgresSession.monotonicClock()
            }
            for text in try connection.notifications() { received(text) }
            wait(for: connection, until: heardAt + askInterval)
            texts = next()
        }
    }

    /// Without a connection the bell is heard, and what it rings for waits.
    private func rest(_ milliseconds: UInt64) {
        let end = PostgresSession.monotonicClock() + milliseconds
        while !isStopped, PostgresSession.monotonicClock() < end { wait(for: nil, until: end) }
    }

    /// Waits for the bell, the server or the time.
    private func wait(for connection: PostgresConnection?, until end: UInt64) {
        var both = [
            pollfd(fd: bell.read, events: Int16(POLLIN), revents: 0),
            pollfd(fd: connection?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        let now = PostgresSession.monotonicClock()
        guard poll(&both, 2, end > now ? Int32(clamping: end - now) : 0) > 0 else { return }
        if both[0].revents != 0 {
            var rung = [UInt8](repeating: 0, count: 256)
            _ = read(bell.read, &rung, rung.count)
        }
    }
}

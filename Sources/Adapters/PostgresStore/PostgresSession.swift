import Glibc
import Model

/// Makes connections that are set up alike.
struct PostgresSession {
    let options: PostgresOptions

    /// A connection whose statements find the tables by their names.
    func connect(
        _ role: String, isPatient: Bool = false
    ) throws(StoreError) -> PostgresConnection {
        let connection = try PostgresConnection(
            options.address,
            options: [
                ("connect_timeout", String(options.connectTimeout)),
                ("application_name", "rouse \(role)"), ("client_encoding", "UTF8"),
                ("keepalives_idle", "10"), ("keepalives_interval", "5"),
                ("keepalives_count", "3"), ("tcp_user_timeout", String(options.silence ?? 0)),
                // Behind a list of hosts only the primary takes writes.
                ("target_session_attrs", "read-write"),
            ], silence: isPatient ? nil : options.silence)
        do throws(StoreError) {
            for (setting, value) in settings {
                try connection.run("SELECT set_config('\(setting)', '\(value)', false)")
            }
            // An answer means that it is on disk (P1), whatever the database's default is, and
            // whatever it becomes: a session that has set a value keeps it over a reload.
            try connection.run(
                """
                SELECT set_config('synchronous_commit', \
                CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' \
                ELSE current_setting('synchronous_commit') END, false)
                """)
            try connection.synchronize()
        } catch {
            connection.close()
            throw error
        }
        return connection
    }

    /// A store that another leads does not know whether this is the same database.
    func doubts(_ connection: PostgresConnection) -> Bool {
        options.isLed && options.witness.doubts(connection)
    }

    private var settings: [(String, String)] {
        [
            ("search_path", "\"\(options.schema)\""),
            ("lock_timeout", String(options.lockTimeout)),
            ("statement_timeout", String(options.statementTimeout)),
            ("idle_in_transaction_session_timeout", String(options.idleTransactionTimeout)),
            // Statements are few and each has its index: planning them anew costs more than
            // carrying them out, and no plan reads a whole table.
            ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
            ("enable_memoize", "off"), ("jit", "off"),
        ]
    }

    /// The server's clock, which all nodes share.
    static func now(_ connection: PostgresConnection) throws(StoreError) -> Int64 {
        let rows = try connection.rows(
            "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
            columns: [Column("now", .integer)])
        guard case .integer(let now)? = rows.first?.first else {
            throw .unavailable("the server tells no time")
        }
        return now
    }

    @Sendable static func wallClock() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    static func monotonicClock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1000 + UInt64(time.tv_nsec) / 1_000_000
    }
}

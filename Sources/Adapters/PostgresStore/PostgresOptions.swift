/// How a node talks to PostgreSQL.
public struct PostgresOptions: Sendable {
    /// The address as libpq takes it: `postgresql://rouse@db.example/rouse?sslmode=verify-full`,
    /// or keywords and values (PostgreSQL 15, 34.1.1). A password stands in a file
    /// (`passfile=...`), not here.
    public var address: String
    /// The schema of the database that holds the tables.
    public var schema = "rouse"
    /// Whether opening makes the tables, or brings them to the newest schema. A server whose role
    /// may not do that only checks them.
    public var migrates = true
    /// Seconds to wait for the server's answer to a connection.
    public var connectTimeout = 5
    /// Milliseconds a statement waits for a row that another transaction holds: longer than a
    /// node's transaction takes, for the writer carries out nothing else meanwhile. Where a row is
    /// held for longer, as by a person's open session, the request is tried again later.
    public var lockTimeout = 500
    /// Milliseconds a statement may take; 0: as long as it takes.
    public var statementTimeout = 4_000
    /// Milliseconds after which the server ends a transaction whose node says nothing any more, so
    /// that it holds no rows. Others must not be kept from saying that they are there
    /// (`RuleLimits.nodeLease`).
    public var idleTransactionTimeout = 3_000
    /// Milliseconds that a server may say nothing while an answer is awaited: it would have ended a
    /// statement by then, and a node must hear of a server that hangs, or of one whose machine is
    /// gone, early enough to beat over another connection before the others take the node for gone
    /// (`RuleLimits.nodeLease`, of which a beat may be 2 s old, and the next one comes in 2 s).
    /// `nil`: for as long as a statement may take.
    public var silence: Int? { statementTimeout > 0 ? statementTimeout + 1_000 : nil }
    /// Milliseconds to find out whether a transaction was committed whose answer was lost.
    public var resolveTimeout: UInt64 = 10_000
    /// What the process has written, by which its connections know the database again; the same of
    /// all stores and hints of one process.
    public var witness = PostgresWitness()
    /// Another store of the process writes down in `witness` what it has committed. Without one
    /// this store does.
    public var isLed = false
    /// This machine's clock: milliseconds since 1970. It only stands for itself between two looks
    /// at the server's.
    public var machineClock: @Sendable () -> Int64 = PostgresSession.wallClock

    public init(address: String) { self.address = address }

    /// Whether it can be the name of a schema: it stands in statements as it is.
    public static func isSchema(_ name: String) -> Bool {
        // NOTIFY's channel has it behind six other bytes, and names have 63.
        (1...57).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x5f
            }
    }
}

import Glibc
import Model

/// The row by which a connection finds out whether its last transaction was committed when the
/// answer to COMMIT was lost: each transaction writes its number there.
struct PostgresCommitMark {
    /// The store object that writes; no two have the same bytes.
    let writer: [UInt8]
    private(set) var number: Int64 = 0

    static let create = """
        CREATE TABLE commit_mark (writer bytea PRIMARY KEY, number bigint NOT NULL, \
        written_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50)
        """

    /// What a transaction fails with whose writer's row does not have the number before. By itself
    /// that is no fault of the transaction's: the row may have been deleted while the writer was
    /// idle, and is made anew for the next one.
    static let isGone = StoreError.conflict("the row that tells of the writer's commits is gone")

    init() {
        var bytes = [UInt8](repeating: 0, count: 16)
        precondition(getentropy(&bytes, bytes.count) == 0, "no random bytes")
        writer = bytes
    }

    /// Makes the row, and deletes those of writers that have said nothing for a week.
    ///
    /// Only while it is known what came of the last transaction, or will never be asked. A
    /// transaction that was given up and may still reach the server stays shut out: it looks for a
    /// number below every one that is written here (`takeBack` never goes below its own). The
    /// number is a new one, which another database that was the writer's before does not have.
    mutating func make(on connection: PostgresConnection) throws(StoreError) {
        number += 1
        try connection.run(
            "INSERT INTO commit_mark (writer, number) VALUES ($1, $2) "
                + "ON CONFLICT (writer) DO UPDATE SET number = $2, written_at = now()",
            [.blob(writer), .integer(number)])
        try connection.run(
            "DELETE FROM commit_mark WHERE writer IN (SELECT writer FROM commit_mark "
                + "WHERE written_at < now() - interval '7 days' FOR UPDATE SKIP LOCKED)")
        try connection.synchronize()
    }

    /// Queues what tells of the transaction that is about to be committed. Where the row does not
    /// have the number before, the transaction fails: there is no logarithm of zero, and no other
    /// statement asks for one (`isGone`).
    mutating func write(on connection: PostgresConnection) throws(StoreError) {
        let next = number + 1
        try connection.run(
            "WITH changed AS (UPDATE commit_mark SET number = $2::bigint, written_at = now() "
                + "WHERE writer = $1 AND number = $2::bigint - 1 RETURNING 1) "
                + "SELECT ln(count(*)) FROM changed",
            [.blob(writer), .integer(next)])
        number = next
    }

    /// A transaction that wrote its number was rolled back.
    mutating func takeBack() { number -= 1 }

    /// Whether the last transaction was committed. If it was not, it never will be: what the server
    /// may still have of it finds another number than the one before.
    mutating func isCommitted(on connection: PostgresConnection) throws(StoreError) -> Bool {
        try connection.run("BEGIN")
        let rows = try connection.rows(
            "SELECT number FROM commit_mark WHERE writer = $1 FOR UPDATE", [.blob(writer)],
            columns: [Column("number", .integer)])
        let isCommitted = rows.first == [.integer(number)]
        if !isCommitted {
            try connection.run(
                "INSERT INTO commit_mark (writer, number) VALUES ($1, $2) "
                    + "ON CONFLICT (writer) DO UPDATE SET number = $2, written_at = now()",
                [.blob(writer), .integer(number + 1)])
        }
        try connection.run("COMMIT")
        try connection.synchronize()
        if !isCommitted { number += 1 }
        return isCommitted
    }
}

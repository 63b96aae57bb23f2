import Model
import Synchronization

/// What the leading writer of a process has committed, by which its other connections find out
/// whether they reach the same database.
///
/// An address may name several hosts, and a name may lead elsewhere from one connection to the
/// next. Where an old primary is there again beside the standby that took its place, a reader or a
/// listener on the old one would never see what is written to the new one, and nobody would know.
public final class PostgresWitness: Sendable {
    private struct Word {
        let writer: [UInt8]
        /// The number of its last committed transaction: the writer's row has this number, or a
        /// higher one, wherever that transaction is.
        var number: Int64
        /// Counts the writer's connections: with each it may have come to another database.
        var turn: UInt64
    }

    private let word = Mutex<Word?>(nil)

    public init() {}

    /// - Parameter isFresh: The row was made over a connection of which nothing was said before.
    func note(_ mark: PostgresCommitMark, isFresh: Bool = false) {
        word.withLock { word in
            let turn = (word?.turn ?? 0) + (isFresh ? 1 : 0)
            word = Word(writer: mark.writer, number: mark.number, turn: turn)
        }
    }

    /// Whether `verify` asks the server.
    func doubts(_ connection: PostgresConnection) -> Bool {
        word.withLock { $0.map { $0.turn != connection.witnessedTurn } ?? false }
    }

    /// Outside of transactions. Until a writer has said something all are trusted.
    ///
    /// - Throws: `.unavailable`: it is another database; the connection is closed.
    func verify(_ connection: PostgresConnection) throws(StoreError) {
        guard doubts(connection), let word = word.withLock({ $0 }) else { return }
        let rows = try connection.rows(
            "SELECT number FROM commit_mark WHERE writer = $1", [.blob(word.writer)],
            columns: [Column("number", .integer)])
        guard case .integer(let number)? = rows.first?.first, number >= word.number else {
            connection.close()
            throw .unavailable(
                "PostgreSQL at \(connection.place) is another database than the writer's, or the "
                    + "same as it was before: is an old primary there again?")
        }
        connection.witnessedTurn = word.turn
    }
}

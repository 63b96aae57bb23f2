import Foundation
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// By what a process' connections know that they reach the database of its leading writer. Another
/// schema stands for another database, and a row that is set back for an old primary.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresWitnessTests {
    private static let owner = Table(
        "owner", key: [Column("owner", .text)], values: [Column("number", .integer)])

    private static func open(
        _ schema: String, _ witness: PostgresWitness, isLed: Bool = false
    ) throws -> PostgresStore {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        (options.witness, options.isLed) = (witness, isLed)
        return try PostgresStore(tables: [owner.guarded(by: owner)], options: options)
    }

    private static func row(_ name: String) -> [ColumnValue] { [.text(name), .integer(1)] }

    private static func isElsewhere(_ failure: StoreError?) -> Bool {
        guard case .unavailable(let why)? = failure else { return false }
        return why.contains("is another database than the writer's")
    }

    /// Until it goes well: a connection is not made again at once (`ConnectPause`).
    private static func comesAbout(_ body: () throws(StoreError) -> Void) -> Bool {
        for _ in 0..<1_000 {
            if caught(body) == nil { return true }
            usleep(10_000)
        }
        return false
    }

    @Test("a writer and a reader of another database are none of the leading one's")
    func elsewhere() throws {
        let witness = PostgresWitness()
        let alone = try Self.open("witness_other", PostgresWitness())
        defer { alone.close() }
        let lead = try Self.open("witness", witness)
        defer { lead.close() }
        try lead.put(Self.owner, Self.row("a"))
        let failure = caught { () throws(StoreError) in
            do { _ = try Self.open("witness_other", witness, isLed: true) } catch {
                throw error as? StoreError ?? .corrupt("\(error)")
            }
        }
        #expect(Self.isElsewhere(failure), "\(String(describing: failure))")
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = "witness_other"
        options.witness = witness
        let reader = try PostgresReader(
            PostgresSession(options: options), PostgresTables([Self.owner], schema: "witness"))
        defer { reader.close() }
        #expect(Self.isElsewhere(caught { () throws(StoreError) in try reader.read { _ in } }))
        let lane = try Self.open("witness", witness, isLed: true)
        defer { lane.close() }
        try lane.put(Self.owner, Self.row("b"))
        #expect(try lead.rows(Self.owner).count == 2)
    }

    @Test("a writer's row that is made anew has a number that no database had before")
    func fresh() throws {
        try Self.open("witness_fresh", PostgresWitness()).close()
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = "witness_fresh"
        let connection = try PostgresSession(options: options).connect("writer")
        defer { connection.close() }
        var mark = PostgresCommitMark()
        try mark.make(on: connection)
        let first = mark.number
        try mark.make(on: connection)
        #expect(mark.number > first)
        let rows = try connection.rows(
            "SELECT number FROM commit_mark WHERE writer = $1", [.blob(mark.writer)],
            columns: [Column("number", .integer)])
        #expect(rows == [[.integer(mark.number)]])
    }

    @Test("where the leading writer begins anew, the others look whether they are where it is")
    func anew() throws {
        let schema = "witness_anew"
        let witness = PostgresWitness()
        let lead = try Self.open(schema, witness)
        let lane = try Self.open(schema, witness, isLed: true)
        let reader = try lead.reader()
        defer {
            reader.close()
            lane.close()
            lead.close()
        }
        try lead.put(Self.owner, Self.row("a"))
        try lane.put(Self.owner, Self.row("b"))
        try reader.read { _ in }
        // The lead's row goes on elsewhere: what the others reach is as it was before.
        #expect(
            try PostgresPeer.shared().psql("DELETE FROM \(schema).commit_mark") == "")
        #expect(
            caught { () throws(StoreError) in try lead.put(Self.owner, Self.row("c")) }
                == PostgresCommitMark.isGone)
        try lead.put(Self.owner, Self.row("c"))
        #expect(
            try PostgresPeer.shared().psql(
                "UPDATE \(schema).commit_mark SET number = number - 1") == "")
        for _ in 1...2 {
            #expect(Self.isElsewhere(caught { () throws(StoreError) in try reader.read { _ in } }))
            #expect(
                Self.isElsewhere(
                    caught { () throws(StoreError) in try lane.put(Self.owner, Self.row("d")) }))
        }
        // They are where the lead is.
        _ = caught { () throws(StoreError) in try lead.put(Self.owner, Self.row("c")) }
        try lead.put(Self.owner, Self.row("e"))
        #expect(Self.comesAbout { () throws(StoreError) in try reader.read { _ in } })
        #expect(
            Self.comesAbout { () throws(StoreError) in try lane.put(Self.owner, Self.row("d")) })
    }
}

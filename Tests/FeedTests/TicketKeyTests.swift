import MemoryStore
import Model
import Testing

@testable import Feed

/// Which keys of TLS session tickets are in force.
@Suite struct TicketKeyTests {
    private static let hour: Milliseconds = 3_600_000
    private let world: World

    init() throws { world = try World() }

    private func key(_ number: UInt8) -> TicketKey {
        TicketKey(
            name: [UInt8](repeating: number, count: 16),
            secret: [UInt8](repeating: number, count: 64))
    }

    /// The numbers of the keys in force, the newest first.
    private func ask(_ drawn: UInt8) throws -> [UInt8] {
        let answer = try world.ask(.keepTicketKeys(key(drawn)))
        guard case .ticketKeys(let kept) = answer else { throw Unexpected(answer: answer) }
        return kept.map { $0.key.name[0] }
    }

    @Test("whoever comes later gets the key of who came first, for 12 hours")
    func shared() throws {
        #expect(try ask(1) == [1])
        world.pass(12 * Self.hour - 1)
        #expect(try ask(2) == [1])
        world.pass(1)
        #expect(try ask(3) == [3, 1])
        #expect(try ask(4) == [3, 1])
    }

    @Test("a key opens tickets until the last one it sealed is over, and leaves the store then")
    func rotation() throws {
        for number in UInt8(1)...3 {
            _ = try ask(number)
            world.pass(12 * Self.hour)
        }
        #expect(try ask(4) == [4, 3, 2, 1])
        world.pass(TicketKey.signsAfter)
        #expect(try ask(5) == [4, 3, 2])
        for number in UInt8(6)...20 {
            world.pass(12 * Self.hour)
            #expect((3...4).contains(try ask(number).count))
        }
        world.pass(TicketKey.lifetime)
        #expect(try ask(21) == [21])
        var rows = 0
        try world.store.read { snapshot throws(StoreError) in
            rows = try snapshot.records(MetaRecord.self, Scan(limit: 100))
                .count { $0.name.hasPrefix("ticket_key") }
        }
        #expect(rows == 1, "what is over is good for a thief only")
    }

    @Test("a key of a clock that was set back by more than hours is replaced")
    func future() throws {
        #expect(try ask(1) == [1])
        try world.tamper { transaction throws(StoreError) in
            var row = MetaRecord(
                name: MetaRecord.ticketKeyName(0), bytes: key(1).name + key(1).secret)
            row.number = (world.now + 30 * Self.hour).milliseconds
            try transaction.put(row)
        }
        #expect(try ask(2) == [2])
    }
}

import Feed
import Model
import Testing

@testable import SyncService

/// Which key of those in force seals a loop's tickets, and when it asks again.
@Suite struct TicketKeyKeeperTests {
    private func kept(_ ages: Milliseconds...) -> [KeptTicketKey] {
        ages.enumerated().map { index, age in
            KeptTicketKey(
                key: TicketKey(
                    name: [UInt8](repeating: UInt8(index), count: 16),
                    secret: [UInt8](repeating: 0, count: 64)),
                age: age)
        }
    }

    private func order(_ kept: [KeptTicketKey]) -> [UInt8] {
        TicketKeyKeeper.sealingFirst(kept).map { $0.name[0] }
    }

    @Test("the newest that every node has asked for seals; a first one at once")
    func seals() {
        let (young, known) = (TicketKey.signsAfter - 1, TicketKey.signsAfter)
        #expect(order(kept(0)) == [0])
        #expect(order(kept(young, 50_000_000)).first == 1)
        #expect(order(kept(known, 50_000_000)).first == 0)
        #expect(order(kept(0, young)).first == 1, "two of one start: the one known for longer")
        #expect(Set(order(kept(young, 50_000_000, 90_000_000))) == [0, 1, 2])
    }

    @Test("a key's time ends where the store tells nothing any more")
    func ends() {
        let before = kept(0, TicketKey.lifetime - 1_000)
        func ages(_ elapsed: Milliseconds) -> [Milliseconds] {
            TicketKeyKeeper.inForce(before, after: elapsed).map(\.age)
        }
        #expect(ages(999) == [999, TicketKey.lifetime - 1])
        #expect(ages(1_000) == [1_000])
        #expect(ages(TicketKey.lifetime) == [] && ages(.max) == [])
        #expect(
            TicketKeyKeeper.sealingFirst(
                TicketKeyKeeper.inForce(kept(0, 50_000_000), after: TicketKey.signsAfter)
            ).first?.name[0] == 0)
    }

    @Test("with others it asks before a new key seals; alone only when something is due")
    func asks() {
        let due = TicketKey.renewAfter
        #expect(TicketKeyKeeper.nextAsk(kept(0), isShared: false) == due + 1_000)
        #expect(TicketKeyKeeper.nextAsk(kept(due - 5), isShared: false) == 1_005)
        #expect(
            TicketKeyKeeper.nextAsk(kept(60_000, due), isShared: false)
                == TicketKey.signsAfter - 60_000 + 1_000)
        #expect(
            TicketKeyKeeper.nextAsk(kept(0), isShared: true) < TicketKey.signsAfter - 60_000)
        #expect(TicketKeyKeeper.nextAsk([], isShared: true) > 0)
    }
}

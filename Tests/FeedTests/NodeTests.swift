import Feed
import Model
import Testing

/// Several processes on one store.
@Suite struct NodeTests {
    let world: World
    /// The world's own boot, under which its sessions are opened.
    private let first = NodeBeat(boot: BootID(high: 9, low: 9), name: "one")
    private let second = NodeBeat(boot: BootID(high: 9, low: 10), name: "two")

    init() throws { world = try World() }

    private var expected: [Timestamp?] {
        get throws { try world.all(SessionRecord.self).map(\.expectedUntil) }
    }

    private func start(_ node: NodeBeat) throws {
        #expect(try world.ask(.beat(node)) == .done)
        #expect(
            try world.ask(.start(boot: node.boot, epochHalf: 1)) == .started(storeEpochHalf: 77))
    }

    @Test func aNodeThatStartsLeavesTheSessionsOfOneThatIsThere() throws {
        try start(first)
        try world.login("anna", DeviceID(high: 1, low: 1))
        world.pass(9_000)
        try start(second)
        #expect(try expected == [nil])
    }

    @Test func sessionsOfANodeThatSaysNothingAreTakenForGone() throws {
        try start(first)
        try world.login("anna", DeviceID(high: 1, low: 1))
        try start(second)
        world.pass(9_000)
        try world.ask(.beat(second))
        #expect(try expected == [nil])
        world.pass(1_000)
        try world.ask(.beat(second))
        #expect(try expected == [world.now + 10_000])
        #expect(try world.all(NodeRecord.self).map(\.name) == ["two"])
    }

    @Test func aNodeThatBeatsIsThereForAsLongAsItDoes() throws {
        try start(first)
        try start(second)
        try world.login("anna", DeviceID(high: 1, low: 1))
        for _ in 0..<20 {
            world.pass(2_000)
            for node in [first, second] { try world.ask(.beat(node)) }
        }
        #expect(try expected == [nil])
        #expect(try world.all(NodeRecord.self).count == 2)
    }

    @Test func aNodeThatWasTakenForGoneIsThereAgainWithItsNextBeat() throws {
        try start(first)
        try start(second)
        for _ in 0..<2 {
            world.pass(5_000)
            try world.ask(.beat(second))
        }
        #expect(try world.all(NodeRecord.self).map(\.name) == ["two"])
        try world.ask(.beat(first))
        #expect(try world.all(NodeRecord.self).map(\.name).sorted() == ["one", "two"])
    }

    @Test func whereTheStoreWasAwayNobodyIsTakenForGoneAtOnce() throws {
        try start(first)
        try start(second)
        try world.login("anna", DeviceID(high: 1, low: 1))
        world.pass(60_000)
        try world.ask(.beat(second))
        world.pass(4_000)
        try world.ask(.beat(first))
        for _ in 0..<10 {
            world.pass(2_000)
            for node in [second, first] { try world.ask(.beat(node)) }
        }
        #expect(try expected == [nil])
        #expect(try world.all(NodeRecord.self).count == 2)
    }

    @Test func withoutNodesAStartEndsTheSessionsOfEveryOtherBoot() throws {
        try world.login("anna", DeviceID(high: 1, low: 1))
        #expect(
            try world.ask(.start(boot: second.boot, epochHalf: 1)) == .started(storeEpochHalf: 77))
        #expect(try expected == [world.now + 10_000])
    }
}

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

    /// What a beat tells its node.
    @discardableResult private func standing(
        _ node: NodeBeat, _ connections: Int = 0
    ) throws -> NodeStanding? {
        var beat = node
        beat.connections = connections
        try world.ask(.beat(beat))
        return world.node
    }

    private func order(_ order: NodeOrder) throws -> [NodeRecord] {
        guard case .ordered(let nodes) = try world.ask(.order(order)) else { return [] }
        return nodes
    }

    @Test("two processes of one name hear of each other, a successor does not of the one before")
    func namesakes() throws {
        var twin = second
        twin.name = first.name
        #expect(try standing(first)?.hasNamesake == false)
        world.pass(2_000)
        // Its row stands until its lease is over, and it may have been killed.
        #expect(try standing(twin)?.hasNamesake == false)
        world.pass(2_000)
        #expect(try standing(first)?.hasNamesake == true)
        #expect(try standing(twin)?.hasNamesake == true)
        var ending = first
        ending.phase = .ending
        #expect(try standing(ending)?.hasNamesake == true)
        #expect(try standing(twin)?.hasNamesake == false)
    }

    @Test("a node that is to drain hears so with each beat, until it is to go on")
    func drains() throws {
        #expect(try standing(first) == NodeStanding(isAlone: true))
        #expect(try standing(second)?.hasOthers == true)
        #expect(try order(.drain(name: "three")) == [])
        #expect(try order(.drain(name: "one")).map(\.boot) == [first.boot])
        for _ in 0..<2 {
            world.pass(2_000)
            #expect(try standing(first) == NodeStanding(drains: true, hasOthers: true))
            // Nobody goes to a node that drains; but it is told what happens.
            #expect(try standing(second) == NodeStanding(hasOthers: false, isAlone: false))
        }
        #expect(try order(.resume(name: "one")).map(\.drains) == [false])
        #expect(try standing(first) == NodeStanding(hasOthers: true))
        #expect(try standing(second)?.hasOthers == true)
        // The next process of the name is another node.
        #expect(try order(.drain(name: "one")).count == 1)
        let next = NodeBeat(boot: BootID(high: 9, low: 11), name: "one")
        #expect(try standing(next)?.drains == false)
    }

    @Test("nodes above the mean of those that take devices send their surplus away, once")
    func rebalances() throws {
        let third = NodeBeat(boot: BootID(high: 9, low: 12), name: "three")
        _ = try standing(first, 10)
        _ = try standing(second, 3)
        _ = try standing(third, 500)
        _ = try order(.drain(name: "three"))
        // 13 over two nodes: 7 is the mean.
        let told = try order(.rebalance)
        #expect(told.map(\.boot) == [first.boot] && told.map(\.surplus) == [3])
        #expect(try standing(first, 10)?.surplus == 3)
        #expect(try standing(first, 10)?.surplus == 0)
        #expect(try standing(second, 3)?.surplus == 0)
        _ = try standing(first, 7)
        _ = try standing(second, 6)
        #expect(try order(.rebalance) == [])
    }

    @Test("nobody is sent to a node that ends")
    func ends() throws {
        var last = second
        last.phase = .ending
        #expect(try standing(first) == NodeStanding(isAlone: true))
        #expect(try standing(second)?.hasOthers == true)
        #expect(try standing(first)?.hasOthers == true)
        #expect(try standing(last)?.hasOthers == true)
        #expect(try standing(first) == NodeStanding(hasOthers: false, isAlone: false))
        // Nor is it counted where devices are spread.
        _ = try standing(first, 9)
        _ = try standing(last, 1)
        #expect(try order(.rebalance) == [])
    }

    @Test("the sessions of a node that ends in order are waited for from then on")
    func endsInOrder() throws {
        try start(first)
        try start(second)
        try world.login("anna", DeviceID(high: 1, low: 1))
        var last = first
        last.phase = .over
        world.pass(1_000)
        try world.ask(.beat(last))
        #expect(try world.all(NodeRecord.self).map(\.name) == ["two"])
        #expect(try expected == [world.now + 10_000])
        // Nobody has to say it twice.
        try world.ask(.beat(last))
        #expect(try world.all(NodeRecord.self).map(\.name) == ["two"])
    }

    @Test("a node that was silent drains when it is there again, until it is told otherwise")
    func drainsAfterSilence() throws {
        try start(first)
        try start(second)
        try world.login("anna", DeviceID(high: 1, low: 1))
        #expect(try order(.drain(name: "one")).count == 1)
        for _ in 0..<20 {
            world.pass(2_000)
            try world.ask(.beat(second))
        }
        // Its devices are waited for once, and not with each beat.
        #expect(try expected == [world.now - 30_000 + 10_000])
        #expect(try standing(first)?.drains == true)
        // A session of now is there, as those of others.
        try world.login("anna", DeviceID(high: 1, low: 1))
        #expect(try expected == [nil])
        for _ in 0..<20 {
            world.pass(2_000)
            try world.ask(.beat(second))
        }
        #expect(try expected == [world.now - 30_000 + 10_000])
        #expect(try order(.resume(name: "one")).map(\.drains) == [false])
        #expect(try standing(first)?.drains == false)
    }

    @Test("a node that stands still is told otherwise also before anybody has noticed")
    func resumesBeforeItIsMissed() throws {
        try start(first)
        _ = try order(.drain(name: "one"))
        world.pass(60_000)
        #expect(try order(.resume(name: "one")).map(\.drains) == [false])
        #expect(try standing(first)?.drains == false)
    }

    @Test("the order to a node that never came back is dropped after a day")
    func forgetsOrders() throws {
        try start(first)
        try start(second)
        _ = try order(.drain(name: "one"))
        func pass(_ hours: Int) throws {
            world.pass(Milliseconds(hours) * 3_600_000)
            for _ in 0..<10 {
                world.pass(2_000)
                try world.ask(.beat(second))
            }
        }
        try pass(23)
        #expect(try world.all(NodeRecord.self).map(\.name).sorted() == ["one", "two"])
        try pass(1)
        #expect(try world.all(NodeRecord.self).map(\.name) == ["two"])
    }

    @Test("the order to a node that is gone ends when a later process has its name")
    func forgetsOrdersOfTheReplaced() throws {
        try start(first)
        try start(second)
        _ = try order(.drain(name: "one"))
        _ = try order(.drain(name: "two"))
        let third = NodeBeat(boot: BootID(high: 9, low: 12), name: "three")
        func wait(_ node: NodeBeat) throws {
            for _ in 0..<20 {
                world.pass(2_000)
                try world.ask(.beat(node))
            }
        }
        try wait(third)
        #expect(try world.all(NodeRecord.self).map(\.name).sorted() == ["one", "three", "two"])
        try wait(NodeBeat(boot: BootID(high: 9, low: 13), name: "one"))
        #expect(
            try world.all(NodeRecord.self).filter { $0.name == "one" }.map(\.boot)
                == [BootID(high: 9, low: 13)])
        #expect(try world.all(NodeRecord.self).contains { $0.name == "two" })
    }

    @Test("however many drained nodes have gone, the next one is missed, and others are seen")
    func manyGone() throws {
        try start(first)
        for number in 0..<300 {
            var row = NodeRecord(
                boot: BootID(high: 1, low: UInt64(number)), name: "old\(number)",
                startedAt: world.now, thereSince: world.now,
                until: world.now + 1_000 + Milliseconds(number), connections: 0, version: "1",
                drains: true)
            row.goneAt = row.until
            try world.tamper { transaction throws(StoreError) in try transaction.put(row) }
        }
        world.pass(5_000)
        #expect(try standing(second) != nil)
        #expect(try standing(first)?.hasOthers == true)
        #expect(try order(.drain(name: "one")).count == 1)
        for _ in 0..<100 {
            world.pass(2_000)
            try world.ask(.beat(first))
        }
        #expect(try !world.all(NodeRecord.self).contains { $0.name == "two" })
        #expect(try world.all(NodeRecord.self).count == 65)
    }

    @Test("a node of a version that does not look for orders is not told to drain")
    func tellsOld() throws {
        try standing(first)
        let old = NodeRecord(
            boot: BootID(high: 9, low: 13), name: "old", startedAt: world.now,
            thereSince: world.now, until: world.now + 10_000)
        try world.tamper { transaction throws(StoreError) in try transaction.put(old) }
        #expect(try order(.drain(name: "old")).map(\.drains) == [nil])
    }

    @Test("a row tells what its node holds")
    func holds() throws {
        try world.ask(
            .beat(NodeBeat(boot: first.boot, name: "one", version: "9.8", connections: 4)))
        let row = try world.all(NodeRecord.self).first
        #expect(row?.version == "9.8" && row?.connections == 4)
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

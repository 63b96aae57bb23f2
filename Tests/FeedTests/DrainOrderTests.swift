import Feed
import Model
import Testing

/// What operators are told of a node that drains: since when, and who said so.
@Suite struct DrainOrderTests {
    let world: World
    private let one = NodeBeat(boot: BootID(high: 9, low: 20), name: "one")
    private let two = NodeBeat(boot: BootID(high: 9, low: 21), name: "two")

    init() throws { world = try World() }

    /// As the admin API carries it out: written down, done, and what came of it.
    private func order(_ order: NodeOrder, by actor: String, status: UInt64 = 202) throws {
        let note = AuditNote(actor: actor, action: order.action)
        guard case .audited(let number) = try world.ask(.administer(.noteAudit(note))) else {
            return #expect(Bool(false), "nothing was written down")
        }
        if status < 400 { try world.ask(.order(order)) }
        if status > 0 { try world.ask(.administer(.settleAudit(number, status: status))) }
    }

    /// By whom each drains, and since how many milliseconds.
    private func drains() throws -> [String: String] {
        guard case .operators(.nodes(let views)) = try world.read(.operators(.nodes)) else {
            return [:]
        }
        return Dictionary(
            views.compactMap { view in
                view.drain.map { (view.node.name, "\($0.actor) \(world.now.since($0.at))") }
            }, uniquingKeysWith: { first, _ in first })
    }

    @Test("it drains since the first order that nothing took back")
    func since() throws {
        try world.ask(.beat(one))
        try world.ask(.beat(two))
        #expect(try drains() == [:])
        try order(.drain(name: "one"), by: "anna")
        world.pass(1_000)
        // Others, repeated ones and refused ones change nothing.
        try order(.drain(name: "one"), by: "bob")
        try order(.drain(name: "two"), by: "bob", status: 503)
        try order(.resume(name: "one"), by: "bob", status: 503)
        try order(.rebalance, by: "bob")
        #expect(try drains() == ["one": "anna 1000"])
        try order(.resume(name: "one"), by: "bob")
        #expect(try drains() == [:])
        world.pass(1_000)
        // Nobody wrote down what came of this one.
        try order(.drain(name: "one"), by: "carol", status: 0)
        try order(.drain(name: "two"), by: "dora")
        #expect(try drains() == ["one": "carol 0", "two": "dora 0"])
    }

    @Test("an order to an earlier process of the name is none of a later one")
    func laterProcess() throws {
        try world.ask(.beat(one))
        try order(.drain(name: "one"), by: "anna")
        world.pass(1_000)
        let next = NodeBeat(boot: BootID(high: 9, low: 22), name: "one")
        try world.ask(.beat(next))
        try order(.drain(name: "one"), by: "bob")
        guard case .operators(.nodes(let views)) = try world.read(.operators(.nodes)) else {
            return #expect(Bool(false))
        }
        let actors = Dictionary(
            uniqueKeysWithValues: views.map { ($0.node.boot, $0.drain?.actor) })
        #expect(actors[one.boot] == "anna" && actors[next.boot] == "bob")
    }

    @Test("what the audit log has lost is not made up")
    func forgotten() throws {
        try world.ask(.beat(one))
        try order(.drain(name: "one"), by: "anna")
        for _ in 0..<1_000 { try order(.rebalance, by: "bob") }
        guard case .operators(.nodes(let views)) = try world.read(.operators(.nodes)) else {
            return #expect(Bool(false))
        }
        #expect(views.map(\.drain) == [nil] && views.map(\.node.drains) == [true])
    }
}

import Feed
import Model
import Testing
import Wake

/// What the devices of an app learn together of how long a wake takes, through the store.
@Suite struct SharedGraceTests {
    private let bobs = DeviceID(high: 2, low: 1)
    private let carls = DeviceID(high: 2, low: 2)
    private let pushes: Pushes
    private let room: ConversationID
    private let rowName = "latencies/chess"

    /// Two phones asleep, of which nothing is known, and an app whose devices learn.
    init() throws {
        pushes = try Pushes()
        room = try pushes.world.converse(["anna", "bob", "carl"])
        try pushes.nap("bob", bobs, token: 1)
        try pushes.nap("carl", carls, token: 2)
        try learn {
            $0.graceQuantile = 85
            $0.graceMin = 1_000
            $0.graceMax = 60_000
        }
    }

    private func learn(_ change: (inout AdaptivePolicy) -> Void) throws {
        var app = World.classic(createdAt: pushes.world.now)
        (app.silentBudget, app.silentSpacing) = (8, 0)
        change(&app.adaptive)
        try pushes.world.expectDone(.putApp(app))
    }

    /// A message to all; carl's phone comes so long after it, bob is in his app.
    private func teach(_ latency: Milliseconds) throws {
        let session = try pushes.open("bob", bobs, token: 1).session
        try pushes.say("x", in: room)
        #expect(try pushes.run(0) == ["silent"])
        try pushes.run(latency)
        try come("carl", carls, token: 2)
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(600_000)
    }

    /// The app comes by its last silent push, syncs and sleeps again.
    private func come(_ user: String, _ device: DeviceID, token: UInt8) throws {
        let wake = try #require(
            pushes.sent.last { $0.kind == .silent && $0.key.device == device })
        let session = try pushes.open(user, device, wake: wake.request.id, token: token).session
        try pushes.acknowledge(session, try pushes.head(user))
        try pushes.end(session, within: 0)
    }

    private func row() throws -> MetaRecord? {
        try pushes.world.record(MetaRecord.self, [.text(rowName)])
    }

    @Test func aPhoneWithoutWakesOfItsOwnGoesByThoseOfItsApp() throws {
        for _ in 0..<7 { try teach(4_000) }
        #expect(try pushes.view(bobs).policy.grace == 60_000)
        #expect(try pushes.view(bobs).graceSource == .policy)
        try teach(4_000)
        #expect(try pushes.view(carls).graceSource == .device)
        #expect(try pushes.view(bobs).policy.grace == 4_100)
        #expect(try pushes.view(bobs).graceSource == .app)
        // It is what bob's phone has: woken, and given up after four seconds.
        try pushes.say("1", in: room)
        #expect(try pushes.run(0) == ["silent", "silent"])
        try come("carl", carls, token: 2)
        #expect(try pushes.run(4_000) == [])
        #expect(try pushes.run(1_000) == [#"alert "1" badge 9 stored"#])
        #expect(try pushes.view(bobs).reachability == .unreachable)
    }

    @Test func withEnoughWakesOfItsOwnItGoesByThese() throws {
        for _ in 0..<8 { try teach(4_000) }
        for count in 1...8 {
            try pushes.say("x", in: room)
            #expect(try pushes.run(0) == ["silent", "silent"])
            try come("carl", carls, token: 2)
            try pushes.run(3_000)
            try come("bob", bobs, token: 1)
            try pushes.run(600_000)
            #expect(try pushes.view(bobs).graceSource == (count < 8 ? .app : .device))
        }
        #expect(try pushes.view(bobs).policy.grace == 3_100)
    }

    @Test func whatAnAppsPhonesTaughtOutlivesARestartAndGoesWithTheApp() throws {
        for _ in 0..<8 { try teach(4_000) }
        let boot = BootID(high: 9, low: 10)
        _ = try pushes.world.ask(.start(boot: boot, epochHalf: 1))
        #expect(try pushes.view(bobs).policy.grace == 4_100)
        try pushes.world.expectDone(.removeApp(World.app))
        #expect(try row() != nil)
        while case .progressed(_, more: true) = try pushes.world.ask(
            .enforceRetention(rows: 100))
        {}
        #expect(try row() == nil)
    }

    @Test func whereNothingIsLearnedNothingIsKept() throws {
        try learn { $0 = AdaptivePolicy() }
        for _ in 0..<9 { try teach(4_000) }
        #expect(try row() == nil)
        #expect(try pushes.view(bobs).graceSource == .policy)
    }

    @Test func aRowThatAnotherNodeHoldsIsNotWaitedFor() throws {
        for _ in 0..<7 { try teach(4_000) }
        let before = try row()
        pushes.world.engine = HeldStore(pushes.world.store, key: [.text(rowName)])
        // Carl's phone is let in and synced; only its sample is lost.
        try teach(4_000)
        #expect(try row() == before)
        #expect(try pushes.view(carls).graceSource == .device)
        pushes.world.engine = pushes.world.store
        try teach(4_000)
        #expect(try row() != before)
        #expect(try pushes.view(bobs).graceSource == .app)
    }
}

/// One row of `meta` is held by another transaction all the time: who waits for it fails.
private final class HeldStore: FrontedStore {
    private let base: any Store
    var fronted: any Store { base }
    private let key: [ColumnValue]

    init(_ base: any Store, key: [ColumnValue]) {
        self.base = base
        self.key = key
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write { transaction throws(StoreError) in
            try body(Transaction(transaction, held: self.key))
        }
    }

    private final class Transaction: StoreTransaction {
        let base: any StoreTransaction
        let held: [ColumnValue]

        init(_ base: any StoreTransaction, held: [ColumnValue]) {
            self.base = base
            self.held = held
        }

        private func isHeld(_ table: Table, _ key: [ColumnValue]) -> Bool {
            table == MetaRecord.table && key == held
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        {
            if isHeld(table, key), lock == .skip { return nil }
            if isHeld(table, key), lock == .wait { throw .conflict("waits for a row that is held") }
            return try base.row(table, key: key, lock: lock)
        }

        func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
            try base.rows(table, scan)
        }

        func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            if isHeld(table, Array(row.prefix(1))) { throw .conflict("writes a row that is held") }
            try base.put(table, row)
        }

        func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            if isHeld(table, Array(row.prefix(1))) { throw .conflict("writes a row that is held") }
            try base.insert(table, row)
        }

        func update(
            _ table: Table, _ row: [ColumnValue], columns: [Int]
        ) throws(StoreError) {
            if isHeld(table, Array(row.prefix(1))) { throw .conflict("writes a row that is held") }
            try base.update(table, row, columns: columns)
        }

        func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            try base.delete(table, key: key)
        }

        func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.lockSequence(body)
        }

        func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.savepoint(body)
        }
    }
}

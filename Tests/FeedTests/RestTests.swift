import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// A server that has nothing to do writes nothing until the next due time: that it knows that time,
/// and that its silence is taken for no outage.
@Suite struct RestTests {
    private let pushes: Pushes
    private var world: World { pushes.world }

    init() throws {
        pushes = try Pushes()
        try world.ask(.keepAlive)
    }

    /// What the writer does by itself, besides retention and saying that it is there.
    private static let duties: [StoreRequest] = [
        .continueFanOut(recipients: 512), .continueDeletions(rows: 512),
        .coalesceReceipts(users: 256), .campaigns(.advance(devices: 256)),
        .sweepWakes(rows: 256), .schedules(.publishDue(rows: 64)),
    ]

    /// One turn of all of it; the rows that it wrote.
    private func turn() throws -> Int {
        var written = 0
        for duty in Self.duties {
            try world.ask(duty)
            written += world.rows.written
        }
        return written
    }

    private func settle() throws {
        for _ in 0..<20 where try turn() == 0 { return }
        Issue.record("the duties come to no end")
    }

    private func nextDue() throws -> Timestamp? {
        var due: Timestamp?
        try world.store.read { snapshot throws(StoreError) in
            due = try Rules.nextDue(in: snapshot, now: world.now)
        }
        return due
    }

    private func rest(_ time: Milliseconds) throws {
        world.pass(time)
        try world.ask(.rested(time))
    }

    /// Rests until something is due; before that there must be nothing to do, and then something.
    private func reachNext() throws -> Milliseconds? {
        try settle()
        try world.ask(.keepAlive)
        guard let due = try nextDue() else { return nil }
        let wait = due.since(world.now)
        for part in [wait / 2, wait - wait / 2 - 1] {
            try rest(part)
            #expect(try turn() == 0, "of \(wait) ms, \(due.since(world.now)) before the end")
        }
        try rest(1)
        #expect(try turn() > 0, "nothing was due after \(wait) ms")
        return wait
    }

    private var outage: Timestamp? {
        get throws {
            var end: Timestamp?
            try world.store.read { snapshot throws(StoreError) in
                end = try WakeRules.outageEnd(in: snapshot, now: world.now)
            }
            return end
        }
    }

    @Test("a store in which nothing waits has nothing due, however long")
    func nothing() throws {
        try settle()
        #expect(try nextDue() == nil)
        try pushes.open("anna", DeviceID(high: 1, low: 1))
        try settle()
        #expect(try nextDue() == nil)
        try rest(86_400_000)
        #expect(try turn() == 0)
    }

    @Test("a device that stays away, its wake, its grace and its alert are due in time")
    func wake() throws {
        let room = try world.converse(["anna", "ben"])
        let session = try pushes.open("anna", DeviceID(high: 1, low: 1)).session
        try world.publish("hello", to: room, from: "ben")
        try pushes.end(session, within: 10_000)
        // It does not come back.
        #expect(try reachNext() == 10_000)
        let wake = try #require(try pushes.claim().first)
        try pushes.finish(wake)
        // The app does not answer within its grace.
        #expect(try reachNext() == 60_000)
        let alert = try #require(try pushes.claim().first)
        #expect(alert.word != wake.word)
        try pushes.finish(alert)
        #expect(try outage == nil)
    }

    @Test("a message for later is due at its hour, of a suspended app never")
    func scheduled() throws {
        let room = try world.converse(["anna", "ben"])
        let message = Publication(
            message: world.message0("later", to: room, world.fresh()), sender: "ben")
        try world.ask(
            .schedules(
                .add(
                    app: World.app, NewScheduled(.message(message), sendAt: world.now + 3_600_000),
                    idempotency: nil)))
        try world.expectDone(.suspendApp(World.app))
        try settle()
        #expect(try nextDue() == nil)
        try world.expectDone(.resumeApp(World.app))
        #expect(try reachNext() == 3_600_000)
        #expect(try world.texts("anna").contains { $0.hasSuffix("later") })
    }

    @Test("an hour without a word is an outage, but not for who says that it rested")
    func rested() throws {
        try rest(3_600_000)
        try world.ask(.keepAlive)
        #expect(try outage == nil)
        world.pass(3_600_000)
        try world.ask(.keepAlive)
        #expect(try outage == world.now)
    }

    @Test("where the clock went on further than the rest, or was set back, that is noticed")
    func clock() throws {
        world.pass(3_600_000)
        try world.ask(.rested(60_000))
        try world.ask(.keepAlive)
        #expect(try outage == world.now)
        let set = world.now
        world.store.clock = Timestamp(milliseconds: set.milliseconds - 600_000)
        try world.ask(.rested(60_000))
        try world.ask(.sweepWakes(rows: 1))
        #expect(try outage == nil)
        let due = try nextDue()
        #expect(due == nil || due == world.now)
    }

    private func isUnfinished() throws -> Bool {
        var found = false
        try world.store.read { snapshot throws(StoreError) in
            found = try Rules.isUnfinished(in: snapshot)
        }
        return found
    }

    @Test("it does not rest while a conversation's content is still to be removed")
    func removal() throws {
        let room = try world.converse(["anna", "ben"])
        for text in ["one", "two"] { try world.publish(text, to: room) }
        try settle()
        #expect(try !isUnfinished())
        _ = try world.end(room)
        #expect(try isUnfinished())
        try world.retain()
        #expect(try !isUnfinished())
    }

    @Test("it does not rest while a device has time to answer a push")
    func grace() throws {
        let session = try world.login(
            "anna", DeviceID(high: 4, low: 4), push: Pushes.registration()
        ).session
        try pushes.end(session, within: 0)
        let room = try world.converse(["anna", "ben"])
        #expect(try !isUnfinished())
        try world.publish("one", to: room, from: "ben")
        try pushes.finish(try #require(try pushes.claim().first))
        #expect(try isUnfinished())
    }
}

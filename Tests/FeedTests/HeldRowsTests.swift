import Foundation
import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Somebody holds a row for long, as with a statement typed by hand whose end was forgotten: what
/// concerns it waits, and nobody else does.
@Suite struct HeldRowsTests {
    private let pushes: Pushes
    private var world: World { pushes.world }

    init() throws { pushes = try Pushes() }

    /// A node whose duties wait for nothing any more, over the world's store as it is by now.
    private final class Node {
        let store: MemoryStore
        private let engine: DistantEngine
        private var limits: RuleLimits
        /// Which keys of which table others hold.
        var held: (table: String, key: [ColumnValue])?

        init(_ world: World) {
            store = world.store.copy()
            store.isSoleWriter = false
            engine = DistantEngine(store, lockRanks: Schema.lockRanks)
            limits = world.limits
            limits.attempts = 1
            engine.isHeldElsewhere = { [weak self] read in
                guard let held = self?.held, case .row(let table, let key, _) = read else {
                    return false
                }
                return table.name == held.table && key == held.key
            }
        }

        func hold(_ conversation: ConversationID) {
            held = (
                ConversationRecord.table.name, [.app(World.app), .identifier(conversation)]
            )
        }

        func hold(_ user: String, _ device: DeviceID?) {
            let key: [ColumnValue] = [.app(World.app), .user(UserID(user))]
            held =
                device.map { (DeviceRecord.table.name, key + [.identifier($0)]) }
                ?? (UserRecord.table.name, key)
        }

        func hold(_ campaign: CampaignID) {
            held = (
                CampaignProgressRecord.table.name, [.app(World.app), .identifier(campaign)]
            )
        }

        func counts(_ campaign: CampaignID) throws -> CampaignCounts {
            let all = try all(CampaignProgressRecord.self)
            return try #require(all.first { $0.campaign == campaign }).counts
        }

        @discardableResult
        func ask(_ request: StoreRequest) throws -> StoreAnswer {
            let results = try engine.commit([request], limits: limits, waits: false)
            return try #require(results.first).get().answer
        }

        func all<R: Record>(_ type: R.Type) throws -> [R] {
            var found: [R] = []
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.records(type, Scan(limit: 10_000))
            }
            return found
        }

        func claim() throws -> ClaimedPushes {
            let answer = try ask(
                .claimPushes(
                    ClaimPushes(
                        boot: BootID(high: 9, low: 9), streams: 8,
                        ids: (0..<8).map { WakeID(high: 78, low: $0) })))
            guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
            return claimed
        }

        /// Until nothing is left to do at once.
        func rest(_ request: StoreRequest) throws {
            for _ in 0..<50 {
                guard case .progressed(_, more: true) = try ask(request) else { return }
            }
            Issue.record("\(request) comes again at once for what others hold")
        }
    }

    private static let users = ["anna", "ben", "carl"]

    private func phone(_ user: String) -> DeviceID {
        DeviceID(high: 5, low: UInt64(Self.users.firstIndex(of: user) ?? 9) + 1)
    }

    /// Their phones sleep, and a message has come for each.
    private func publishToSleepers() throws {
        for (number, user) in Self.users.enumerated() {
            let session = try pushes.open(user, phone(user), token: UInt8(number + 1)).session
            try pushes.end(session, within: 10)
        }
        try world.publish("one", to: try world.converse(Self.users), from: "anna")
        world.pass(2_000)
        try world.ask(.sweepWakes(rows: 10))
    }

    @Test(
        "of many phones whose grace is over each is alerted but the one whose row is held",
        arguments: users.dropFirst(), [true, false])
    func graces(held: String, isDevice: Bool) throws {
        try publishToSleepers()
        for job in try pushes.claim() { try pushes.finish(job) }
        world.pass(61_000)
        try world.ask(.keepAlive)
        let node = Node(world)
        node.hold(held, isDevice ? phone(held) : nil)
        try node.rest(.sweepWakes(rows: 10))
        let others = Self.users.dropFirst().filter { $0 != held }
        #expect(try node.claim().jobs.map(\.key.user.name) == others)
        node.held = nil
        try node.rest(.sweepWakes(rows: 10))
        #expect(try node.claim().jobs.map(\.key.user.name) == [held])
    }

    @Test("many rows of one whose row is held keep no other's from their turn")
    func manyRows() throws {
        var number: UInt64 = 0
        func phone(of user: String) throws {
            number += 1
            let device = DeviceID(high: 6, low: number)
            let session = try pushes.open(user, device, token: UInt8(number)).session
            try pushes.end(session, within: 1_000)
        }
        for _ in 0..<20 { try phone(of: "anna") }
        world.pass(10)
        try phone(of: "ben")
        world.pass(2_000)
        try world.ask(.keepAlive)
        let node = Node(world)
        node.hold("anna", nil)
        try node.rest(.sweepWakes(rows: 256))
        let left = try node.all(SessionRecord.self)
        #expect(left.count == 20 && left.allSatisfy { $0.user.name == "anna" })
        node.held = nil
        try node.rest(.sweepWakes(rows: 256))
        #expect(try node.all(SessionRecord.self).isEmpty)
    }

    @Test("while the end of an app's sessions waits for a row that is held, sweeps go on")
    func sessionEnds() throws {
        for user in Self.users { _ = try pushes.open(user, phone(user), token: 1) }
        let ben = try pushes.open("ben", DeviceID(high: 6, low: 1), token: 9).session
        try pushes.end(ben, within: 1_000)
        world.pass(2_000)
        try world.ask(.keepAlive)
        let node = Node(world)
        node.hold("anna", nil)
        try node.ask(.administer(.suspendApp(World.app)))
        try node.rest(.sweepWakes(rows: 256))
        #expect(try !node.all(SessionRecord.self).contains { $0.device == ben.device })
        node.held = nil
        try node.rest(.sweepWakes(rows: 256))
        try node.rest(.sweepWakes(rows: 256))
        #expect(try node.all(SessionRecord.self).isEmpty)
    }

    @Test(
        "devices that do not come back are taken for asleep but the one of which a row is held",
        arguments: [true, false])
    func sessions(isDevice: Bool) throws {
        for user in Self.users {
            let session = try pushes.open(user, phone(user), token: 1).session
            try pushes.end(session, within: 1_000)
        }
        world.pass(2_000)
        try world.ask(.keepAlive)
        let node = Node(world)
        node.hold("anna", isDevice ? phone("anna") : nil)
        try node.rest(.sweepWakes(rows: 10))
        #expect(try node.all(SessionRecord.self).map(\.user.name) == ["anna"])
    }

    @Test(
        "pushes leave but that of the user whose row is held, and the claim comes again for it",
        arguments: [true, false])
    func claims(isDevice: Bool) throws {
        try publishToSleepers()
        let node = Node(world)
        node.hold("ben", isDevice ? phone("ben") : nil)
        let claimed = try node.claim()
        #expect(claimed.jobs.map(\.key.user.name) == ["carl"])
        #expect(claimed.nextDue == world.now + ClaimedPushes.heldPause)
        #expect(!claimed.more)
        node.held = nil
        #expect(try node.claim().jobs.map(\.key.user.name) == ["ben"])
    }

    @Test("authors are told of what others have, but not of the reader whose row is held")
    func receipts() throws {
        let room = try world.converse(Self.users)
        try world.publish("one", to: room, from: "anna")
        for user in ["ben", "carl"] {
            let session = try world.login(user, phone(user)).session
            try pushes.acknowledge(session, try pushes.head(user))
        }
        world.pass(5_000)
        let node = Node(world)
        node.hold("ben", nil)
        try node.rest(.coalesceReceipts(users: 10))
        func told() throws -> [String] {
            try node.all(ReceiptRecord.self).filter { $0.delivered > 0 }.map(\.user.name)
        }
        #expect(try told() == ["carl"])
        node.held = nil
        try node.rest(.coalesceReceipts(users: 10))
        #expect(try told() == ["ben", "carl"])
    }

    @Test("a large conversation with a member whose row is held keeps no other one waiting")
    func fanOut() throws {
        world.limits.directRecipients = 1
        let first = try world.converse(["anna", "ben"])
        let second = try world.converse(["carl", "dora"])
        try world.finishFanOut()
        for room in [first, second] { try world.publish("one", to: room) }
        func waiting(_ node: Node) throws -> Set<ConversationID> {
            Set(try node.all(FanOutRecord.self).map(\.conversation))
        }
        for (held, room) in [("ben", first), ("dora", second), (nil, first), (nil, second)] {
            let node = Node(world)
            if let held { node.hold(held, nil) } else { node.hold(room) }
            try node.rest(.continueFanOut(recipients: 50))
            #expect(try waiting(node) == [room])
            node.held = nil
            try node.rest(.continueFanOut(recipients: 50))
            #expect(try waiting(node).isEmpty)
        }
    }

    @Test("nor do many changes of it")
    func manyJobs() throws {
        world.limits.directRecipients = 1
        let first = try world.converse(["anna", "ben"])
        let second = try world.converse(["carl", "dora"])
        try world.finishFanOut()
        for _ in 0..<300 { try world.publish("one", to: first) }
        world.pass(10)
        try world.publish("one", to: second)
        let node = Node(world)
        node.hold("ben", nil)
        try node.rest(.continueFanOut(recipients: 50))
        #expect(try Set(node.all(FanOutRecord.self).map(\.conversation)) == [first])
    }

    @Test("an announcement comes to all of its users but the one whose row is held")
    func announcements() throws {
        world.limits.directRecipients = 2
        try world.converse(Self.users)
        try world.finishFanOut()
        let before = try world.all(EntryRecord.self).count
        try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: Self.users,
                    parts: [Part(mimeType: "text/plain", content: [65])]), idempotency: nil))
        let node = Node(world)
        node.hold("anna", nil)
        try node.rest(.continueFanOut(recipients: 50))
        #expect(try node.all(EntryRecord.self).count == before + 2)
        node.held = nil
        try node.rest(.continueFanOut(recipients: 50))
        #expect(try node.all(EntryRecord.self).count == before + 3)
        #expect(try node.all(AnnouncementBatchRecord.self).isEmpty)
    }

    @Test("it is taken back from all of them but the one whose row is held")
    func takingBack() throws {
        let id: MessageID = world.fresh()
        try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: id, users: Self.users,
                    parts: [Part(mimeType: "text/plain", content: [65])]), idempotency: nil))
        try world.ask(.takeBackAnnouncement(app: World.app, id, idempotency: nil))
        let node = Node(world)
        node.hold("anna", nil)
        func kinds() throws -> [EntryKind] { try node.all(EntryRecord.self).map(\.kind) }
        try node.rest(.continueFanOut(recipients: 50))
        #expect(try kinds() == [.announcement, .tombstone, .tombstone])
        node.held = nil
        try node.rest(.continueFanOut(recipients: 50))
        #expect(try kinds() == [.tombstone, .tombstone, .tombstone])
        #expect(try node.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    @Test("a user is deleted while the row of another who is to be deleted is held")
    func deletions() throws {
        try world.converse(["anna", "carl"])
        try world.converse(["ben", "carl"])
        for user in ["anna", "ben"] {
            try world.ask(.deleteUser(app: World.app, UserID(user), idempotency: nil))
        }
        let node = Node(world)
        node.hold("anna", nil)
        for _ in 0..<20 { try node.ask(.continueDeletions(rows: 50)) }
        #expect(try node.all(UserDeletionRecord.self).map(\.user.name) == ["anna"])
        #expect(try node.all(UserRecord.self).map(\.user.name) == ["anna", "carl"])
    }

    @Test("a campaign's pushes leave but that of the user whose row is held")
    func campaigns() throws {
        let campaigns = try Campaigns()
        try campaigns.phones(1...3)
        try campaigns.create()
        try campaigns.advance()
        let node = Node(campaigns.world)
        node.hold("u2", nil)
        let claimed = try node.claim()
        #expect(claimed.jobs.map(\.key.user.name) == ["u1", "u3"])
        #expect(claimed.nextDue.map { $0 <= campaigns.world.now + ClaimedPushes.heldPause } == true)
        // Nothing is left but what is held.
        #expect(try !node.claim().more)
        node.held = nil
        #expect(try node.claim().jobs.map(\.key.user.name) == ["u2"])
    }

    @Test("what devices are owed leaves while a campaign's counts are held, and no push is lost")
    func campaignCounts() throws {
        let campaigns = try Campaigns(pushes)
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try publishToSleepers()
        let node = Node(world)
        node.hold(id)
        let claimed = try node.claim()
        #expect(claimed.jobs.map(\.key.user.name) == ["ben", "carl"])
        #expect(claimed.nextDue.map { $0 <= world.now + ClaimedPushes.heldPause } == true)
        #expect(try !node.claim().more)
        // Nothing is under way that nobody sends.
        #expect(try node.all(CampaignPushRecord.self).allSatisfy { $0.phase == .queued })
        #expect(try node.all(WakeRecord.self).count { $0.flight != nil } == 2)
        #expect(try node.counts(id).waiting == 3)
        node.held = nil
        #expect(try node.claim().jobs.map(\.key.user.name) == ["u1", "u2", "u3"])
        #expect(try node.counts(id).waiting == 0)
        #expect(try node.counts(id).flying == 3)
    }

    @Test("nor do the pushes of another campaign wait", arguments: [0, 1])
    func otherCampaigns(held: Int) throws {
        let campaigns = try Campaigns()
        try campaigns.phones(1...3)
        let ids = [try campaigns.create(), try campaigns.create()]
        try campaigns.advance()
        let node = Node(campaigns.world)
        node.hold(ids[held])
        let claimed = try node.claim()
        #expect(claimed.jobs.map(\.key.user.name) == ["u1", "u2", "u3"])
        #expect(try node.counts(ids[held]).flying == 0)
        #expect(try node.counts(ids[1 - held]).flying == 3)
    }

    @Test("pushes of a node that is gone are taken back but those whose campaign's counts are held")
    func campaignLeases() throws {
        let campaigns = try Campaigns(pushes)
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try publishToSleepers()
        #expect(try pushes.claim().count == 5)
        world.pass(61_000)
        try world.ask(.keepAlive)
        let node = Node(world)
        node.hold(id)
        try node.rest(.sweepWakes(rows: 256))
        func flying() throws -> Set<String> {
            Set(try node.all(WakeRecord.self).filter { $0.flight != nil }.map(\.user.name))
        }
        #expect(try flying() == ["u1", "u2", "u3"])
        #expect(try node.all(CampaignPushRecord.self).allSatisfy { $0.phase == .sending })
        #expect(try node.counts(id).flying == 3)
        node.held = nil
        try node.rest(.sweepWakes(rows: 256))
        #expect(try flying().isEmpty)
        #expect(try node.counts(id).flying == 0)
        #expect(try node.counts(id).waiting == 3)
    }

    @Test("of a request that meets a held row behind what it has done nothing is carried out")
    func nothingBehindAHeldRow() throws {
        try publishToSleepers()
        for job in try pushes.claim() { try pushes.finish(job) }
        world.pass(2_000)
        try world.ask(.keepAlive)
        // Wakes that were accepted before an outage are due again, and then its mark goes.
        try world.tamper { transaction throws(StoreError) in
            let mark = MetaRecord(name: WakeRules.gapName, number: self.world.now.milliseconds)
            try transaction.put(mark)
        }
        let node = Node(world)
        node.held = (MetaRecord.table.name, [.text(WakeRules.gapName)])
        let before = try node.all(WakeRecord.self)
        #expect(throws: StoreError.self) { try node.claim() }
        #expect(try node.all(WakeRecord.self) == before)
        node.held = nil
        _ = try node.claim()
        #expect(try node.all(WakeRecord.self) != before)
    }

    @Test("what belongs to a row that cannot be read is passed over, and told")
    func unreadableRow() throws {
        try publishToSleepers()
        let place = try #require(
            DeviceRecord.table.columns.firstIndex { $0.name == "token_generation" })
        let key: [ColumnValue] = [
            .app(World.app), .user(UserID("carl")), .identifier(phone("carl")),
        ]
        try world.tamper { transaction throws(StoreError) in
            var row = try transaction.row(DeviceRecord.table, key: key, lock: .none) ?? []
            row[place] = .integer(-1)
            try transaction.put(DeviceRecord.table, row)
        }
        let node = Node(world)
        let claimed = try node.claim()
        #expect(claimed.jobs.map(\.key.user.name) == ["ben"])
        #expect(claimed.nextDue == world.now + ClaimedPushes.unreadablePause)
        let flying = try node.all(WakeRecord.self).filter { $0.flight != nil }
        #expect(flying.map(\.user.name) == ["ben"])
    }
}

import Model
import Testing
import Wake
import Wire

@testable import Feed

/// A backend takes an announcement back (MSG-57).
struct TakingBackTests {
    private let world: World
    private let id: MessageID
    private static let many = (1...8).map { "user\($0)" }

    init() throws {
        world = try World()
        id = world.fresh()
    }

    private static func announcement(
        _ id: MessageID, _ users: [String], _ push: PushText? = nil
    ) -> StoreRequest {
        .announce(
            app: World.app,
            Announcement(
                announcement: id, users: users,
                parts: [Part(mimeType: "text/plain", content: [65])], push: push),
            idempotency: nil)
    }

    private var taking: StoreRequest {
        .takeBackAnnouncement(app: World.app, id, idempotency: nil)
    }

    private func announce(_ users: [String]) throws {
        let answer = try world.ask(Self.announcement(id, users, PushText(title: "", body: "x")))
        #expect(answer.refusal == nil)
    }

    private func takeBack() throws { #expect(try world.ask(taking) == .done) }

    /// What a device holds that has followed the feed from its start.
    private func held(by user: String) throws -> [String] {
        try world.page(user).entries.map(\.text)
    }

    private var record: AnnouncementRecord {
        get throws {
            try #require(
                try world.record(AnnouncementRecord.self, [.app(World.app), .identifier(id)]))
        }
    }

    // MARK: the feed

    @Test func aTombstoneTakesItsPlaceAndItsContentIsGone() throws {
        try announce(["anna", "bob"])
        world.pass(1_000)
        try takeBack()
        #expect(try record.parts.isEmpty)
        #expect(try record.pushBody.isEmpty)
        try world.finishFanOut()
        for user in ["anna", "bob"] {
            let entries = try world.page(user).entries
            #expect(
                entries == [
                    Entry(
                        seq: 2, object: id.bytes, version: 2,
                        body: .tombstone(
                            TombstoneState(
                                forEveryone: true, deletedMs: world.now.milliseconds)))
                ])
            #expect(try world.rows(user).map(\.kind) == [.tombstone])
        }
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    /// A page shows what its object is now, also before the tombstone has come into the feed.
    @Test func beforeItsTurnItIsShownToNobodyEither() throws {
        try announce(["anna"])
        try takeBack()
        let shown = try #require(try world.page("anna").entries.first)
        #expect(try world.rows("anna").map(\.kind) == [.announcement])
        #expect(shown.version == 2)
        try world.finishFanOut()
        var told = try #require(try world.page("anna").entries.first)
        told.seq = shown.seq
        #expect(shown == told)
    }

    @Test func againItDoesNothingAndOneThatNeverWasIsRefused() throws {
        #expect(try world.ask(taking).refusal == .notFound)
        try announce(["anna"])
        try takeBack()
        try world.finishFanOut()
        let head = try world.head("anna")
        world.pass(1_000)
        let deleted = try record.deletedAt
        try takeBack()
        try world.finishFanOut()
        #expect(try world.head("anna") == head)
        #expect(try record.deletedAt == deleted)
        // Its id stays in use.
        #expect(try world.ask(Self.announcement(id, ["anna"])).refusal == .idInUse)
    }

    @Test func aRepetitionHasOneEffectAndOneAnswer() throws {
        try announce(["anna"])
        let request = StoreRequest.takeBackAnnouncement(
            app: World.app, id, idempotency: Idempotency(key: "k", requestHash: [1]))
        #expect(try world.ask(request) == .done)
        #expect(try world.ask(request) == .done)
        let other = StoreRequest.takeBackAnnouncement(
            app: World.app, id, idempotency: Idempotency(key: "k", requestHash: [2]))
        #expect(try world.ask(other) == .idempotencyMismatch)
    }

    @Test func whoNeverHadItGetsNothing() throws {
        try world.converse(["carl"])
        let head = try world.head("carl")
        try announce(["anna"])
        try takeBack()
        try world.finishFanOut()
        #expect(try world.head("carl") == head)
    }

    /// Whom it was for is kept as long as a deleted user's name is kept elsewhere.
    @Test func whereItIsNotKnownAnyMoreWhomItWasForItIsRefused() throws {
        try announce(["anna"])
        world.pass(world.limits.audienceLifetime - 1)
        try world.retain()
        #expect(try world.all(AnnouncementAudienceRecord.self).count == 1)
        world.pass(1)
        try world.retain()
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
        #expect(try world.ask(taking).refusal == .conflict)
        #expect(try record.deletedAt == nil)
        #expect(try held(by: "anna") == ["announcement"])
    }

    @Test func whatWaitsToBeTakenBackIsNotForgotten() throws {
        try announce(["anna"])
        world.pass(world.limits.audienceLifetime - 1)
        try takeBack()
        world.pass(1_000)
        try world.retain()
        try world.finishFanOut()
        #expect(try world.rows("anna").map(\.kind) == [.tombstone])
    }

    @Test func itGoesWithItsApp() throws {
        try announce(["anna"])
        try world.expectDone(.removeApp(World.app))
        for _ in 1...50 { try world.retain() }
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    // MARK: receipts

    @Test func oneThatWasReadIsTakenBackTooAndReadNoMore() throws {
        let bob = try world.login("bob", DeviceID(high: 2, low: 1)).session
        func read() throws {
            try world.ask(
                .acknowledge(
                    Acknowledge(
                        session: bob, applied: 0, reads: [ReadReceipt(announcement: self.id)],
                        completesSync: false)))
        }
        try announce(["bob"])
        try read()
        #expect(try world.rows("bob").map(\.version) == [2])
        try takeBack()
        try read()
        #expect(try world.head("bob") == 2, "it was passed over while it was on its way")
        try world.finishFanOut()
        #expect(try world.rows("bob").map(\.version) == [3])
        try read()
        #expect(try world.head("bob") == 3)
        #expect(try world.rows("bob").map(\.kind) == [.tombstone])
    }

    @Test func whatIsReadWhileTheTombstoneIsOnItsWayIsPassedOver() throws {
        let bob = try world.login("bob", DeviceID(high: 2, low: 1)).session
        try announce(["bob"])
        try takeBack()
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bob, applied: 0, reads: [ReadReceipt(announcement: id)],
                    completesSync: false)))
        #expect(try world.rows("bob").map(\.version) == [1])
        try world.finishFanOut()
        #expect(try world.rows("bob").map(\.version) == [2])
    }

    // MARK: resets

    @Test func aSnapshotHoldsItNoMore() throws {
        func objects(isComplete: Bool = true) throws -> [[UInt8]] {
            let reading = try world.history(
                .snapshot(World.app, UserID("anna"), SnapshotFrame(), bytes: 1 << 20))
            guard case .snapshotPage(let page) = reading else { throw Unexpected(answer: .done) }
            #expect(page.announcementsComplete == isComplete)
            return page.entries.map(\.object)
        }
        let other: MessageID = world.fresh()
        try world.ask(Self.announcement(other, ["anna"]))
        try announce(["anna"])
        #expect(try Set(objects()) == [id.bytes, other.bytes])
        try takeBack()
        #expect(try objects() == [other.bytes])
        try world.finishFanOut()
        #expect(try objects() == [other.bytes])
    }

    /// A page's worth of mistakes, taken back a moment ago, hides none of what stays.
    @Test func aSnapshotLooksBehindWhatWasTakenBack() throws {
        let kept = MessageID(high: 1, low: 1)
        try world.ask(Self.announcement(kept, ["anna"]))
        for number in 0..<UInt64(world.limits.snapshotAnnouncements) {
            let mistake = MessageID(high: 2, low: number)
            try world.ask(Self.announcement(mistake, ["anna"]))
            let taking = StoreRequest.takeBackAnnouncement(
                app: World.app, mistake, idempotency: nil)
            #expect(try world.ask(taking) == .done)
        }
        let reading = try world.history(
            .snapshot(World.app, UserID("anna"), SnapshotFrame(), bytes: 1 << 20))
        guard case .snapshotPage(let page) = reading else { throw Unexpected(answer: .done) }
        #expect(page.entries.map(\.object) == [kept.bytes] && page.announcementsComplete)
    }

    /// As every tombstone: for a month, and longer for a device that lacks it (SYN-30).
    @Test func itsTombstoneGoesWhenNoDeviceNeedsIt() throws {
        let device = DeviceID(high: 3, low: 1)
        let anna = try world.login("anna", device).session
        try announce(["anna"])
        try takeBack()
        try world.finishFanOut()
        world.pass(world.limits.tombstoneLifetime)
        try world.retain()
        #expect(try world.rows("anna").map(\.kind) == [.tombstone])
        try world.ask(
            .acknowledge(Acknowledge(session: anna, applied: 2, completesSync: true)))
        world.pass(world.limits.tombstoneDelay)
        try world.retain()
        #expect(try world.rows("anna").isEmpty)
        let row = try world.record(UserRecord.self, [.app(World.app), .text("anna")])
        #expect(row?.compactedThrough == 2)
    }

    // MARK: many recipients

    @Test func manyAreServedInTheBackgroundAStepAtATime() throws {
        world.limits.directRecipients = 3
        try announce(Self.many)
        try world.finishFanOut()
        try takeBack()
        #expect(try Self.many.allSatisfy { try world.head($0) == 1 })
        world.limits.rowsPerTurn = 8
        #expect(
            try world.ask(.continueFanOut(recipients: 1)) == .progressed(count: 1, more: true))
        let served = try Self.many.filter { try world.head($0) == 2 }
        #expect((1..<Self.many.count).contains(served.count), "\(served)")
        #expect(served == Array(Self.many.prefix(served.count)))
        try world.finishFanOut()
        #expect(try Self.many.allSatisfy { try world.rows($0).map(\.kind) == [.tombstone] })
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    /// Some have it, and batches for the others wait: these bring it to nobody any more.
    @Test func takenBackWhileBatchesWaitItComesToNobodyElse() throws {
        world.limits.directRecipients = 3
        try announce(Self.many)
        try world.ask(.continueFanOut(recipients: 1))
        let told = try Self.many.filter { try world.head($0) > 0 }
        #expect(told == Array(Self.many.prefix(3)))
        try takeBack()
        try world.finishFanOut()
        for user in Self.many {
            let kinds = try world.rows(user).map(\.kind)
            #expect(kinds == (told.contains(user) ? [.tombstone] : []), "\(user)")
        }
        #expect(try world.all(AnnouncementBatchRecord.self).isEmpty)
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    @Test func neitherOfTheTwoQueuesWaitsForAllOfTheOther() throws {
        world.limits.directRecipients = 3
        try announce(Self.many)
        try world.finishFanOut()
        for _ in 1...10 { try world.ask(Self.announcement(world.fresh(), Self.many)) }
        try takeBack()
        try world.ask(.continueFanOut(recipients: 8))
        #expect(try world.rows("user1").contains { $0.kind == .tombstone })
        #expect(try world.rows("user1").contains { $0.kind == .announcement })
    }

    /// Its turn comes again after a crash, and after another node has done it.
    @Test func servedTwiceItIsTakenBackOnce() throws {
        try announce(["anna"])
        let queued: [AnnouncementAudienceRecord]
        try takeBack()
        queued = try world.all(AnnouncementAudienceRecord.self)
        try world.finishFanOut()
        try world.tamper { transaction throws(StoreError) in
            for row in queued { try transaction.put(row) }
        }
        try world.finishFanOut()
        #expect(try world.head("anna") == 2)
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }

    /// Whatever comes between two reads of the other node's.
    @Test func betweenTwoNodesNobodyIsLeftWithIt() throws {
        world.limits.directRecipients = 2
        try announce(["anna", "ben", "zoe"])
        let turn = StoreRequest.continueFanOut(recipients: 50)
        for (first, second) in [(taking, turn), (turn, taking)] {
            try TwoWriters(world).meet(first, second) { met throws in
                try met.rest()
                let kinds = try met.all(EntryRecord.self).map(\.kind)
                #expect(kinds.allSatisfy { $0 == .tombstone }, "read \(met.read): \(kinds)")
                #expect(try met.all(AnnouncementAudienceRecord.self).isEmpty)
                #expect(try met.all(AnnouncementBatchRecord.self).isEmpty)
            }
        }
    }

    @Test func betweenTwoNodesEverybodyIsToldOnce() throws {
        try announce(["anna", "ben", "zoe"])
        try takeBack()
        let turn = StoreRequest.continueFanOut(recipients: 50)
        try TwoWriters(world).meet(turn, turn) { met throws in
            try met.rest()
            let entries = try met.all(EntryRecord.self)
            #expect(entries.map(\.kind) == [.tombstone, .tombstone, .tombstone], "\(met.read)")
            #expect(entries.allSatisfy { $0.seq == 2 }, "read \(met.read)")
        }
    }

    // MARK: users who go

    @Test func aUserWhoWasDeletedMeanwhileIsToldNothing() throws {
        try announce(["anna", "bob"])
        try takeBack()
        try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil))
        for _ in 1...50 {
            try world.ask(.continueDeletions(rows: 100))
        }
        #expect(try world.all(UserRecord.self).map(\.user.name) == ["anna"])
        // One of the same name is another user.
        try world.converse(["bob", "carl"])
        let head = try world.head("bob")
        try world.finishFanOut()
        #expect(try world.head("bob") == head)
        #expect(try world.rows("anna").map(\.kind) == [.tombstone])
    }

    /// Something of one user that cannot be read keeps it from being taken back from nobody else.
    @Test func oneWhoCannotBeReadStopsNoOther() throws {
        try announce(["a", "b", "c"])
        try takeBack()
        try world.tamper { transaction throws(StoreError) in
            var row = try transaction.row(
                UserRecord.table, key: [.app(World.app), .text("b")], lock: .none)!
            row[2] = .integer(-1)
            try transaction.put(UserRecord.table, row)
        }
        var passed: [UnreadableRow] = []
        for _ in 1...10 {
            try world.ask(.continueFanOut(recipients: 50))
            passed += world.unreadable
        }
        #expect(passed.map(\.user.name) == ["b"])
        #expect(passed.allSatisfy { $0.detail.hasPrefix("announcement_audience ") }, "\(passed)")
        for user in ["a", "c"] { #expect(try world.rows(user).map(\.kind) == [.tombstone]) }
        #expect(try world.all(AnnouncementAudienceRecord.self).isEmpty)
    }
}

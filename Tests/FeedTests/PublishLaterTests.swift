import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// What a backend has published at a time (backend-api.yaml, `send_at`).
struct PublishLaterTests {
    private let pushes: Pushes
    private var world: World { pushes.world }
    private let phone = DeviceID(high: 2, low: 1)
    private let hour: Milliseconds = 3_600_000

    init() throws { pushes = try Pushes() }

    private func message(
        _ text: String, to conversation: ConversationID, from sender: String = "",
        id: MessageID? = nil, push: String? = nil
    ) -> NewScheduled.Content {
        .message(
            Publication(
                message: world.message0(text, to: conversation, id ?? world.fresh(), push: push),
                sender: sender))
    }

    private func announcement(_ users: [String], id: MessageID? = nil) -> NewScheduled.Content {
        .announcement(
            Announcement(
                announcement: id ?? world.fresh(), users: users,
                parts: [Part(mimeType: "text/plain", content: Array("sale".utf8))],
                push: PushText(title: "", body: "Sale")))
    }

    @discardableResult
    private func later(
        _ content: NewScheduled.Content, in delay: Milliseconds, key: Idempotency? = nil,
        app: AppID = World.app
    ) throws -> StoreAnswer {
        try world.ask(
            .schedules(
                .add(
                    app: app, NewScheduled(content, sendAt: world.now + delay),
                    idempotency: key)))
    }

    private func scheduled(_ answer: StoreAnswer) throws -> ScheduledRecord {
        guard case .scheduled(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    private func cancel(_ id: MessageID, key: Idempotency? = nil) throws -> StoreAnswer {
        try world.ask(.schedules(.cancel(app: World.app, id, idempotency: key)))
    }

    @discardableResult
    private func publish(rows: Int = 10) throws -> StoreAnswer {
        try world.ask(.schedules(.publishDue(rows: rows)))
    }

    /// The messages that bob has, in order.
    private func said() throws -> [Substring] {
        try world.texts("bob").filter { $0.hasPrefix("message ") }
            .compactMap { $0.split(separator: " ").last }
    }

    private func row(_ id: MessageID) throws -> ScheduledRecord? {
        try world.record(ScheduledRecord.self, [.app(World.app), .identifier(id)])
    }

    private func pending() throws -> UInt64 {
        try world.all(ScheduleRecord.self).reduce(0) { $0 + $1.pending }
    }

    // MARK: at its time

    @Test func aMessageIsPublishedAtItsTimeWithThePositionOfThen() throws {
        let room = try world.converse(["anna", "bob"])
        let made = try scheduled(
            try later(message("later", to: room, from: "anna"), in: hour))
        try world.publish("now", to: room)
        let before = try world.head("bob")
        world.pass(hour - 1)
        #expect(try publish() == .progressed(count: 0, more: false))
        #expect(try world.head("bob") == before)
        world.pass(1)
        #expect(try publish() == .progressed(count: 1, more: false))
        #expect(world.changes.map(\.user.name).sorted() == ["anna", "bob"])
        #expect(try world.texts("bob").suffix(2) == ["message 1 now", "message 2 later"])
        let published = try #require(try row(made.message))
        #expect(published.state == .published)
        #expect(published.position == 2)
        #expect(published.settledAt == world.now)
        #expect(published.parts.isEmpty)
        #expect(try pending() == 0)
        // Once.
        world.pass(hour)
        #expect(try publish() == .progressed(count: 0, more: false))
        #expect(try world.texts("bob").count == 5)
        world.pass(8 * 24 * hour)
        try world.retain()
        #expect(try row(made.message) == nil)
    }

    @Test func itWakesWhoSleepsAsAnyPublishDoes() throws {
        let room = try world.converse(["anna", "bob"])
        let opened = try pushes.open("bob", phone)
        try pushes.end(opened.session, within: 0)
        try later(message("later", to: room, from: "anna", push: "hello"), in: hour)
        #expect(try pushes.run(60_000).isEmpty)
        world.pass(hour)
        try publish()
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test func anAnnouncementGoesToThoseWhoAreStillThere() throws {
        let id: MessageID = world.fresh()
        try world.converse(["anna", "bob", "carl"])
        let made = try scheduled(try later(announcement(["carl", "anna", "bob"], id: id), in: 1))
        #expect(made.recipients == 3)
        #expect(try world.all(ScheduledRecipientRecord.self).count == 3)
        try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil))
        world.pass(1)
        try publish()
        for user in ["anna", "carl"] {
            #expect(try world.page(user).entries.last?.word == "announcement")
        }
        #expect(try world.all(AnnouncementRecord.self).first?.recipients == 2)
        #expect(try world.all(ScheduledRecipientRecord.self).isEmpty)
    }

    /// What was cancelled after the backup stands in it.
    @Test func afterARestoreABackendHasTimeToCancelAgain() throws {
        let conversation = try world.converse(["anna", "bob"])
        let cancelled = try scheduled(try later(message("cancelled", to: conversation), in: 1))
        try later(message("lost", to: conversation), in: 2)
        let near = try scheduled(try later(announcement(["carl"]), in: hour / 6))
        let far = try scheduled(try later(announcement(["carl"]), in: hour))
        world.pass(hour / 20)
        try world.ask(.restore(epochHalf: 1_234))
        #expect(try publish() == .progressed(count: 0, more: false))
        #expect(try cancel(cancelled.message) == .done)
        world.pass(hour / 4)
        #expect(try publish() == .progressed(count: 2, more: false))
        #expect(try world.texts("bob").last == "message 1 lost")
        #expect(try row(near.message)?.state == .published)
        #expect(try row(far.message)?.due == far.sendAt)
    }

    /// Who restores and starts the server hours later has the time, too: from the first node that
    /// starts on, and not from each.
    @Test func theTimeToCancelAgainBeginsWithTheServer() throws {
        let conversation = try world.converse(["anna", "bob"])
        let cancelled = try scheduled(try later(message("cancelled", to: conversation), in: 1))
        try later(message("lost", to: conversation), in: 2)
        // Due while the server is not there, and soon after.
        try later(message("meanwhile", to: conversation), in: hour)
        try later(message("near", to: conversation), in: hour * 2 + hour / 12)
        let far = try scheduled(try later(announcement(["carl"]), in: hour * 2 + hour / 2))
        world.pass(1_000)
        try world.ask(.restore(epochHalf: 1_234))
        // A command on the store that is stopped is no server.
        try world.ask(.start(boot: BootID(high: 9, low: 9), epochHalf: 5))
        world.pass(hour * 2)
        try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 5))
        #expect(try publish() == .progressed(count: 3, more: false))
        #expect(try said() == [])
        // What is new was not in the backup.
        try later(message("new", to: conversation), in: 1_000)
        #expect(try cancel(cancelled.message) == .done)
        world.pass(hour / 8)
        try world.ask(.start(boot: BootID(high: 9, low: 11), epochHalf: 5))
        try publish()
        #expect(try said() == ["new"])
        world.pass(hour / 8)
        try publish()
        #expect(try said() == ["new", "lost", "meanwhile", "near"])
        #expect(try row(far.message)?.due == far.sendAt)
    }

    /// The clock of the server's first turn may be ahead, as on a machine that has just come up.
    @Test func aClockThatIsSetBackAfterTheFirstTurnHoldsNothingForLong() throws {
        let conversation = try world.converse(["anna", "bob"])
        try later(message("kept", to: conversation), in: 1)
        world.pass(1_000)
        try world.ask(.restore(epochHalf: 1_234))
        let right = world.now
        world.pass(48 * hour)
        try pushes.tick()
        #expect(try publish() == .progressed(count: 1, more: false))
        world.store.clock = right
        for _ in 0..<10 { try pushes.tick() }
        try publish()
        world.pass(1)
        try later(message("new", to: conversation), in: 1_000)
        world.pass(2_000)
        try publish()
        #expect(try said() == ["new"])
        world.pass(hour / 2)
        try publish()
        #expect(try said() == ["new", "kept"])
    }

    /// It is no message that a clock put off that was ahead.
    @Test func aClockThatIsSetBackAfterARestoreLeavesTheTimeToCancel() throws {
        let conversation = try world.converse(["anna", "bob"])
        try later(message("x", to: conversation), in: 1)
        world.pass(hour)
        try pushes.tick()
        try world.ask(.restore(epochHalf: 1_234))
        world.store.clock = world.now - 10_000
        for _ in 0..<10 {
            try pushes.tick()
            #expect(try publish() == .progressed(count: 0, more: false))
            world.pass(60_000)
        }
        world.pass(hour / 4)
        #expect(try publish() == .progressed(count: 1, more: false))
    }

    @Test func manyAreAnnouncedToInTheBackground() throws {
        world.limits.directRecipients = 2
        try later(announcement(["a", "b", "c", "d", "e"]), in: 1)
        world.pass(1)
        try publish()
        #expect(try world.all(AnnouncementBatchRecord.self).count == 3)
        try world.finishFanOut()
        #expect(try ["a", "e"].allSatisfy { try world.head($0) == 1 })
    }

    /// A turn that exceeds its ceiling of rows ends the test.
    @Test(arguments: [false, true])
    func asManyAsOneRequestNamesArePublishedWithinTheCeiling(whileOneIsDeleted: Bool) throws {
        let users = (1...world.limits.announcementRecipients).map { "user-\($0)" }
        let made = try scheduled(try later(announcement(users), in: 1))
        if whileOneIsDeleted {
            try world.converse(["user-7", "anna"])
            try world.ask(.deleteUser(app: World.app, UserID("user-7"), idempotency: nil))
        }
        world.pass(1)
        try publish()
        #expect(try row(made.message)?.state == .published)
        #expect(try world.all(ScheduledRecipientRecord.self).isEmpty)
        try world.finishFanOut()
        #expect(try world.head("user-1000") == 1)
    }

    @Test func appsTakeTurnsWhereMuchIsDue() throws {
        let other = AppID("other")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        for _ in 0..<6 { try later(announcement(["anna"]), in: 1) }
        for _ in 0..<2 { try later(announcement(["anna"]), in: 1, app: other) }
        world.pass(1)
        #expect(try publish(rows: 4) == .progressed(count: 4, more: true))
        let done = try world.all(AnnouncementRecord.self)
        #expect(done.filter { $0.app == other }.count == 2)
        #expect(try publish(rows: 1) == .progressed(count: 1, more: true))
        #expect(try publish(rows: 8) == .progressed(count: 3, more: false))
        #expect(try pending() == 0)
    }

    @Test func aSuspendedAppWaitsAndARemovedOneTakesItsOwnAlong() throws {
        try later(announcement(["anna"]), in: 1)
        try world.expectDone(.suspendApp(World.app))
        world.pass(hour)
        #expect(try publish() == .progressed(count: 0, more: false))
        try world.expectDone(.resumeApp(World.app))
        #expect(try publish() == .progressed(count: 1, more: false))
        try later(announcement(["anna"]), in: 1)
        try world.expectDone(.removeApp(World.app))
        world.pass(hour)
        #expect(try publish() == .progressed(count: 0, more: false))
        try world.retain()
        #expect(try world.all(ScheduledRecord.self).isEmpty)
        #expect(try pending() == 0)
    }

    // MARK: what cannot be published any more

    @Test func whatCannotBePublishedIsKeptWithItsReason() throws {
        let room = try world.converse(["anna", "bob"])
        let doomed = try world.converse(["anna", "bob"])
        let taken: MessageID = world.fresh()
        let left = try scheduled(try later(message("1", to: room, from: "anna"), in: 1))
        let gone = try scheduled(try later(message("2", to: doomed), in: 1))
        try later(message("3", to: room, id: taken), in: 1)
        let good = try scheduled(try later(message("4", to: room), in: 1))
        let nobody = try scheduled(try later(announcement(["zoe"]), in: 1))
        try world.converse(["zoe"])
        try world.ask(.deleteUser(app: World.app, UserID("zoe"), idempotency: nil))
        try world.remove(["anna"], from: room)
        try world.end(doomed)
        try world.publish("first", to: room, message: taken)
        world.pass(1)
        #expect(try publish() == .progressed(count: 5, more: false))
        func failure(_ id: MessageID) throws -> Code? {
            let row = try #require(try row(id))
            #expect(row.state == .failed)
            #expect(!row.detail.isEmpty)
            return Code(rawValue: UInt32(row.code))
        }
        #expect(try failure(left.message) == .forbidden)
        #expect(try failure(gone.message) == .gone)
        #expect(try failure(taken) == .idInUse)
        #expect(try failure(nobody.message) == .gone)
        #expect(try world.all(ScheduledRecipientRecord.self).isEmpty)
        #expect(try row(good.message)?.state == .published)
        #expect(try pending() == 0)
        // It is taken from the list.
        #expect(try cancel(left.message) == .done)
        #expect(try row(left.message) == nil)
    }

    /// MSG-56: the app knows it no more when its time has come.
    @Test func aKindThatWasTakenBackIsNotPublished() throws {
        let room = try world.converse(["anna", "bob"])
        var app = try #require(try world.record(AppRecord.self, [.app(World.app)]))
        func register(_ kinds: [String]) throws {
            app.eventKinds = EventKinds(kinds)
            try world.expectDone(.putApp(app))
        }
        func order() -> NewScheduled.Content {
            var options = PushOptions()
            options.event = "order"
            return .message(
                Publication(
                    message: world.message0("x", to: room, world.fresh(), push: "x"), sender: "",
                    options: options))
        }
        try register(["order", "chat"])
        let kept = try scheduled(try later(order(), in: 1))
        let early = try scheduled(try later(order(), in: hour))
        world.pass(1)
        try publish()
        #expect(try row(kept.message)?.state == .published)
        try register(["chat"])
        world.pass(hour)
        try publish()
        let row = try #require(try row(early.message))
        #expect(row.state == .failed && Code(rawValue: UInt32(row.code)) == .unknownKind)
        #expect(row.detail == "event: order is none of the app's kinds: chat")
    }

    @Test func whatHasNoRoomForTheMomentIsTriedAgain() throws {
        world.limits.directRecipients = 1
        world.limits.fanOutQueue = 1
        let room = try world.converse(["anna", "bob"])
        try world.finishFanOut()
        let made = try scheduled(try later(message("later", to: room), in: 1))
        for _ in 1...2 { try world.publish("in the way", to: room) }
        world.pass(1)
        try publish()
        #expect(try row(made.message)?.state == .pending)
        try world.finishFanOut()
        #expect(try publish() == .progressed(count: 0, more: false))
        world.pass(1_000)
        #expect(try publish() == .progressed(count: 1, more: false))
        try world.finishFanOut()
        #expect(try world.texts("bob").last == "message 3 later")
    }

    // MARK: taking it back

    @Test func whatIsTakenBackIsNotPublished() throws {
        let room = try world.converse(["anna", "bob"])
        let made = try scheduled(try later(message("later", to: room), in: 1))
        let key = Idempotency(key: "cancel", requestHash: [1])
        #expect(try cancel(made.message, key: key) == .done)
        #expect(try cancel(made.message, key: key) == .done)
        #expect(try cancel(made.message).refusal == .notFound)
        let head = try world.head("bob")
        world.pass(1)
        #expect(try publish() == .progressed(count: 0, more: false))
        #expect(try world.head("bob") == head)
        #expect(try pending() == 0)
        let other = try scheduled(try later(announcement(["anna"]), in: 1))
        world.pass(1)
        try publish()
        guard case .refused(.conflict, let detail) = try cancel(other.message) else {
            Issue.record("what was published was taken back")
            return
        }
        #expect(detail.contains(other.message.description))
    }

    @Test func theSameKeyHasOneEffectAndOneAnswer() throws {
        let room = try world.converse(["anna", "bob"])
        let key = Idempotency(key: "once", requestHash: [1])
        let content = message("later", to: room, from: "anna")
        let sendAt = world.now + 1
        func ask() throws -> StoreAnswer {
            try world.ask(
                .schedules(
                    .add(
                        app: World.app, NewScheduled(content, sendAt: sendAt),
                        idempotency: key)))
        }
        let first = try scheduled(try ask())
        #expect(try pending() == 1)
        world.pass(hour)
        try publish()
        // Its time has passed, it is published, and the answer is the same.
        let again = try scheduled(try ask())
        #expect(again.message == first.message && again.sendAt == sendAt)
        #expect(again.conversation == room && again.sender == UserID("anna"))
        #expect(again.state == .pending && again.createdAt == first.createdAt)
        #expect(try pending() == 0)
        let other = Idempotency(key: "once", requestHash: [2])
        #expect(try later(content, in: 1, key: other) == .idempotencyMismatch)
    }

    // MARK: what is refused at once

    @Test func mistakesAreToldAtOnce() throws {
        let room = try world.converse(["anna"])
        let used = try world.publish("x", to: room).message
        #expect(try later(message("x", to: room), in: 0).refusal == .malformed)
        let horizon = world.limits.scheduleHorizon
        #expect(try later(message("x", to: room), in: horizon + 1).refusal == .malformed)
        #expect(try later(message("x", to: room), in: horizon).refusal == nil)
        #expect(try later(message("x", to: world.fresh()), in: 1).refusal == .notFound)
        #expect(try later(message("x", to: room, from: "zoe"), in: 1).refusal == .forbidden)
        #expect(try later(message("x", to: room, id: used), in: 1).refusal == .idInUse)
        let id: MessageID = world.fresh()
        #expect(try later(announcement(["anna"], id: id), in: 1).refusal == nil)
        #expect(try later(message("x", to: room, id: id), in: 1).refusal == .idInUse)
        #expect(try later(announcement([]), in: 1).refusal == .missingField)
        #expect(
            try later(message("x", to: room), in: 1, app: AppID("none")).refusal == .notFound)
        #expect(try pending() == 2)
        world.limits.scheduled = 2
        #expect(try later(message("x", to: room), in: 1).refusal == .limit)
        world.pass(1)
        try publish()
        #expect(try later(message("x", to: room), in: 1).refusal == nil)
    }

    @Test func aUserWhoIsDeletedTakesTheOwnOnesAlong() throws {
        let room = try world.converse(["anna", "bob"])
        try later(message("mine", to: room, from: "anna"), in: hour)
        let other = try scheduled(try later(message("not mine", to: room, from: "bob"), in: hour))
        try later(announcement(["anna", "bob"]), in: hour)
        try world.ask(.deleteUser(app: World.app, UserID("anna"), idempotency: nil))
        for _ in 0..<100 {
            try world.finishFanOut()
            try world.ask(.coalesceReceipts(users: 10))
            try world.ask(.continueDeletions(rows: 64))
        }
        #expect(try world.all(UserDeletionRecord.self).isEmpty)
        #expect(try pending() == 2)
        let left = try world.all(ScheduledRecord.self)
        #expect(left.filter { !$0.isAnnouncement }.map(\.message) == [other.message])
        #expect(try world.all(ScheduledRecipientRecord.self).map(\.user.name) == ["bob"])
    }

    // MARK: the list

    @Test func theListIsByTimeAndGoesOnWhereItEnded() throws {
        let room = try world.converse(["anna"])
        var ids: [MessageID] = []
        for delay: Milliseconds in [30, 10, 20, 10] {
            ids.append(
                try scheduled(try later(message("x", to: room), in: delay)).message)
        }
        func list(
            _ state: ScheduledRecord.State, after: SchedulePlace? = nil, limit: Int
        ) throws -> ([MessageID], SchedulePlace?) {
            let query = BackendQuery.schedule(state, after: after, limit: limit)
            guard
                case .backend(.schedule(let rows, let next)) = try world.read(
                    .backend(World.app, query))
            else { throw Unexpected(answer: .done) }
            return (rows.map(\.message), next)
        }
        // The next one is for the same time.
        let (first, next) = try list(.pending, limit: 1)
        #expect(first == [ids[1]])
        let (rest, end) = try list(.pending, after: next, limit: 3)
        #expect(rest == [ids[3], ids[2], ids[0]])
        #expect(end == nil)
        world.pass(15)
        try publish()
        #expect(try list(.pending, limit: 9).0 == [ids[2], ids[0]])
        #expect(try list(.published, limit: 9).0 == [ids[1], ids[3]])
        #expect(try list(.failed, limit: 9).0.isEmpty)
    }

    @Test func itIsCountedWhatWaitsAndHowLate() throws {
        try later(announcement(["anna"]), in: 1_000)
        try later(announcement(["anna"]), in: 2_000)
        world.pass(5_000)
        let results = try world.commit([.schedules(.publishDue(rows: 1))])
        let effects = try #require(results.first).get().effects.schedule
        #expect(effects.published == [4_000])
        #expect(effects.backlog == ScheduleBacklog(pending: 1, lateness: 3_000))
        // What a suspended app is to publish is not late: it is not to be published.
        try world.expectDone(.suspendApp(World.app))
        let later = try world.commit([.schedules(.publishDue(rows: 1))])
        #expect(
            try #require(later.first).get().effects.schedule.backlog
                == ScheduleBacklog(pending: 1, lateness: 0))
    }

    /// It has no room while the clock is a day ahead.
    @Test(arguments: [1, 3_600_000] as [Milliseconds])
    func whatWasPutOffByAClockThatWasAheadHasItsTime(_ delay: Milliseconds) throws {
        world.limits.directRecipients = 1
        world.limits.fanOutQueue = 1
        let room = try world.converse(["anna", "bob"])
        try world.finishFanOut()
        world.pass(100 * 86_400_000)
        try pushes.tick()
        let right = world.now
        let made = try scheduled(try later(message("later", to: room), in: delay))
        let other = try scheduled(try later(message("other", to: room), in: 40 * 86_400_000))
        for _ in 1...2 { try world.publish("in the way", to: room) }
        world.store.clock = right + 86_400_000
        try pushes.tick()
        try publish()
        #expect(try row(made.message)?.due.map { $0 > right + 86_400_000 } == true)
        world.store.clock = right + 2_000
        try pushes.tick()
        try world.finishFanOut()
        #expect(try row(made.message)?.due == max(made.sendAt, world.now))
        #expect(try row(other.message)?.due == other.sendAt)
        #expect(try world.record(MetaRecord.self, [.text("clock_set_back")]) == nil)
        world.pass(delay)
        #expect(try publish() == .progressed(count: 1, more: false))
    }
}

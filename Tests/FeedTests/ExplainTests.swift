import Feed
import Model
import Testing
import Wake
import Wire

/// Every reason there is, met by a story of its own.
@Suite struct ExplainTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    @Test(arguments: ExplainReason.allCases)
    func everyReasonIsMet(_ reason: ExplainReason) throws {
        let (pushes, room) = try Pushes.sleeping()
        let user = UserID(reason.isOfCarl ? "carl" : "bob")
        let message = try story(of: reason, pushes, room)
        let found = try explain(message, to: user, in: pushes)
        let all = found.subjects.flatMap(\.steps).map(\.reason)
        #expect(all.contains(reason), "\(reason.rawValue): \(all.map(\.rawValue))")
    }

    @Test func theStepsOfADemotionStandInOrder() throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room).message
        try pushes.run(62_000)
        let found = try explain(message, to: UserID("bob"), in: pushes)
        #expect(found.subjects.map(\.device) == [phone])
        #expect(
            found.subjects.first?.steps.map(\.reason) == [
                .wakeNoShow, .alertMissed, .alertSent,
            ])
        let pushed = found.subjects.first?.steps.compactMap(\.push)
        #expect(pushed == pushes.sent.map(\.request.id))
        // Every recipient, if none is named; anna sent it.
        guard
            case .explained(let all) = try pushes.world.read(
                .explain(World.app, ExplainQuery(message: message)))
        else { throw Unexpected(answer: .done) }
        #expect(all.subjects.map(\.user.name) == ["anna", "bob"])
        #expect(all.subjects.first?.steps.map(\.reason) == [.ownMessage])
        #expect(
            try pushes.world.read(
                .explain(World.app, ExplainQuery(message: pushes.world.fresh()))) == .nothing)
    }

    @Test func anAnnouncementIsExplainedToo() throws {
        let (pushes, _) = try Pushes.sleeping()
        let id: MessageID = pushes.world.fresh()
        _ = try pushes.world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: id, users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "Sale")), idempotency: nil))
        try pushes.run(0)
        let found = try explain(id, to: UserID("bob"), in: pushes)
        #expect(found.conversation == nil)
        #expect(found.subjects.first?.steps.map(\.reason) == [.wakePending, .wakeWaiting])
    }

    @Test("an alert is told of when the phone has the message, too", arguments: Urgency.allCases)
    func alertsAreRemembered(_ urgency: Urgency) throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room, urgency).message
        try pushes.run(62_000)
        try pushes.nap("bob", phone)
        // What the next message came to is not this one's.
        try pushes.say("2", in: room, .urgent)
        try pushes.run(0)
        let steps = try explain(message, to: UserID("bob"), in: pushes).subjects
            .flatMap(\.steps)
        let alert = pushes.sent.first { $0.kind == .alert && $0.request.id == steps.told?.push }
        switch urgency {
        case .passive:
            #expect(steps.told == nil, "\(steps)")
        case .normal:
            #expect(steps.map(\.reason) == [.wakeNoShow, .alertSent, .applied], "\(steps)")
            #expect(alert != nil && steps.told?.at != nil)
        case .urgent:
            #expect(steps.map(\.reason) == [.alertUrgent, .alertSent, .applied], "\(steps)")
            #expect(alert != nil && steps.told?.at != nil)
        }
    }

    @Test func refusalsGoAfterAWeek() throws {
        let (pushes, room) = try Pushes.sleeping()
        _ = try story(of: .muted, pushes, room)
        #expect(try pushes.world.all(RefusalRecord.self).count == 1)
        pushes.world.pass(7 * 86_400_000 - 1)
        _ = try pushes.world.ask(.enforceRetention(rows: 100))
        #expect(try pushes.world.all(RefusalRecord.self).count == 1)
        pushes.world.pass(1)
        _ = try pushes.world.ask(.enforceRetention(rows: 100))
        #expect(try pushes.world.all(RefusalRecord.self).isEmpty)
    }

    // MARK: stories

    private func explain(
        _ message: MessageID, to user: UserID, in pushes: Pushes
    ) throws -> Explanation {
        let query = ExplainQuery(message: message, user: user)
        guard case .explained(let found) = try pushes.world.read(.explain(World.app, query))
        else { throw Unexpected(answer: .done) }
        return found
    }

    private func readOnTablet(_ pushes: Pushes, _ room: ConversationID) throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            session, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 99)])
    }

    private func change(
        _ pushes: Pushes, _ body: (inout AppRecord) -> Void
    ) throws {
        var app = World.classic(createdAt: pushes.world.now)
        body(&app)
        try pushes.world.expectDone(.putApp(app))
    }

    private func mutate(_ pushes: Pushes, _ operation: Mutation.Operation) throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        _ = try pushes.world.mutate(session, 1, operation)
        try pushes.end(session, applied: try pushes.head("bob"), within: 0)
        try pushes.run(2_000)
    }

    private func refuse(_ pushes: Pushes) throws {
        let job = try #require(try pushes.claim().first)
        try pushes.finish(
            job, .answered(status: 400, reason: "BadCollapseId", timestamp: nil))
    }

    @Test("what APNs says of an alert is told: that it refused it, or why it put it off")
    func answersToAlerts() throws {
        for (status, reason) in [(413, "PayloadTooLarge"), (503, "ServiceUnavailable")]
            as [(UInt64, String)]
        {
            let (pushes, room) = try Pushes.sleeping()
            let id = try pushes.say("1", in: room, .urgent).message
            let reply = PushReply.answered(status: status, reason: reason, timestamp: nil)
            try pushes.run(0, answering: { _ in reply })
            let told = try explain(id, to: UserID("bob"), in: pushes).subjects
            let steps = told.flatMap(\.steps)
            let last = try #require(steps.last { $0.status > 0 })
            #expect(last.status == status && last.answer == reason, "\(steps)")
            #expect(!steps.contains { $0.reason == .alertCancelled }, "\(steps)")
            #expect(last.reason == (status == 413 ? .alertRejected : .alertQueued))
        }
    }

    private func demoteWithSeven(
        _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        let first = try pushes.say("1", in: room).message
        for number in 2...7 { try pushes.say("\(number)", in: room) }
        for job in try pushes.claim() { try pushes.finish(job) }
        for _ in 0..<31 {
            pushes.world.pass(2_000)
            try pushes.tick()
        }
        return first
    }

    private func story(
        of reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        switch reason {
        case .onItsWay, .notRecipient, .ownMessage, .deleted, .noPushText, .muted, .readAlready,
            .senderBlocked, .passive, .read, .userSuspended, .appSuspended, .noDevice:
            return try storyOfUser(reason, pushes, room)
        case .applied, .appliedAhead, .session, .sessionExpected, .tokenless, .noCredential,
            .presumedGone, .nothingOwed:
            return try storyOfDevice(reason, pushes, room)
        case .wakeDue, .wakeSending, .wakeWaiting, .wakePending, .wakeSynced, .wakeNotSynced,
            .wakeLate, .wakeSuperseded, .wakeExpired, .wakeRejected, .wakeNoShow:
            return try storyOfWake(reason, pushes, room)
        case .alertUrgent, .alertUnreachable, .alertRefreshOff, .alertGone, .alertNoBudget,
            .alertMissed, .alertNotSynced, .alertWakeRejected, .alertTimed, .alertDoubted:
            return try storyOfCause(reason, pushes, room)
        case .alertQueued, .alertSending, .alertSent, .alertSentWithNewer, .alertCounted,
            .alertCancelled, .alertRejected, .alertDelayed, .alertExpired:
            return try storyOfAlert(reason, pushes, room)
        }
    }

    private func storyOfUser(
        _ reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        let world = pushes.world
        switch reason {
        case .onItsWay, .readAlready:
            world.limits.directRecipients = 1
            let id = try pushes.say("1", in: room).message
            guard reason == .readAlready else { return id }
            try readOnTablet(pushes, room)
            try world.finishFanOut()
            return id
        case .ownMessage: return try pushes.say("1", in: room, from: "bob").message
        case .deleted:
            let id = try pushes.say("1", in: room).message
            _ = try world.ask(.deleteMessage(app: World.app, id, idempotency: nil))
            return id
        case .noPushText:
            return try world.publish("1", to: room, from: "anna", push: "").message
        case .muted:
            try mutate(
                pushes,
                .muteConversation(MuteConversation(conversation: room, muted: true)))
        case .senderBlocked:
            try mutate(pushes, .blockUser(BlockUser(user: "anna", blocked: true)))
        case .passive: return try pushes.say("1", in: room, .passive).message
        case .read:
            let id = try pushes.say("1", in: room).message
            try readOnTablet(pushes, room)
            return id
        case .userSuspended:
            try world.expectDone(.suspendUser(World.app, UserID("bob")))
        case .appSuspended: try world.expectDone(.suspendApp(World.app))
        case .noDevice: _ = try world.add(["carl"], to: room)
        default: break
        }
        return try pushes.say("1", in: room).message
    }

    private func storyOfDevice(
        _ reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        let world = pushes.world
        switch reason {
        case .applied:
            let id = try pushes.say("1", in: room).message
            try pushes.nap("bob", phone)
            return id
        case .appliedAhead:
            try pushes.say("1", in: room)
            let id = try pushes.say("2", in: room).message
            let head = try pushes.head("bob")
            let session = try pushes.open("bob", phone).session
            try pushes.acknowledge(
                session, head - 2, completes: false,
                ranges: [InclusiveRange(first: head, last: head)])
            return id
        case .session: _ = try pushes.open("bob", phone)
        case .sessionExpected:
            let session = try pushes.open("bob", phone).session
            let id = try pushes.say("1", in: room).message
            try pushes.end(session, within: 10_000)
            return id
        case .tokenless:
            let session = try world.login("bob", tablet).session
            try pushes.end(session, within: 0)
            try pushes.run(2_000)
        case .noCredential:
            try world.expectDone(
                .removePushCredential(CredentialKey(app: World.app, environment: .development)))
        case .presumedGone:
            try change(pushes) { $0.adaptive.goneAfter = 86_400_000 }
            world.pass(2 * 86_400_000)
            try pushes.tick()
        case .nothingOwed:
            try change(pushes) { $0.silentBudget = 1 }
            return try pushes.say("1", in: room, .passive).message
        default: break
        }
        return try pushes.say("1", in: room).message
    }

    private func storyOfWake(
        _ reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        let world = pushes.world
        let id = try pushes.say("1", in: room).message
        switch reason {
        case .wakeSending: _ = try pushes.claim()
        case .wakeWaiting, .wakePending: try pushes.run(0)
        case .wakeSynced:
            try pushes.run(0)
            try pushes.nap("bob", phone)
        case .wakeNotSynced:
            try pushes.run(10_000)
            let wake = try #require(pushes.sent.last).request.id
            try pushes.end(try pushes.open("bob", phone, wake: wake).session, within: 0)
            try pushes.run(32_000)
        case .wakeLate:
            try pushes.run(0)
            let wake = try #require(pushes.sent.last).request.id
            try pushes.run(62_000)
            _ = try pushes.open("bob", phone, wake: wake)
        case .wakeSuperseded:
            try pushes.run(10_000)
            try readOnTablet(pushes, room)
            try pushes.run(60_000)
        case .wakeExpired:
            try pushes.run(10_000)
            world.pass(300_000)
            _ = try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 1))
            try pushes.run(1_000)
        case .wakeRejected: try refuse(pushes)
        case .wakeNoShow: try pushes.run(62_000)
        default: break
        }
        return id
    }

    private func storyOfCause(
        _ reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        let world = pushes.world
        switch reason {
        case .alertUrgent: return try pushes.say("1", in: room, .urgent).message
        case .alertMissed: return try storyOfWake(.wakeNoShow, pushes, room)
        case .alertTimed:
            let id = try pushes.say("1", in: room, pushes.at(10_000)).message
            try pushes.run(10_000)
            return id
        case .alertNotSynced: return try storyOfWake(.wakeNotSynced, pushes, room)
        case .alertWakeRejected: return try storyOfWake(.wakeRejected, pushes, room)
        case .alertUnreachable: _ = try storyOfWake(.wakeNoShow, pushes, room)
        case .alertRefreshOff:
            let answer = try world.open(
                .identity(UserID("bob")), phone, push: Pushes.registration(),
                appState: AppState(backgroundRefresh: .off))
            guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
            try pushes.end(opened.session, within: 0)
            try pushes.run(2_000)
        case .alertGone:
            try change(pushes) { $0.adaptive.goneAfter = 86_400_000 }
            world.pass(2 * 86_400_000)
            try pushes.tick()
        case .alertNoBudget: try change(pushes) { $0.silentBudget = 0 }
        case .alertDoubted:
            try change(pushes) { $0.adaptive.doubtMisses = 1 }
            _ = try storyOfWake(.wakeNoShow, pushes, room)
            try pushes.nap("bob", phone)
        default: break
        }
        let id = try pushes.say("2", in: room).message
        try pushes.run(0)
        return id
    }

    private func storyOfAlert(
        _ reason: ExplainReason, _ pushes: Pushes, _ room: ConversationID
    ) throws -> MessageID {
        switch reason {
        case .alertCounted: return try demoteWithSeven(pushes, room)
        case .alertDelayed: return try pushes.say("1", in: room, pushes.at(10_000)).message
        case .alertExpired:
            let id = try pushes.say("1", in: room, AlertTiming(lifetime: 10_000)).message
            try pushes.run(70_000)
            return id
        case .alertSentWithNewer:
            let id = try demoteWithSeven(pushes, room)
            try pushes.run(0)
            return id
        default: break
        }
        let id = try pushes.say("1", in: room, .urgent).message
        switch reason {
        case .alertSending: _ = try pushes.claim()
        case .alertSent: try pushes.run(0)
        case .alertCancelled: try readOnTablet(pushes, room)
        case .alertRejected: try refuse(pushes)
        default: break
        }
        return id
    }
}

extension ExplainReason {
    fileprivate var isOfCarl: Bool { self == .notRecipient || self == .noDevice }
}

extension [ExplainStep] {
    fileprivate var told: ExplainStep? { first { $0.reason == .alertSent } }
}

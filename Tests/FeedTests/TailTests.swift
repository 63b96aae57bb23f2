import Model
import SyncServer
import Testing
import Wake
import Wire

@testable import Feed

/// What a commit hands over is what a read of the feed gives, byte for byte.
struct TailTests {
    /// Each with a session that is handed what commits appended, and one that reads all of it.
    private final class Pairs {
        let world: World
        var pairs: [(user: UserID, device: DeviceID, told: LiveMirror, reading: LiveMirror)] = []
        var pushed = (byTail: UInt64(0), byRead: UInt64(0), instead: UInt64(0))
        var finding: String?
        /// Another node carries out about half of the commits; `nil`: there is none.
        private var others: SplitMix64?
        /// What the other node told and is still under way.
        private var hints: [FeedChange] = []

        init(_ world: World, _ users: [(UserID, DeviceID)], others: SplitMix64? = nil) throws {
            self.world = world
            self.others = others
            for (user, device) in users { try add(user, device) }
        }

        private func add(_ user: UserID, _ device: DeviceID) throws {
            guard let told = try LiveMirror(user, device, world),
                let reading = try LiveMirror(user, device, world)
            else { return }
            pairs.append((user, device, told, reading))
        }

        /// As the writer and the hub do it.
        func committed(_ outcomes: [StoreOutcome]) throws {
            var changes = FeedChanges(limits: world.limits.tail)
            for outcome in outcomes { changes.join(outcome.effects.changes) }
            changes.finish()
            guard var chance = others else { return try tell(changes.all) }
            let isElsewhere = chance.next() % 2 == 0
            let arrives = chance.next() % 3 == 0
            others = chance
            if isElsewhere {
                // As `NodeHints` tells it.
                hints += changes.all.filter { $0.kinds != 0 }.map { change in
                    FeedChange(
                        app: change.app, user: change.user, head: change.head,
                        kinds: change.kinds, isUrgent: change.isUrgent)
                }
            } else {
                try tell(changes.all)
            }
            guard arrives else { return }
            defer { hints = [] }
            try tell(hints)
        }

        private func tell(_ changes: [FeedChange]) throws {
            for index in pairs.indices {
                for change in changes {
                    try pairs[index].told.tell(change, isWhole: true, world)
                    // Of a number alone that changes no read is told of.
                    if change.kinds == 0, others != nil { continue }
                    try pairs[index].reading.tell(change, isWhole: false, world)
                }
                try compare(index, changes)
            }
        }

        func receive(_ body: (LiveMirror) -> FrameBody, at index: Int) throws {
            let frame = body(pairs[index].reading)
            try pairs[index].told.receive(frame, world)
            try pairs[index].reading.receive(frame, world)
            try compare(index, [])
        }

        private func compare(_ index: Int, _ changes: [FeedChange]) throws {
            let told = pairs[index].told.takeFrames().map(Self.unmarked)
            let read = pairs[index].reading.takeFrames().map(Self.unmarked)
            let user = pairs[index].user
            if told != read, finding == nil {
                let own = changes.filter { $0.user == user }
                finding = """
                    \(user.name) was told \(told.map(Self.shown)), a read gives \
                    \(read.map(Self.shown)) after \(own)
                    """
            }
            guard pairs[index].told.isClosed else { return }
            note(index)
            let (user0, device, _, _) = pairs.remove(at: index)
            try add(user0, device)
            // The order of the others stays.
            if pairs.count > index + 1, let last = pairs.popLast() { pairs.insert(last, at: index) }
        }

        /// A read knows of a mute, a block or a read mark that came behind what is handed over, and
        /// marks what nobody is to be told of then (PSH-9). Here nothing else is marked.
        private static func unmarked(_ frame: [UInt8]) -> [UInt8] {
            guard frame[3] == 0x11, var delta = try? Delta(encoded: Array(frame.dropFirst(8)))
            else { return frame }
            for index in delta.entries.indices { delta.entries[index].alerted = false }
            // The header begins with the length.
            return Array(frame[3..<8]) + delta.encoded
        }

        private static func shown(_ frame: [UInt8]) -> String {
            guard let delta = try? Delta(encoded: Array(frame.dropFirst(8))), frame[3] == 0x11
            else { return "\(frame)" }
            return "\(delta)"
        }

        private func note(_ index: Int) {
            pushed.byTail += UInt64(pairs[index].told.pushed.byTail)
            pushed.byRead += UInt64(pairs[index].told.pushed.byRead)
            pushed.instead += UInt64(pairs[index].reading.pushed.byRead)
        }

        func end() {
            for index in pairs.indices { note(index) }
        }
    }

    private static let operations: [Operation] = [
        .send, .send, .send, .publishAs, .publish, .publish, .read, .read, .read, .add, .backendAdd,
        .remove, .leave, .edit, .backendEdit, .delete, .backendDelete, .hide, .clear, .end,
        .mute, .unmute, .block, .unblock, .setMetadata, .acknowledge, .sync, .announce,
        .readAnnouncement, .create, .schedule, .continueFanOut, .continueFanOut, .coalesceReceipts,
        .claimPushes, .finishPush, .sweepWakes, .publishDue, .enforceRetention,
    ]

    /// Single requests and groups, of everything that fills feeds, and devices that acknowledge,
    /// fall behind, go to the background and come again.
    private func run(
        seed: UInt64, steps: Int, limits: TailLimits = TailLimits(), others: SplitMix64? = nil
    ) throws -> Pairs {
        let schedule = try PairSchedule(seed: seed)
        let state = schedule.state
        state.world.limits.tail = limits
        for _ in 0..<6 { try schedule.perform(.send) }
        let pairs = try Pairs(
            state.world,
            PairWorld.names.indices.compactMap { who in
                state.devices(of: who).first.map { (state.user(who), $0) }
            }, others: others)
        state.world.committed = { try pairs.committed($0) }
        for step in 0..<steps where pairs.finding == nil {
            if state.chance.next() % 16 == 0 { try schedule.settle() }
            let count = state.chance.next() % 3 == 0 ? 1 + state.chance.next() % 5 : 1
            let plans = (0..<count).compactMap { _ in
                state.plan(state.pick(Self.operations) ?? .send)
            }
            let outcomes = try state.world.askTogether(plans.map(\.request))
            for (plan, outcome) in zip(plans, outcomes) {
                guard case .success(let outcome) = outcome else { continue }
                if try state.take(outcome.answer, of: plan) { schedule.learn(plan) }
            }
            if pairs.finding != nil { pairs.finding? += "\nstep \(step): \(plans.map(\.request))" }
            for index in pairs.pairs.indices { try act(pairs, index, &state.chance) }
            state.world.pass(Milliseconds(state.chance.next() % 900))
        }
        pairs.end()
        return pairs
    }

    private func act(
        _ pairs: Pairs, _ index: Int, _ chance: inout SeededGenerator
    ) throws {
        guard index < pairs.pairs.count else { return }
        switch chance.next() % 16 {
        case 0:
            let away = AppState(phase: .background, remainingMs: 60_000)
            try pairs.receive({ _ in .appState(away) }, at: index)
        case 1...3:
            try pairs.receive({ _ in .appState(AppState(phase: .foreground)) }, at: index)
        case 4...10: try pairs.receive({ .ack(Ack(applied: $0.sent)) }, at: index)
        default: break
        }
    }

    @Test(arguments: 0..<(24 as UInt64))
    func aTailIsWhatAReadGives(_ seed: UInt64) throws {
        let pairs = try run(seed: seed, steps: 300)
        if let finding = pairs.finding { Issue.record("seed \(seed): \(finding)") }
        #expect(pairs.pushed.byTail > 20)
        #expect(pairs.pushed.byRead > 20)
        #expect(pairs.pushed.byTail + pairs.pushed.byRead == pairs.pushed.instead)
    }

    @Test("so it is beside another node, whose hints come late", arguments: 0..<(48 as UInt64))
    func beside(_ seed: UInt64) throws {
        let pairs = try run(seed: seed, steps: 300, others: SplitMix64(seed: seed))
        if let finding = pairs.finding { Issue.record("seed \(seed): \(finding)") }
        #expect(pairs.pushed.byTail > 5)
        #expect(pairs.pushed.byRead > 20)
    }

    /// PSH-9: a live device of a user who has muted the conversation is told so with the message.
    @Test func aMutedUsersTailIsMarked() throws {
        let world = try World()
        let room = try world.converse(["anna", "ben", "carl"])
        let ben = try world.login("ben", DeviceID(high: 1, low: 1)).session
        let mute = MuteConversation(conversation: room, muted: true)
        #expect(try world.mutate(ben, 1, .muteConversation(mute)).code == 0)
        try world.publish("look", to: room, from: "carl")
        let marks = world.changes.compactMap { change in
            change.tail.map { ($0.entries.map(\.state.entry.alerted), change.user.name) }
        }
        for (alerted, name) in marks { #expect(alerted == [name == "ben"]) }
        #expect(marks.count == 3)
    }

    @Test("with hardly any room for it what was appended is read")
    func limits() throws {
        var limits = TailLimits()
        limits.entries = 1
        limits.bytesPerCommit = 200
        let pairs = try run(seed: 1, steps: 150, limits: limits)
        if let finding = pairs.finding { Issue.record("\(finding)") }
        #expect(pairs.pushed.byRead > 0)
    }

    @Test("a message to many is one object in all their feeds", arguments: [3, 2])
    func sharedState(_ directRecipients: Int) throws {
        var limits = RuleLimits()
        limits.directRecipients = directRecipients
        let world = try World(limits: limits)
        let room = try world.converse(["anna", "ben", "carl"])
        try world.finishFanOut()
        try world.publish("hello", to: room)
        // In the background if they are more.
        if world.changes.isEmpty { try world.ask(.continueFanOut(recipients: 50)) }
        let tails = world.changes.compactMap(\.tail)
        #expect(tails.count == 3)
        let states = Set(tails.flatMap(\.entries).map { ObjectIdentifier($0.state) })
        #expect(states.count == 1)
    }

    @Test("whether it alerts on the device must not depend on the time, else it is read")
    func timing() throws {
        let world = try World()
        let room = try world.converse(["anna", "ben"])
        func alerted(_ timing: AlertTiming) throws -> [Bool] {
            var options = PushOptions()
            options.timing = timing
            let message = world.message0("look", to: room, world.fresh())
            try world.ask(
                .publish(
                    app: World.app, Publication(message: message, sender: "", options: options),
                    idempotency: nil))
            let entries = world.changes.compactMap(\.tail).flatMap(\.entries)
            return entries.map(\.state.entry.alerted)
        }
        #expect(try alerted(AlertTiming()) == [false, false])
        #expect(
            try alerted(AlertTiming(moment: .at(world.now + 60_000), lifetime: 1_000))
                == [true, true])
        #expect(try alerted(AlertTiming(lifetime: 60_000)) == [])
        #expect(try alerted(AlertTiming(expires: world.now + 60_000)) == [])
    }

    @Test("of a message deleted in the same commit nothing is handed over")
    func deletedAtOnce() throws {
        var limits = RuleLimits()
        limits.directRecipients = 3
        let world = try World(limits: limits)
        let room = try world.converse(["anna", "ben", "carl"])
        try world.finishFanOut()
        let message: MessageID = world.fresh()
        var tails: [FeedTail] = []
        world.committed = { outcomes in
            var changes = FeedChanges()
            for outcome in outcomes { changes.join(outcome.effects.changes) }
            changes.finish()
            tails = changes.all.compactMap(\.tail)
        }
        let publish = StoreRequest.publish(
            app: World.app,
            Publication(message: world.message0("secret", to: room, message), sender: ""),
            idempotency: nil)
        _ = try world.askTogether([publish])
        #expect(tails.count == 3)
        // The newcomers make the deletion wait for its turn: the feeds keep the entry.
        let other: MessageID = world.fresh()
        _ = try world.askTogether([
            .publish(
                app: World.app,
                Publication(message: world.message0("secret", to: room, other), sender: ""),
                idempotency: nil),
            .addParticipants(
                app: World.app,
                AddParticipants(conversation: room, users: ["dora", "emil"]), idempotency: nil),
            .deleteMessage(app: World.app, other, idempotency: nil),
        ])
        #expect(tails.isEmpty)
    }

    @Test("an entry that the same commit replaced is not handed over", arguments: [1, 2])
    func replacedAtOnce(_ requests: Int) throws {
        let world = try World()
        let room = try world.converse(["anna", "ben"])
        for text in ["one", "two"] { try world.publish(text, to: room) }
        let session = try world.login("anna", DeviceID(high: 1, low: 1)).session
        var tails: [FeedTail] = []
        world.committed = { outcomes in
            var changes = FeedChanges()
            for outcome in outcomes { changes.join(outcome.effects.changes) }
            changes.finish()
            tails = changes.all.compactMap(\.tail)
        }
        func read(_ positions: ClosedRange<UInt64>) -> StoreRequest {
            .acknowledge(
                Acknowledge(
                    session: session, applied: 0, ranges: [],
                    reads: positions.map { ReadReceipt(conversation: room, through: $0) },
                    completesSync: false))
        }
        _ = try world.askTogether(requests == 1 ? [read(1...2)] : [read(1...1), read(2...2)])
        #expect(tails.isEmpty)
        try world.publish("three", to: room)
        _ = try world.askTogether([read(3...3)])
        #expect(tails.map(\.entries.count) == [1])
    }

    @Test("two apps with one id have two messages")
    func twoApps() throws {
        let world = try World()
        let other = AppID("mail")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        let id: MessageID = world.fresh()
        func announce(_ app: AppID, _ text: String) -> StoreRequest {
            .announce(
                app: app,
                Announcement(
                    announcement: id, users: ["anna", "ben"],
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                    push: nil), idempotency: nil)
        }
        // Both wait for one turn, which serves the apps one after the other.
        world.limits.directRecipients = 1
        _ = try world.askTogether([announce(World.app, "one"), announce(other, "two")])
        try world.ask(.continueFanOut(recipients: 50))
        let entries = world.changes.compactMap(\.tail).flatMap(\.entries)
        #expect(entries.count == 4)
        for app in [World.app, other] {
            let own = world.changes.filter { $0.app == app }.compactMap(\.tail).flatMap(\.entries)
            let texts = own.map { entry in
                guard case .announcement(let told) = entry.state.entry.body else { return "" }
                return String(decoding: told.parts.first?.content ?? [], as: UTF8.self)
            }
            #expect(texts == (app == other ? ["two", "two"] : ["one", "one"]))
        }
    }
}

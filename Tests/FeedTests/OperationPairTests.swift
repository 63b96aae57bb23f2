import Feed
import Foundation
import Model
import Testing

/// Every operation there is after every other, on the same object, by the same and by another
/// user; what must hold is looked at after each step.
struct OperationPairTests {
    /// Each brings its share of the pairs about, in a world of its own.
    private static let seeds: UInt64 = 64
    /// They get what is missing still.
    private static let moreSeeds: UInt64 = 12
    /// From here on seeds do anything, in any order.
    private static let anyOrder: UInt64 = 1_000
    private static let wanderers: UInt64 = 8
    private static let wandererSteps = 120

    /// The seed's part of all pairs: it needs no other seed to be repeated.
    private static func share(of seed: UInt64) -> [OperationPair] {
        OperationPair.all.enumerated().filter { UInt64($0.offset) % seeds == seed }
            .map(\.element)
    }

    /// What has not come yet: a pair that can be, or the asking for one that cannot.
    private static func missing(in count: PairCount) -> [OperationPair] {
        OperationPair.all.filter {
            !count.done.contains($0) && ($0.impossible == nil || !count.refused.contains($0))
        }
    }

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap(UInt64.init)
    }

    private static func record(_ schedule: PairSchedule, _ seed: UInt64) {
        let steps = number("ROUSE_PAIR_STEPS").map(Int.init(clamping:)) ?? 12
        if let report = schedule.report(steps: steps) {
            Issue.record("ROUSE_PAIR_SEED=\(seed): \(report)")
        }
    }

    /// The whole is the same each time; `ROUSE_PAIR_SEED` repeats one seed (those that get what
    /// is missing come with the whole), and `ROUSE_PAIR_STEPS` says how many steps before a
    /// finding are shown.
    @Test func everyPairOccursAndNothingBreaks() throws {
        var count = PairCount()
        var steps = 0
        func run(_ seed: UInt64, _ share: [OperationPair]) throws {
            let schedule = try PairSchedule(seed: seed)
            try schedule.run(share)
            Self.record(schedule, seed)
            count.add(schedule.count)
            steps += schedule.steps
        }
        if let only = Self.number("ROUSE_PAIR_SEED"), only < Self.seeds || only >= Self.anyOrder {
            return only < Self.seeds ? try run(only, Self.share(of: only)) : ()
        }
        for seed in 0..<Self.seeds { try run(seed, Self.share(of: seed)) }
        for seed in Self.seeds..<Self.seeds + Self.moreSeeds {
            let missing = Self.missing(in: count)
            guard !missing.isEmpty else { break }
            try run(seed, Array(missing.prefix(24)))
        }
        judge(count, steps)
    }

    private func judge(_ count: PairCount, _ steps: Int) {
        let possible = OperationPair.all.count { $0.impossible == nil }
        let done = OperationPair.all.count { $0.impossible == nil && count.done.contains($0) }
        let refused = OperationPair.all.count {
            $0.impossible != nil && count.refused.contains($0)
        }
        print(
            """
            \(steps) steps, \(OperationPair.all.count) pairs: \(done) of \(possible) that can be \
            came, \(refused) of \(OperationPair.all.count - possible) that cannot were refused
            """)
        for pair in Self.missing(in: count) {
            let what = count.refused.contains(pair) ? "was refused" : "was never asked for"
            Issue.record("\(pair) \(what)")
        }
        for pair in count.done {
            if let reason = pair.impossible { Issue.record("\(pair) occurs, though \(reason)") }
        }
        for turn in OperationTurn.all where !count.turns.contains(turn) {
            Issue.record("\(turn.turn) never came after \(turn.first)")
        }
        for kind in EntryKind.allCases where count.entries & 1 << UInt32(kind.rawValue) == 0 {
            Issue.record("no \(kind) came into any feed")
        }
        for change in (1...32).compactMap(FanOutKind.init(rawValue:)) {
            #expect(count.moving.contains(change), "it was never on its way")
        }
    }

    @Test func nothingBreaksInAnyOrder() throws {
        let only = Self.number("ROUSE_PAIR_SEED")
        for seed in Self.anyOrder..<Self.anyOrder + Self.wanderers where only ?? seed == seed {
            let schedule = try PairSchedule(seed: seed)
            try schedule.run(steps: Self.wandererSteps)
            Self.record(schedule, seed)
        }
    }

    /// From here on two operations come at once, each by a node of its own.
    private static let together: UInt64 = 2_000
    private static let meetings: UInt64 = 8
    private static let meetingSteps = 80

    @Test func nothingBreaksBetweenTwoWriters() throws {
        let only = Self.number("ROUSE_PAIR_SEED")
        let count = Self.number("ROUSE_PAIR_MEETINGS") ?? Self.meetings
        for seed in Self.together..<Self.together + count where only ?? seed == seed {
            let schedule = try PairSchedule(seed: seed)
            try schedule.runTogether(steps: Self.meetingSteps)
            Self.record(schedule, seed)
        }
    }

    /// What each request of the backend API that changes something comes to.
    private static let requests: [String: [Operation]] = [
        "createConversation": [.backendCreate], "deleteConversation": [.backendEnd],
        "changeMetadata": [.backendMetadata], "addParticipants": [.backendAdd],
        "removeParticipants": [.backendRemove],
        "publishMessage": [.publish, .publishAs, .schedule],
        "announce": [.announce, .scheduleAnnouncement], "cancelScheduled": [.cancel],
        "takeBackAnnouncement": [.takeBack],
        "muteConversation": [.backendMute], "unmuteConversation": [.backendUnmute],
        "blockUser": [.backendBlock], "unblockUser": [.backendUnblock],
        "editMessage": [.backendEdit], "deleteMessage": [.backendDelete],
        "deleteUser": [.deleteUser], "revokeSessions": [.revoke, .challenge],
        "suspendUser": [.suspendUser], "resumeUser": [.resumeUser],
        "createWebhook": [.createWebhook], "changeWebhook": [.changeWebhook],
        "removeWebhook": [.removeWebhook], "rotateWebhookSecret": [.rotateSecret],
        "endWebhookSecret": [.endRotation], "undoWebhookSecret": [.undoRotation],
        "testWebhook": [.testWebhook],
        "createCampaign": [.createCampaign],
        "pauseCampaign": [.pauseCampaign], "resumeCampaign": [.resumeCampaign],
        "cancelCampaign": [.cancelCampaign], "changeUserTags": [.tagUser],
        "changeDeviceTags": [.tagDevice], "removeDevice": [.removeDevice],
    ]

    @Test func everyRequestOfTheAPIIsAmongThem() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(
            contentsOf: root.appendingPathComponent("Protocol/backend-api.yaml"), encoding: .utf8)
        var method = ""
        var found: Set<String> = []
        for line in page.split(separator: "\n") {
            if let match = line.wholeMatch(of: #/    (get|post|put|patch|delete):/#) {
                method = String(match.1)
            } else if let match = line.wholeMatch(of: #/      operationId: (\w+)/#),
                method != "get"
            {
                found.insert(String(match.1))
            }
        }
        #expect(found == Set(Self.requests.keys))
        let covered = Set(OperationPair.all.map(\.first))
        #expect(Self.requests.values.allSatisfy { $0.allSatisfy(covered.contains) })
        #expect(covered == Set(Operation.allCases))
    }
}

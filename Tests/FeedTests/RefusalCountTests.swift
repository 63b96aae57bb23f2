import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Faults of APNs and answers that are none of its own are counted apart: the ones give no push up,
/// the others seven of their kind.
@Suite struct RefusalCountTests {
    private let fault = PushReply.answered(
        status: 503, reason: "ServiceUnavailable", timestamp: nil)
    private let unknown = PushReply.answered(status: 418, reason: "", timestamp: nil)
    private let pushes: Pushes
    private let room: ConversationID

    init() throws {
        (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        try pushes.run(120_000)
        try pushes.say("1", in: room)
    }

    /// Answers so many tries, and returns how long each waited.
    private func answer(_ reply: PushReply, _ times: Int) throws -> [UInt64] {
        var waits: [UInt64] = []
        for _ in 0..<times {
            let began = pushes.world.now
            var jobs: [PushJob] = []
            for _ in 0..<1_000 where jobs.isEmpty {
                try pushes.tick()
                jobs = try pushes.claim()
                if jobs.isEmpty { pushes.world.pass(1_000) }
            }
            waits.append(pushes.world.now.since(began) / 1_000)
            try pushes.finish(try #require(jobs.first), reply)
        }
        return waits
    }

    @Test func anUnknownAnswerAfterManyFaultsIsTheFirstOfItsKind() throws {
        _ = try answer(fault, 9)
        _ = try answer(unknown, 1)
        #expect(try pushes.run(6_000) == [#"alert "1 (and 1 more)" badge 2 stored"#])
    }

    @Test func aFaultAfterManyUnknownAnswersIsTheFirstOfItsKind() throws {
        _ = try answer(unknown, 6)
        _ = try answer(fault, 1)
        #expect(try pushes.run(6_000) == [#"alert "1 (and 1 more)" badge 2 stored"#])
    }

    @Test func sevenOfItsKindAreTheLastWhateverCameBetween() throws {
        for _ in 0..<7 {
            _ = try answer(unknown, 1)
            _ = try answer(fault, 1)
        }
        _ = try answer(unknown, 1)
        #expect(try pushes.run(700_000) == [])
        #expect(
            try pushes.world.all(AlertRecord.self).map(\.phase).sorted { $0.rawValue < $1.rawValue }
                == [.sent, .cancelled])
    }
}

import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// The number on an icon, when messages are read and come while a push with a number is under way.
@Suite struct IconTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    enum Act: Sendable {
        /// All there is, or what was there before the push.
        case read, readOlder
        case say
    }

    static let acts: [[Act]] = [
        [.read], [.say], [.read, .say], [.say, .read], [.say, .read, .say], [.readOlder],
        [.readOlder, .say],
    ]
    static let replies: [PushReply] = [
        Pushes.accepted, .unanswered, .notSent,
        .answered(status: 503, reason: "ServiceUnavailable", timestamp: nil),
        .answered(status: 429, reason: "TooManyRequests", timestamp: nil),
    ]

    @Test(
        "is right in the end, whatever happens while a push is under way", arguments: acts, replies)
    func whileAPushIsUnderWay(_ acts: [Act], _ reply: PushReply) throws {
        let (pushes, room) = try Pushes.sleeping()
        var said: UInt64 = 0
        func say() throws {
            said += 1
            try pushes.say("\(said)", in: room)
        }
        try say()
        try pushes.run(62_000)
        try pushes.run(120_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        let session = try pushes.open("bob", tablet, token: 2).session
        var read: UInt64 = 0
        // What APNs took is on the icon, also where its answer never came.
        var icon = "1"
        func show(_ job: PushJob) {
            guard job.key.device == phone, job.word.contains("badge ") else { return }
            icon = String(job.word.split(separator: "badge ").last?.prefix { $0.isNumber } ?? "")
        }
        try say()
        let older = said - 1
        let job = try #require(try pushes.claim().first { $0.key.device == phone })
        #expect(job.word == #"alert "2 (and 1 more)" badge 2 stored"# || job.kind == .alert)
        for act in acts {
            switch act {
            case .say: try say()
            case .read, .readOlder:
                read = act == .read ? said : older
                try pushes.acknowledge(
                    session, try pushes.head("bob"),
                    reads: [ReadReceipt(conversation: room, through: read)])
            }
        }
        if reply == Pushes.accepted || reply == .unanswered { show(job) }
        try pushes.finish(job, reply)
        try pushes.run(200_000) { job in
            show(job)
            return Pushes.accepted
        }
        #expect(icon == "\(said - read)")
    }
}

import EventLoop
import Feed
import Model
import Wake

// Lanes: on an engine that is a round trip away a writer mostly waits for answers. Several writers
// of one node wait at the same time, each over a connection of its own; row locks make them right,
// as they do several nodes. Lanes only cut the waiting.

/// Where requests go to be carried out: those of one `RequestLane` go to the same writer.
struct WriterDoor: Sendable {
    /// The first writer has the duties and what is nobody's; if it is alone it has everything.
    let first: Mailbox<WriteJob>
    let lanes: [Mailbox<WriteJob>]

    /// - Returns: `false`: as many wait there as may.
    func post(_ job: WriteJob) -> Bool {
        guard !lanes.isEmpty, let lane = job.request.lane else { return first.post(job) }
        return lanes[Int(UInt(bitPattern: lane.hashValue) % UInt(lanes.count))].post(job)
    }

    var count: Int { lanes.reduce(first.count) { $0 + $1.count } }
}

/// What the writers of one store have in common.
struct SharedByWriters: Sendable {
    let limits: StoreServiceLimits
    let health: StoreHealth
    let apps: AppDirectory
    let pause: ReaderPause
    let zones: any ZoneClock
    /// Has what the writers commit told in an order in which it can have happened: what was
    /// committed after another's commit, and perhaps because of it, is told after it. `nil`: there
    /// is one writer.
    ///
    /// A turn is taken before COMMIT is sent, when all that the transaction depends on is committed
    /// and has its turn, and all its locks are taken: whoever has a turn waits for no lock of those
    /// who wait for it.
    let order: Turns?
    let onCommit: @Sendable (Effects) -> Void
    let onUnreadable: @Sendable ([UnreadableRow]) -> Void
}

/// What a writer is for.
enum WriterRole {
    /// - farewell: What is written down last; `nil`: nothing.
    case first(duties: [StoreDuty], farewell: StoreRequest?)
    /// Counted from 1; the first writer has the duties.
    case lane(Int, first: Mailbox<WriterNudge>)

    /// The first writer's is 0.
    var number: Int {
        switch self {
        case .first: 0
        case .lane(let number, _): number
        }
    }
}

/// What the first writer is asked to do soon.
enum WriterNudge: Sendable {
    /// To say how its node stands.
    case beat
    /// A lane's commit has left this for the duties.
    case follow(BackgroundWork)
}

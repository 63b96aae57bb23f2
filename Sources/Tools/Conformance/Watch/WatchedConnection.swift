import Glibc
import Model
import Wire

/// What all connections of a trial have seen together. Of one thread.
final class TrialWatch {
    struct Feed: Hashable {
        let user: String
        let epoch: Epoch
    }
    struct Device: Hashable {
        let user: String
        let device: DeviceID?
    }
    /// A device's mutation numbers.
    struct Numbers {
        /// The highest with a result that is kept.
        var taken: UInt64 = 0
        /// The highest sent; `nil`: frames went out that nobody read here.
        var sent: UInt64? = 0
    }

    var feeds: [Feed: FeedLedger] = [:]
    var numbers: [Device: Numbers] = [:]
    private let witness: Witness
    private let name: String

    /// - Parameter name: of the case.
    init(_ witness: Witness, name: String) {
        self.witness = witness
        self.name = name
    }

    func saw(_ invariant: Invariant, _ what: String) {
        witness.saw(invariant, "in \(name): \(what)")
    }
}

/// Looks at every frame of one connection, in both directions, and tells what breaks an invariant.
struct WatchedConnection {
    /// What was known when a request went out: its answer may not be older.
    private struct Asked {
        var head: UInt64 = 0
        var taken: UInt64 = 0
        var sync: SyncFrame?
        var versions: [FeedObject: UInt64] = [:]
    }

    private let watch: TrialWatch
    private let name: String
    private var hello = Hello()
    private var welcome: Welcome?
    private var epoch: Epoch?
    private var asked: [UInt16: Asked] = [:]
    private var head: UInt64 = 0
    private var floor: UInt64 = 0
    private var hasDelta = false
    /// Numbers that went out before WELCOME.
    private var early: [UInt64] = []
    /// Whether all that was sent was looked at.
    private var areAllRead = true
    /// Server's clock less this machine's, in milliseconds.
    private var clock: Int64 = 0

    init(_ watch: TrialWatch, name: String) {
        self.watch = watch
        self.name = name
    }

    private var feed: TrialWatch.Feed? {
        guard let welcome, let epoch else { return nil }
        return TrialWatch.Feed(user: welcome.user, epoch: epoch)
    }

    private var device: TrialWatch.Device {
        TrialWatch.Device(user: welcome?.user ?? "", device: hello.device)
    }

    private func saw(_ invariant: Invariant, _ what: String) {
        watch.saw(invariant, "\(welcome?.user ?? ""), connection \(name): \(what)")
    }

    // MARK: What goes out

    mutating func sent(_ body: FrameBody, request: UInt16) {
        switch body {
        case .hello(let body):
            hello = body
            asked[request] = Asked(sync: body.sync)
        case .sync(let body):
            note(request, body)
            count(body.mutations.map(\.number))
        case .mutate(let mutation): count([mutation.number])
        case .fetch, .snapshot: note(request, nil)
        default: break
        }
    }

    /// Bytes that may be anything.
    mutating func sentBytes() {
        areAllRead = false
        watch.numbers[device, default: .init()].sent = nil
    }

    private mutating func note(_ request: UInt16, _ sync: SyncFrame?) {
        let ledger = feed.flatMap { watch.feeds[$0] }
        asked[request] = Asked(
            head: ledger?.head ?? 0, taken: watch.numbers[device]?.taken ?? 0, sync: sync,
            versions: ledger?.versions ?? [:])
    }

    private mutating func count(_ numbers: [UInt64]) {
        if welcome == nil { early += numbers }
        guard let sent = watch.numbers[device, default: .init()].sent else { return }
        watch.numbers[device, default: .init()].sent =
            numbers.filter { $0 < 1 << 63 }.reduce(sent, max)
    }

    // MARK: What comes

    mutating func came(_ frame: ReceivedFrame) {
        switch frame.body {
        case .welcome(let body): begin(body)
        case .syncRequest(let body): hear(of: body.head)
        case .mutationResult(let result): take(result)
        case .delta(let delta): judge(delta, request: frame.request)
        case .page(let page): judge(page.entries, request: frame.request)
        case .snapshotPage(let page):
            judge(page.entries + page.conversations.flatMap(\.entries), request: frame.request)
        default: break
        }
    }

    private mutating func begin(_ body: Welcome) {
        welcome = body
        epoch = body.epoch
        floor = body.mutationFloor
        clock = Int64(clamping: body.serverTimeMs) - Self.now
        // A device that was here before goes on where it was.
        count([body.mutationFloor] + (hello.sync?.mutations.map(\.number) ?? []) + early)
        if !areAllRead { watch.numbers[device, default: .init()].sent = nil }
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    private mutating func hear(of seq: UInt64) {
        if seq < head { saw(.head, "the head was at \(head) and is at \(seq)") }
        head = max(head, seq)
        if let feed { watch.feeds[feed, default: .init()].heard(of: seq) }
    }

    private func take(_ result: MutationResult) {
        let isKept = result.code == 0 || result.code >= 2_000
        let isNone =
            result.code == Code.malformed.rawValue || result.code == Code.numberTaken.rawValue
        guard isKept, !isNone else { return }
        let taken = watch.numbers[device]?.taken ?? 0
        watch.numbers[device, default: .init()].taken = max(taken, result.number)
    }

    private mutating func judge(_ delta: Delta, request: UInt16) {
        guard let from = delta.from, let to = delta.to, let welcome else { return }
        let asked = request == 0 ? nil : asked[request]
        // The SYNC went out as bytes: it may be a peek.
        guard request == 0 || asked != nil else { return }
        let isPeek = asked?.sync?.mode == .peek
        judgeReset(delta, from: from, isPeek: isPeek, isUnasked: request == 0)
        if from.epoch != epoch {
            epoch = from.epoch
            head = 0
        }
        judgeFloor(delta, asked)
        let isEmptyReset = delta.reset != nil && delta.entries.isEmpty
        if let asked, from.epoch == welcome.epoch, delta.head < asked.head {
            saw(.head, "head \(delta.head) in the answer to a SYNC sent at \(asked.head)")
        }
        hear(of: delta.head)
        if !isPeek, !isEmptyReset, delta.more ? to.seq >= delta.head : to.seq != delta.head {
            saw(.head, "to \(to.seq), head \(delta.head)\(delta.more ? ", and more" : "")")
        }
        guard let feed else { return }
        for entry in delta.entries {
            if entry.seq > delta.head || entry.seq <= from.seq || !isPeek && entry.seq > to.seq {
                saw(.head, "entry \(entry.seq) above \(from.seq) up to \(to.seq) of \(delta.head)")
            }
            if let what = watch.feeds[feed, default: .init()].add(entry) { saw(.feed, what) }
        }
        if !isPeek {
            watch.feeds[feed, default: .init()].covered(from: from.seq, to: to.seq)
        } else if !delta.more {
            watch.feeds[feed, default: .init()].covered(from: from.seq, to: delta.head)
        }
        if !delta.more { judgeUnread(delta, feed) }
        hasDelta = true
    }

    private func judgeReset(_ delta: Delta, from: Cursor, isPeek: Bool, isUnasked: Bool) {
        guard delta.reset != nil else { return }
        if from.seq != 0 { saw(.reset, "a reset from \(from.seq)") }
        if isPeek { saw(.reset, "a reset in the answer to a peek") }
        if isUnasked, hasDelta { saw(.reset, "a reset unasked, on from \(from.seq)") }
    }

    private mutating func judgeFloor(_ delta: Delta, _ asked: Asked?) {
        for result in delta.results { take(result) }
        let named = delta.mutationFloor
        guard hello.role == .app else { return }
        // What was taken while the page was read may be missing (MSG-12), but not what was before.
        // Of what came inside only what was taken, and nothing that was taken beside it.
        let last = delta.results.map(\.number).max() ?? 0
        let inside = min(last, watch.numbers[device]?.taken ?? 0)
        let least = max(floor, asked?.taken ?? 0, inside)
        if named < least { saw(.floor, "floor \(named), and \(least) was taken") }
        if let sent = watch.numbers[device, default: .init()].sent, named > sent {
            saw(.floor, "floor \(named), and no number above \(sent) was sent")
        }
        floor = max(floor, named)
    }

    private func judgeUnread(_ delta: Delta, _ feed: TrialWatch.Feed) {
        let now = UInt64(clamping: Self.now + clock)
        guard
            let count = watch.feeds[feed]?.unread(of: feed.user, head: delta.head, at: now),
            count != delta.unread
        else { return }
        saw(.unread, "unread \(delta.unread) at \(delta.head), where the feed comes to \(count)")
    }

    /// What is told as it is when it is sent: how far somebody got, and how many take part
    /// (HIS-8, MSG-38).
    private static func isOfNow(_ entry: Entry) -> Bool {
        switch entry.body {
        case .receipt: true
        case .conversationState(let state): state.participants > 0
        default: false
        }
    }

    private func judge(_ entries: [Entry], request: UInt16) {
        guard let feed, let ledger = watch.feeds[feed], let asked = asked[request] else { return }
        for entry in entries {
            let object = FeedObject(entry)
            if entry.version == 0 { saw(.history, "\(object.name) has no version") }
            let known = asked.versions[object] ?? 0
            if entry.version < known {
                saw(.history, "\(object.name) has version \(entry.version), the feed gave \(known)")
            }
            // In the user's language in a feed, as it was published here (MSG-55).
            guard hello.locale.isEmpty, !Self.isOfNow(entry), let same = ledger.newest(object),
                same.version == entry.version, same.body != entry.body
            else { continue }
            saw(.history, "\(object.name), version \(entry.version), is not as in the feed")
        }
    }
}

import APNsSimulator
import EventLoop
import FoundationEssentials

/// A defect that a replay puts in on its way to a device's store.
public struct ReplayDamage: Equatable, Sendable {
    public enum Kind: Sendable {
        /// The entry is not stored.
        case suppressed
        /// It is stored with another version than it was sent with.
        case corrupted
    }

    public var kind: Kind
    /// Which message entry, counted over all devices from 1.
    public var entry: Int

    public init(_ kind: Kind, entry: Int) {
        self.kind = kind
        self.entry = entry
    }
}

/// Which devices were compared with the server (DIGEST, Protocol/history.md), and how it ended.
struct DigestTally: Sendable {
    /// Comparisons under way at once.
    static let inFlightMax = 32
    /// An unanswered one is asked for again.
    static let answerTime: UInt64 = 5_000
    /// One that said nothing is asked for again after so long.
    static let pause: UInt64 = 300
    /// Without an answer that counts for so long, the rest is given up.
    static let patience: UInt64 = 40_000

    /// The last comparison that said something; by device.
    private(set) var equal: [Int: SimulatorEvent.DigestFacts] = [:]
    /// Devices found unequal at any time: one that repaired itself stays here.
    private(set) var unequal: Set<Int> = []
    private var remaining: [Int]?
    private var askedAt: [Int: UInt64] = [:]
    private var notBefore: [Int: UInt64] = [:]
    private var progressAt: UInt64 = 0

    init() {}

    var objects: UInt64 { equal.values.reduce(0) { $0 + $1.objects } }
    var entries: Int { equal.values.reduce(0) { $0 + $1.entries } }
    var messages: Int { equal.values.reduce(0) { $0 + $1.messages } }

    mutating func heard(
        _ facts: SimulatorEvent.DigestFacts, from device: Int, now: UInt64
    ) {
        if facts.isComparable, !facts.isEqual { unequal.insert(device) }
        // Before the end it came because the server asked; only a mismatch is kept.
        guard remaining != nil else { return }
        askedAt[device] = nil
        guard facts.isComparable else {
            notBefore[device] = now + Self.pause
            return
        }
        remaining?.removeAll { $0 == device }
        progressAt = now
        if facts.isEqual { equal[device] = facts }
    }

    /// The devices to ask now; `nil`: all have answered, or the rest is given up.
    mutating func next(devices: Int, now: UInt64) -> [Int]? {
        if remaining == nil {
            remaining = Array(0..<devices)
            progressAt = now
        }
        guard let remaining, !remaining.isEmpty, now - progressAt < Self.patience else {
            return nil
        }
        var asked: [Int] = []
        var inFlight = askedAt.values.count { now - $0 < Self.answerTime }
        for device in remaining where inFlight < Self.inFlightMax {
            if let at = askedAt[device], now - at < Self.answerTime { continue }
            if let at = notBefore[device], now < at { continue }
            askedAt[device] = now
            asked.append(device)
            inFlight += 1
        }
        return asked
    }
}

extension Replay {
    /// Has every device prove that it holds what the server holds; `true`: that is done.
    func compareDigests(_ now: UInt64) -> Bool {
        guard let asked = digests.next(devices: ledger.devices.count, now: now) else {
            return true
        }
        for device in asked { fleet?.checkDigest(device) }
        return false
    }

    /// What the servers counted of the same comparisons, then the end.
    func countAtServer() {
        var left = servers.apis.count
        for place in servers.apis {
            HTTPCall(loop: loop, place: place, method: "GET", path: "/metrics") {
                [unowned self] result in
                switch result {
                case .success(let answer):
                    let text = String(decoding: answer.body, as: UTF8.self)
                    self.report.serverDigestsEqual += Self.digests("equal", in: text)
                    self.report.serverDigestsUnequal += Self.digests("mismatch", in: text)
                case .failure(let error): self.report.failures.append("/metrics: \(error)")
                }
                left -= 1
                if left == 0 { self.loop.stop() }
            }
        }
    }

    private static func digests(_ result: String, in metrics: String) -> Int {
        let name = "rouse_digests_total{result=\"\(result)\"} "
        for line in metrics.split(separator: "\n") where line.hasPrefix(name) {
            return Int(line.dropFirst(name.count)) ?? 0
        }
        return 0
    }

    /// Every device must be equal, over replicas that are not empty.
    func judgeDigests(_ failures: inout [String]) {
        report.digestsEqual = digests.equal.count
        report.digestsUnequal = digests.unequal.count
        report.digestObjects = digests.objects
        report.entriesOnDevices = digests.entries
        report.messagesOnDevices = digests.messages
        if report.digestsEqual < report.devices {
            failures.append(
                "\(report.digestsEqual) of \(report.devices) devices proved that they hold what "
                    + "the server holds")
        }
        if !digests.unequal.isEmpty {
            failures.append("unequal to the server: devices \(digests.unequal.sorted().prefix(5))")
        }
        if report.serverDigestsUnequal > 0 {
            failures.append("the server counted \(report.serverDigestsUnequal) unequal digests")
        }
        for (name, count) in [
            ("users", report.held.users), ("devices", report.held.devices),
            ("conversations", report.held.conversations), ("messages", report.held.messages),
            ("entries", report.held.entries), ("objects compared", Int(report.digestObjects)),
            ("messages on devices", report.messagesOnDevices),
        ] where count == 0 {
            failures.append("no \(name): empty replicas prove nothing")
        }
        let differing = digests.equal.keys.sorted().filter { device in
            digests.equal[device]?.messages != (judged ?? ledger).devices[device].applied.count
        }
        if !differing.isEmpty {
            failures.append(
                "devices that hold another number of messages than came: \(differing.prefix(5))")
        }
    }
}

public import Model

/// What a replay saw, and the verdict on it: nothing lost, nothing doubled, nothing out of order.
///
/// A device must hold, once, every acknowledged message above the position it joined at, and every
/// message whose sending began after its joining was acknowledged (which does not trust the
/// server's word on that position).
public struct ReplayLedger: Sendable {
    struct Sent: Sendable {
        let sender: Int
        /// Counts the sender's messages in the order sent.
        let ordinal: Int
        let sentAt: UInt64
        var acknowledgedAt: UInt64?
        var position: UInt64?
    }

    struct Device: Sendable {
        /// The number of its user's first device, which sends what the user says.
        var user: Int
        var joinedPosition: UInt64?
        var addedAt: UInt64?
        /// Since when its app is open without a break; `nil`: it sleeps.
        var awakeSince: UInt64?
        /// Messages in the order applied.
        var applied: [Int] = []
        /// Those among them that its store told of, and nobody else yet.
        var found: Set<Int> = []
        var firstPosition: UInt64?
        var lastPosition: UInt64 = 0
        var lastOrdinals: [Int: Int] = [:]
    }

    private(set) var messages: [Sent] = []
    private var identifiers: [MessageID] = []
    private var indexes: [MessageID: Int] = [:]
    private(set) var devices: [Device] = []
    private var ordinals: [Int: Int] = [:]
    private(set) var outOfOrder = 0
    /// Applied on a device, but no line of this replay.
    private(set) var unknown = 0
    private var delays: [UInt64] = []
    /// Those among them of devices that were awake all the time.
    private var awakeDelays: [UInt64] = []
    /// How many of these there were when the longest was last taken.
    private var awakeDelaysBefore = 0
    /// The longest since then.
    private var longest = LongestDelay()
    public private(set) var acknowledged = 0
    public private(set) var refused = 0

    public init() {}

    /// - Parameter first: of the same user; `nil`: it is the first.
    public mutating func addDevice(of first: Int? = nil) -> Int {
        devices.append(Device(user: first ?? devices.count))
        return devices.count - 1
    }

    public mutating func opened(_ device: Int, at time: UInt64) {
        if devices[device].awakeSince == nil { devices[device].awakeSince = time }
    }

    public mutating func slept(_ device: Int) { devices[device].awakeSince = nil }

    /// The joining of a device's user was acknowledged.
    public mutating func added(_ device: Int, at time: UInt64) {
        if devices[device].addedAt == nil { devices[device].addedAt = time }
    }

    /// The device's own participant entry says where it joined.
    public mutating func joined(_ device: Int, position: UInt64) {
        devices[device].joinedPosition = position
    }

    public mutating func sent(_ message: MessageID, by sender: Int, at time: UInt64) {
        let ordinal = ordinals[sender, default: 0]
        ordinals[sender] = ordinal + 1
        indexes[message] = messages.count
        identifiers.append(message)
        messages.append(
            Sent(
                sender: sender, ordinal: ordinal, sentAt: time, acknowledgedAt: nil, position: nil))
    }

    /// The server answered; `position` 0: it refused.
    public mutating func answered(_ message: MessageID, position: UInt64, at time: UInt64) {
        guard let index = indexes[message], messages[index].acknowledgedAt == nil else { return }
        messages[index].acknowledgedAt = time
        if position > 0 {
            messages[index].position = position
            acknowledged += 1
        } else {
            refused += 1
        }
    }

    /// A device stored a message.
    public mutating func applied(
        _ device: Int, _ message: MessageID, position: UInt64, at time: UInt64
    ) {
        guard let index = indexes[message] else {
            unknown += 1
            return
        }
        let sent = messages[index]
        if position <= devices[device].lastPosition { outOfOrder += 1 }
        if devices[device].firstPosition == nil { devices[device].firstPosition = position }
        devices[device].lastPosition = max(devices[device].lastPosition, position)
        if let last = devices[device].lastOrdinals[sent.sender], sent.ordinal <= last {
            outOfOrder += 1
        }
        devices[device].lastOrdinals[sent.sender] = sent.ordinal
        if devices[device].found.remove(index) == nil { devices[device].applied.append(index) }
        guard sent.sender != devices[device].user else { return }
        let delay = time > sent.sentAt ? time - sent.sentAt : 0
        delays.append(delay)
        if let awake = devices[device].awakeSince, awake <= sent.sentAt,
            let added = devices[device].addedAt, added <= sent.sentAt
        {
            awakeDelays.append(delay)
            if delay > longest.milliseconds {
                let acknowledged = sent.acknowledgedAt.map { $0 - sent.sentAt }
                longest = LongestDelay(
                    milliseconds: delay, acknowledged: acknowledged, sender: sent.sender,
                    device: device)
            }
        }
    }

    /// A device holds a message that its app was killed over: nobody knows since when. One of its
    /// own was answered, too, and its app was gone before it could tell of that.
    mutating func found(
        _ device: Int, _ message: MessageID, position: UInt64, at time: UInt64
    ) {
        guard let index = indexes[message] else { return }
        if messages[index].sender == device {
            answered(message, position: position, at: time)
        }
        guard !devices[device].applied.contains(index) else { return }
        devices[device].firstPosition = min(devices[device].firstPosition ?? position, position)
        devices[device].found.insert(index)
        devices[device].applied.append(index)
    }

    /// The longest delay to a device that was open all the time, since this was last asked.
    mutating func takeLongestDelay() -> LongestDelay {
        let recent = awakeDelays[awakeDelaysBefore...].sorted()
        longest.median = recent.isEmpty ? 0 : recent[recent.count / 2]
        defer {
            longest = LongestDelay()
            awakeDelaysBefore = awakeDelays.count
        }
        return longest
    }

    struct LongestDelay: Sendable {
        var milliseconds: UInt64 = 0
        /// Of all of the time.
        var median: UInt64 = 0
        /// From the sending to the answer, if that was first.
        var acknowledged: UInt64?
        var sender = 0
        var device = 0

        /// For people.
        var text: String {
            let answer = acknowledged.map { "answered after \($0) ms" } ?? "not answered yet"
            return
                "median \(median) ms, longest \(milliseconds) ms from "
                + "device \(sender) to \(device), \(answer)"
        }
    }

    public var unacknowledged: Int { messages.count - acknowledged - refused }

    /// What is missing on each device now, and what is there twice.
    public func verdict() -> (lost: Int, duplicated: Int, missing: [Int]) {
        var lost = 0
        var doubled = 0
        var missing: [Int] = []
        for (number, device) in devices.enumerated() {
            var seen: Set<Int> = []
            for index in device.applied where !seen.insert(index).inserted { doubled += 1 }
            let absent = messages.indices.count { index in
                isOwed(messages[index], to: device) && !seen.contains(index)
            }
            if absent > 0 { missing.append(number) }
            lost += absent
        }
        return (lost, doubled, missing)
    }

    func user(of device: Int) -> Int { devices[device].user }

    /// Where the server put a message; `nil`: it has not answered.
    func position(of message: MessageID) -> UInt64? {
        indexes[message].flatMap { messages[$0].position }
    }

    /// Whether somebody else than the device's user has said it.
    func isOthers(_ message: MessageID, to device: Int) -> Bool {
        indexes[message].map { messages[$0].sender != devices[device].user } ?? false
    }

    /// Messages of others that the device holds.
    func others(on device: Int) -> Set<MessageID> {
        Set(
            devices[device].applied.filter { messages[$0].sender != devices[device].user }
                .map { identifiers[$0] })
    }

    private func isOwed(_ message: Sent, to device: Device) -> Bool {
        guard let position = message.position else { return false }
        if let joined = device.joinedPosition, position > joined { return true }
        // From the first message it was given on there may be no gap.
        if let first = device.firstPosition, position > first { return true }
        if let added = device.addedAt, message.sentAt > added { return true }
        return false
    }

    /// Milliseconds from sending to being applied on another device, at these shares of all; with
    /// `awake` only where the device was open from the sending on, so that no sleep counts.
    public func delays(atShares shares: [Double], awake: Bool = false) -> [UInt64] {
        let sorted = (awake ? awakeDelays : delays).sorted()
        return shares.map { share in
            sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
        }
    }

    public var deliveries: Int { devices.reduce(0) { $0 + $1.applied.count } }
}

import FoundationEssentials

/// What a replay came to.
public struct ReplayReport: Codable, Equatable, Sendable {
    /// What was open when the server was killed.
    public struct Kill: Codable, Equatable, Sendable {
        public var line = 0
        public var unansweredMutations = 0
        public var wakesInFlight = 0
        public var graceRows = 0
        /// Milliseconds until it served again.
        public var downMilliseconds: UInt64 = 0

        enum CodingKeys: String, CodingKey {
            case line
            case unansweredMutations = "unanswered_mutations"
            case wakesInFlight = "wakes_in_flight"
            case graceRows = "grace_rows"
            case downMilliseconds = "down_milliseconds"
        }
    }

    /// What a fault came to, judged when every device was awake and in step again.
    public struct Fault: Codable, Equatable, Sendable {
        public var name = ""
        /// Lines sent from a little before it to a little after it.
        public var lines = 0
        /// Milliseconds until the servers were whole again.
        public var milliseconds: UInt64 = 0
        /// The longest from sending to being applied, on devices that were open all the time.
        public var longestMilliseconds: UInt64 = 0
        public var lost = 0
        public var duplicated = 0
        public var outOfOrder = 0
        public var screensWrong = 0
        public var iconsWrong = 0

        enum CodingKeys: String, CodingKey {
            case name, lines, milliseconds, lost, duplicated
            case longestMilliseconds = "longest_milliseconds"
            case outOfOrder = "out_of_order"
            case screensWrong = "screens_wrong"
            case iconsWrong = "icons_wrong"
        }

        /// For people.
        var text: String {
            "\(lines) lines, whole after \(milliseconds) ms, longest delay "
                + "\(longestMilliseconds) ms; lost \(lost), doubled \(duplicated), out of order "
                + "\(outOfOrder), screens wrong \(screensWrong), icons wrong \(iconsWrong)"
        }
    }

    /// Objects in the server's store.
    public struct Held: Codable, Equatable, Sendable {
        public var users = 0
        public var devices = 0
        public var conversations = 0
        public var messages = 0
        /// Of all feeds.
        public var entries = 0

        public init() {}
    }

    public var log = ""
    public var factor = 0.0
    public var seed: UInt64 = 0
    public var isAwake = false
    /// The app's policy, compressed like the log's time.
    public var graceSeconds: UInt64 = 0
    public var budgetWindowSeconds: UInt64 = 0
    public var budgetSpacingSeconds: UInt64 = 0
    public var devices = 0
    public var messages = 0
    public var acknowledged = 0
    public var unacknowledged = 0
    public var refused = 0
    public var deliveries = 0
    public var syncRequests = 0
    public var deltas = 0
    public var resets = 0
    public var silentWakes = 0
    public var demotions = 0
    public var alerts = 0
    public var badges = 0
    public var recoveries = 0
    public var lost = 0
    public var duplicated = 0
    public var outOfOrder = 0
    public var p50Milliseconds: UInt64 = 0
    public var p99Milliseconds: UInt64 = 0
    /// The same where the device was open from the sending on.
    public var awakeP50Milliseconds: UInt64 = 0
    public var awakeP99Milliseconds: UInt64 = 0
    /// Devices whose comparison with the server at the end was equal, and unequal at any time.
    public var digestsEqual = 0
    public var digestsUnequal = 0
    /// Phones whose screen was seen at the end; those with a notification that should not stand
    /// there, or twice; those whose icon is not the number of unread messages.
    public var screensJudged = 0
    public var screensWrong = 0
    public var iconsWrong = 0
    /// Notifications that stood at the end and were of nothing unread.
    public var staleNotifications = 0
    /// Times that a phone told of a message again.
    public var shownTwice = 0
    /// Messages that a wake brought and had not told of when it was over.
    public var untold = 0
    /// Times that a user read something.
    public var reads = 0
    /// Apps that the system killed in the middle of a wake.
    public var phoneKills = 0
    /// Objects in the sums of the equal ones.
    public var digestObjects: UInt64 = 0
    /// Comparisons as the server counted them since its last start.
    public var serverDigestsEqual = 0
    public var serverDigestsUnequal = 0
    /// What the server holds at the end.
    public var held = Held()
    /// What all devices together hold at the end: objects of every kind, and the messages.
    public var entriesOnDevices = 0
    public var messagesOnDevices = 0
    public var seconds = 0.0
    public var kills: [Kill] = []
    public var faults: [Fault] = []
    /// What failed, in words; empty: the run is good.
    public var failures: [String] = []

    enum CodingKeys: String, CodingKey {
        case log, factor, seed, devices, messages, acknowledged, unacknowledged, refused
        case deliveries, deltas, resets, demotions, alerts, recoveries, lost, duplicated, seconds
        case kills, faults, failures, badges, held, untold, reads
        case screensJudged = "screens_judged"
        case screensWrong = "screens_wrong"
        case iconsWrong = "icons_wrong"
        case staleNotifications = "stale_notifications"
        case shownTwice = "shown_twice"
        case phoneKills = "phone_kills"
        case digestsEqual = "digests_equal"
        case digestsUnequal = "digests_unequal"
        case digestObjects = "digest_objects"
        case serverDigestsEqual = "server_digests_equal"
        case serverDigestsUnequal = "server_digests_unequal"
        case entriesOnDevices = "entries_on_devices"
        case messagesOnDevices = "messages_on_devices"
        case graceSeconds = "grace_seconds"
        case budgetWindowSeconds = "budget_window_seconds"
        case budgetSpacingSeconds = "budget_spacing_seconds"
        case isAwake = "awake"
        case syncRequests = "sync_requests"
        case silentWakes = "silent_wakes"
        case outOfOrder = "out_of_order"
        case p50Milliseconds = "p50_milliseconds"
        case p99Milliseconds = "p99_milliseconds"
        case awakeP50Milliseconds = "awake_p50_milliseconds"
        case awakeP99Milliseconds = "awake_p99_milliseconds"
    }

    public init() {}

    public var isGood: Bool { failures.isEmpty }

    /// One JSON object on one line.
    public var json: String { reportLine }

    /// For people.
    public var text: String {
        func row(_ name: String, _ value: some CustomStringConvertible) -> String {
            "  " + name + String(repeating: " ", count: max(1, 22 - name.count)) + "\(value)\n"
        }
        var text = "\nreplay of \(log), factor \(factor), seed \(seed)"
        text += isAwake ? ", nobody sleeps\n" : "\n"
        text += row("devices", devices) + row("messages", messages)
        text += row("acknowledged", acknowledged) + row("deliveries", deliveries)
        text += row("sync-requests", syncRequests) + row("deltas", deltas)
        if !isAwake {
            text += row("silent wakes", silentWakes) + row("demotions", demotions)
            text += row("alerts", alerts) + row("badge pushes", badges)
            text += row("recoveries", recoveries)
            text += row(
                "policy",
                "grace \(graceSeconds) s, 3 silent pushes in \(budgetWindowSeconds) s, "
                    + "\(budgetSpacingSeconds) s apart")
        }
        text += row("lost", lost) + row("duplicated", duplicated)
        text += row("out of order", outOfOrder)
        text += row(
            "digests equal",
            "\(digestsEqual) of \(devices), over \(digestObjects) objects; unequal "
                + "\(digestsUnequal); the server counted \(serverDigestsEqual) equal, "
                + "\(serverDigestsUnequal) unequal")
        if !isAwake {
            text += row(
                "screens",
                "\(screensJudged) seen after \(reads) readings and \(phoneKills) killed apps: "
                    + "\(screensWrong) wrong, \(staleNotifications) notifications stale, "
                    + "\(iconsWrong) icons wrong")
            text += row(
                "told", "\(shownTwice) messages twice, \(untold) not before a wake was over")
        }
        text += row(
            "the server holds",
            "\(held.users) users, \(held.devices) devices, \(held.conversations) conversations, "
                + "\(held.messages) messages, \(held.entries) entries")
        text += row(
            "the devices hold", "\(messagesOnDevices) messages, \(entriesOnDevices) objects")
        text += row("send to applied", "p50 \(p50Milliseconds) ms, p99 \(p99Milliseconds) ms")
        if !isAwake {
            text += row(
                "to open apps", "p50 \(awakeP50Milliseconds) ms, p99 \(awakeP99Milliseconds) ms")
        }
        text += row("duration", "\((seconds * 10).rounded() / 10) s")
        for (number, kill) in kills.enumerated() {
            text += row(
                "kill \(number + 1)",
                "at line \(kill.line): \(kill.unansweredMutations) unanswered mutations, "
                    + "\(kill.wakesInFlight) wakes in flight, \(kill.graceRows) in grace; "
                    + "back after \(kill.downMilliseconds) ms")
        }
        for fault in faults { text += row(fault.name, fault.text) }
        for failure in failures { text += "  FAILED: \(failure)\n" }
        if failures.isEmpty {
            text += "  nothing lost, nothing doubled, everything in order, all replicas equal"
            text += isAwake ? "\n" : ", all screens right\n"
        }
        return text
    }
}

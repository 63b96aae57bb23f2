import AppLife
import Model

/// What each phone showed while a log was replayed, in the order in which it happened: nobody is
/// told twice of a message, and a wake that ends has told of all that it brought.
struct ScreenWatch: Sendable {
    private struct Device: Sendable {
        var isInFront = false
        /// A first sync and a reset tell of nothing (PSH-8).
        var isResetting = false
        /// Came while nobody saw the app, and was not shown.
        var dark: [MessageID: UInt64] = [:]
        var shown: Set<MessageID> = []
        /// An alert tells of those below it too (PSH-4).
        var alerted: Set<MessageID> = []
        /// The last things that happened to it.
        var history: [String] = []
    }

    private var devices: [Int: Device] = [:]
    private var positions: [MessageID: UInt64] = [:]
    private(set) var shownTwice = 0
    /// Messages that a wake brought and had not told of when the app said that it was done.
    private(set) var untold = 0
    /// The first of what is wrong, in words.
    private(set) var details: [String] = []

    private static let detailsMax = 5
    private static let historyMax = 100

    mutating func state(_ device: Int, isInFront: Bool, _ state: String = "") {
        happened(device, state)
        devices[device, default: Device()].isInFront = isInFront
        // In front its user sees what is there.
        if isInFront { devices[device]?.dark = [:] }
    }

    mutating func reset(_ device: Int) {
        happened(device, "reset")
        devices[device, default: Device()].isResetting = true
    }

    /// A message of somebody else is on the device.
    ///
    /// - Parameter alerted: the server says that the device showed it already: for the history.
    mutating func applied(
        _ device: Int, _ message: MessageID, position: UInt64, alerted: Bool = false
    ) {
        positions[message] = position
        happened(device, "applied \(position)\(alerted ? " (alerted)" : "")")
        let now = devices[device, default: Device()]
        guard !now.isInFront, !now.isResetting, !now.shown.contains(message) else { return }
        devices[device]?.dark[message] = position
    }

    /// - Parameters:
    ///   - isLocal: the app did, and not an alert.
    ///   - isQuiet: it took a place on the screen without a sound (PSH-6), or that of the same
    ///     message: the person hears of it once, and sees it stand there once.
    mutating func shown(_ device: Int, _ message: MessageID, isLocal: Bool, isQuiet: Bool) {
        happened(
            device,
            "\(isLocal ? "shown" : "alerted") \(positions[message] ?? 0)"
                + (isQuiet ? " quietly" : ""))
        var now = devices[device, default: Device()]
        let isNew = now.shown.insert(message).inserted
        now.dark[message] = nil
        if !isLocal { now.alerted.insert(message) }
        devices[device] = now
        guard !isNew, !isQuiet else { return }
        shownTwice += 1
        note(device, "showed \(message) again")
    }

    /// The app called the system's handler.
    ///
    /// - Parameters:
    ///   - result: what it told the system (`FetchResult`).
    ///   - open: handlers that it has still to call: what this one failed to tell, the wake that
    ///     goes on may tell, and is judged by.
    ///   - isRead: whether the device's user has read a position by now.
    mutating func completed(
        _ device: Int, _ result: String = "", open: Int = 0, isRead: (UInt64) -> Bool
    ) {
        happened(device, result.isEmpty ? "done" : "done (\(result), \(open) open)")
        let isFailed = result == FetchResult.failed.rawValue
        guard !isFailed || open == 0, var now = devices[device] else { return }
        // One that did not come to its end goes on in the next wake, and tells of nothing there.
        if !isFailed { now.isResetting = false }
        // An alert may come before its message's position is known here.
        let alerted = now.alerted.compactMap { positions[$0] }.max() ?? 0
        let missing = now.dark.filter { $0.value > alerted && !isRead($0.value) }
        now.dark = [:]
        devices[device] = now
        guard let first = missing.values.min() else { return }
        untold += missing.count
        note(device, "was done and had not told of \(missing.count) from \(first) on")
    }

    /// The server took a message at a position.
    mutating func placed(_ message: MessageID, at position: UInt64) {
        positions[message] = position
    }

    private mutating func happened(_ device: Int, _ what: String) {
        guard !what.isEmpty else { return }
        devices[device, default: Device()].history.append(what)
        if devices[device, default: Device()].history.count > 2 * Self.historyMax {
            devices[device]?.history.removeFirst(Self.historyMax)
        }
    }

    private mutating func note(_ device: Int, _ words: String) {
        guard details.count < Self.detailsMax else { return }
        let history = devices[device]?.history.suffix(Self.historyMax).joined(separator: ", ")
        details.append("device \(device) \(words): \(history ?? "")")
    }
}

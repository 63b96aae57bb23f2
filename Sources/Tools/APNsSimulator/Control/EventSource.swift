/// Where the control socket's subscribers get their events from, and what waits for them.
struct EventSource {
    /// Events that the log keeps at most.
    var limit = 0
    /// A subscriber that is to miss nothing and takes nothing for so long, in milliseconds, while
    /// the devices wait for it, is given up.
    var patience: UInt64 = 60_000
    /// The number of the newest event.
    var head: () -> UInt64 = { 0 }
    /// Up to so many events above a number, and how many of those wanted are gone.
    var events: (UInt64, Int) -> (events: ArraySlice<SimulatorEvent>, lost: UInt64) = { _, _ in
        ([], 0)
    }
    /// Lets whatever makes events in large numbers wait, or go on.
    var hold: (Bool) -> Void = { _ in }
}

/// What a subscriber asked for, and how far it has been served.
struct Subscription {
    /// Messages in one line at most.
    static let batchMax = 1_000

    /// `nil`: all kinds.
    let kinds: Set<SimulatorEvent.Kind>?
    /// It gets every event it wants, or the connection ends.
    let isLossless: Bool
    /// `applied` comes in batches.
    let isCompact: Bool
    /// The number of the last event looked at.
    private(set) var cursor: UInt64
    /// Events gone that no line has told of yet.
    private var untold: UInt64 = 0

    init(_ request: ControlRequest) {
        kinds = request.kinds.map { Set($0) }
        isLossless = request.lossless ?? false
        isCompact = request.compact ?? false
        cursor = request.after ?? 0
    }

    /// The lines for some events, the next after the cursor; so many before them are gone.
    mutating func lines(_ events: ArraySlice<SimulatorEvent>, lost: UInt64) -> [ControlResponse] {
        var lines: [ControlResponse] = []
        var batch = AppliedBatch(conversation: "")
        untold += lost
        for index in events.indices {
            let kind = events[index].kind
            guard kinds?.contains(kind) ?? true else { continue }
            if isCompact, kind == .applied {
                for message in events[index].messages ?? [] {
                    if batch.conversation != message.conversation || batch.count >= Self.batchMax {
                        end(&batch, &lines)
                        batch.conversation = message.conversation
                    }
                    batch.append(message, events[index])
                }
            } else {
                end(&batch, &lines)
                var line = ControlResponse()
                line.event = events[index]
                lines.append(line)
            }
        }
        end(&batch, &lines)
        cursor = events.last?.n ?? cursor
        if untold > 0, !lines.isEmpty {
            lines[0].lost = untold
            untold = 0
        }
        return lines
    }

    private func end(_ batch: inout AppliedBatch, _ lines: inout [ControlResponse]) {
        guard batch.count > 0 else { return }
        var line = ControlResponse()
        line.applied = batch
        lines.append(line)
        batch = AppliedBatch(conversation: batch.conversation)
    }
}

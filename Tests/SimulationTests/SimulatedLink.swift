import Model

/// One TCP connection between a device and the server: two streams of bytes, in order, in pieces
/// cut anywhere, late by chance. It can be cut, or fall silent so that neither side notices.
final class SimulatedLink {
    enum End { case device, server }

    /// What an end is told.
    struct Handlers {
        var received: ([UInt8]) throws -> Void
        var closed: () throws -> Void
    }

    let number: UInt64
    private unowned let simulation: any SimulatedWorld
    private var handlers: [End: Handlers] = [:]
    private var arrivals: [End: Instant] = [:]
    /// Ends that hear nothing any more.
    private var deaf: Set<End> = []
    /// Nothing arrives, nobody knows.
    private(set) var isSilent = false
    /// Bytes that arrived at the device: what its TCP took.
    private(set) var takenByDevice: UInt64 = 0

    init(_ number: UInt64, _ simulation: any SimulatedWorld) {
        self.number = number
        self.simulation = simulation
    }

    func attach(_ end: End, _ handlers: Handlers) { self.handlers[end] = handlers }

    private func arrival(at end: End) -> Instant {
        let slowest: Milliseconds =
            simulation.isCalm ? 40 : simulation.chance.once(in: 40) ? 9_000 : 120
        let due = simulation.clock.now + 1 + simulation.chance.upTo(slowest)
        let moment = max(due, arrivals[end] ?? due)
        arrivals[end] = moment
        return moment
    }

    func send(_ bytes: [UInt8], to end: End) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let most = simulation.chance.once(in: 3) ? min(rest.count, 7) : rest.count
            let count = Int.random(in: 1...most, using: &simulation.chance)
            let piece = Array(rest.prefix(count))
            rest = rest.dropFirst(count)
            simulation.clock.at(arrival(at: end)) { [weak self] in
                guard let self, !self.isSilent, !self.deaf.contains(end) else { return }
                if end == .device { self.takenByDevice += UInt64(piece.count) }
                try self.handlers[end]?.received(piece)
            }
        }
    }

    /// An end closes in order: what it sent arrives first.
    func close(from end: End) {
        deaf.insert(end)
        let other: End = end == .device ? .server : .device
        simulation.clock.at(arrival(at: other)) { [weak self] in
            guard let self, !self.isSilent else { return }
            try self.end(other)
        }
    }

    /// The network breaks it: what is on its way is lost. Both ends hear of it, each when it does.
    func cut() {
        simulation.reached.count("a link cut")
        let was = isSilent
        isSilent = true
        for end in [End.device, .server] {
            // A side that never learns of it has its own deadlines.
            if was || simulation.chance.once(in: 4) { continue }
            simulation.clock.after(simulation.chance.upTo(3_000)) { [weak self] in
                try self?.end(end)
            }
        }
    }

    func fallSilent() {
        simulation.reached.count("a link half open")
        isSilent = true
    }

    private func end(_ end: End) throws {
        guard !deaf.contains(end) else { return }
        deaf.insert(end)
        try handlers[end]?.closed()
    }

    /// The process at this end is gone, and its sockets with it.
    func abandon(_ end: End) {
        close(from: end)
    }
}

import EventLoop

/// When publishes begin.
enum Arrivals: Equatable, Sendable {
    /// This number of publishes is always under way.
    case closed(inFlight: Int)
    /// This number of publishes begins each second, evenly spaced, whatever became of those
    /// before.
    case open(perSecond: Int)
}

/// One run: publishes to random devices for some seconds, each followed until it is answered and
/// the device has it. Loop-confined.
final class PublishDrive {
    struct Outcome {
        /// Nanoseconds from the moment it was due.
        var answers: [UInt64] = []
        var deliveries: [UInt64] = []
        /// For each message to a group, the time until the last of its devices had it.
        var lasts: [UInt64] = []
        /// Publishes answered and delivered; of a group, deliveries. Of devices that come back, the
        /// entries they lacked; of idle ones, seconds of each.
        var done = 0
        /// From the first one's moment to the last one's end.
        var nanoseconds: UInt64 = 0
        /// Not all were answered and delivered in time.
        var isCut = false
        var failure: String?
    }

    /// How long those under way are waited for at the end, in milliseconds.
    static let patience: UInt64 = 60_000
    static let textBytes = 100

    struct Flight {
        let due: UInt64
        var isAnswered = false
        /// Devices that do not have it yet.
        private(set) var missing: Set<Int>

        init(due: UInt64, to recipient: Recipient) {
            self.due = due
            switch recipient {
            case .device(let device): missing = [device]
            case .group(let count): missing = Set(0..<count)
            }
        }

        /// - Returns: whether the device did not have it before.
        mutating func arrived(at device: Int) -> Bool { missing.remove(device) != nil }
    }

    private let loop: Loop
    private let pool: BackendPool
    private let target: any PublishTarget
    private let devices: Int
    private let group: Int?
    private let arrivals: Arrivals
    private let seconds: Double
    private let firstNumber: UInt64
    private var random: SeededRandom
    private var flights: [UInt64: Flight] = [:]
    private var outcome = Outcome()
    private var started: UInt64 = 0
    private var begun = 0
    private var isEnding = false
    private var metronome: Metronome?
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - group: publish to this many devices at once, the first; `nil`: to a random one.
    ///   - firstNumber: above that of any publish of an earlier run.
    init(
        loop: Loop, pool: BackendPool, target: any PublishTarget, devices: Int, group: Int?,
        arrivals: Arrivals, seconds: Double, firstNumber: UInt64
    ) {
        self.loop = loop
        self.pool = pool
        self.target = target
        self.devices = devices
        self.group = group
        self.arrivals = arrivals
        self.seconds = seconds
        self.firstNumber = firstNumber
        random = SeededRandom(seed: firstNumber)
    }

    /// Runs the loop until all is done.
    ///
    /// - Returns: what came of it, and how many publishes began.
    func run() throws -> (outcome: Outcome, begun: UInt64) {
        loop.updateNow()
        defer {
            timer?.close()
            metronome?.close()
        }
        timer = loop.timer { [unowned self] in self.giveUp() }
        timer?.start(afterMilliseconds: UInt64(seconds * 1_000) + Self.patience)
        started = monotonicNanoseconds()
        switch arrivals {
        case .closed(let inFlight):
            for _ in 0..<inFlight { publish(due: monotonicNanoseconds()) }
        case .open(let rate):
            let gap = 1_000_000_000 / UInt64(rate)
            let total = max(1, Int(seconds * Double(rate)))
            metronome = try Metronome(
                loop: loop, start: started, nanoseconds: gap, beats: total
            ) { [unowned self] in self.beat(gap: gap, total: total) }
        }
        loop.run()
        outcome.nanoseconds = monotonicNanoseconds() - started
        return (outcome, UInt64(begun))
    }

    private func beat(gap: UInt64, total: Int) {
        while !isEnding, begun < total {
            let due = started + UInt64(begun) * gap
            guard due <= monotonicNanoseconds() else { return }
            publish(due: due)
        }
        isEnding = true
        endIfDone()
    }

    private func publish(due: UInt64) {
        let number = firstNumber + UInt64(begun)
        begun += 1
        let recipient =
            group.map { Recipient.group($0) }
            ?? .device(Int.random(in: 0..<devices, using: &random))
        flights[number] = Flight(due: due, to: recipient)
        let request = target.publish(Self.text(number), number: number, to: recipient)
        pool.send(request) { [weak self] result in self?.answered(number, result) }
    }

    private func answered(_ number: UInt64, _ result: Result<HTTPCall.Answer, ScenarioError>) {
        guard let flight = flights[number] else { return }
        switch result {
        case .success(let answer) where answer.status < 300:
            outcome.answers.append(monotonicNanoseconds() - flight.due)
            flights[number]?.isAnswered = true
            settle(number)
        case .success(let answer):
            fail("a publish: \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
        case .failure(let error): fail("a publish: \(error)")
        }
    }

    /// A device has a message; those of an earlier run are none of this one's.
    func delivered(_ text: [UInt8], to device: Int) {
        guard let number = Self.number(text), flights[number]?.arrived(at: device) == true,
            let flight = flights[number]
        else { return }
        let took = monotonicNanoseconds() - flight.due
        outcome.deliveries.append(took)
        if group != nil, flight.missing.isEmpty { outcome.lasts.append(took) }
        settle(number)
    }

    private func settle(_ number: UInt64) {
        guard let flight = flights[number], flight.isAnswered, flight.missing.isEmpty
        else { return }
        flights[number] = nil
        outcome.done += group ?? 1
        if case .closed = arrivals {
            let now = monotonicNanoseconds()
            if Double(now - started) < seconds * 1e9 {
                publish(due: now)
            } else {
                isEnding = true
            }
        }
        endIfDone()
    }

    private func endIfDone() {
        if isEnding, flights.isEmpty { loop.stop() }
    }

    private func giveUp() {
        outcome.isCut = true
        isEnding = true
        loop.stop()
    }

    func fail(_ why: String) {
        if outcome.failure == nil { outcome.failure = why }
        isEnding = true
        loop.stop()
    }

    // MARK: - The text

    /// Its number, and what makes it as long as a message.
    static func text(_ number: UInt64) -> String {
        let digits = "#\(number) "
        return digits + String(repeating: "A", count: max(0, textBytes - digits.utf8.count))
    }

    static func number(_ text: [UInt8]) -> UInt64? {
        guard let mark = text.firstIndex(of: UInt8(ascii: "#")) else { return nil }
        var number: UInt64?
        for byte in text[(mark + 1)...].prefix(19) {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { break }
            number = (number ?? 0) * 10 + UInt64(byte - UInt8(ascii: "0"))
        }
        return number
    }
}

import EventLoop
import FoundationEssentials

/// Something that is done to the servers while a log is replayed.
struct ReplayFault: Sendable {
    let name: String
    /// Returns when the servers are whole again. Called on a thread of its own.
    let carryOut: @Sendable (FaultThread) throws -> Void
}

/// When everything has arrived.
struct Settling {
    var hasBegun = false
    var lastDelivery: UInt64 = 0
    var lastDeliveries = -1
    var lastVerdict: UInt64 = 0
    /// Since when nothing is missing.
    var since: UInt64?
}

/// How far a replay is on its way through faults: a few lines, the fault while lines go on, a few
/// lines more, and then it is judged what the devices have.
struct FaultCourse {
    enum Stage {
        case before
        case during(FaultThread)
        case after
        case judging
        case looking
    }

    /// Lines before a fault and after it.
    static let margin = 5
    /// Lines before the first fault, so that there are devices, some of them asleep.
    static let warmUp = 40

    /// Those that are left; the first is the one under way.
    var faults: [ReplayFault]
    var stage = Stage.before
    /// Lines sent when the stage began.
    var linesBefore: Int
    var current = ReplayReport.Fault()
    /// Of all faults until now.
    var lost = 0
    var duplicated = 0
    var outOfOrder = 0

    init(_ faults: [ReplayFault]) {
        self.faults = faults
        linesBefore = Self.warmUp - Self.margin
    }
}

/// Carries a fault out beside the loop.
final class FaultThread: Sendable {
    private let lock = Lock()
    // Both guarded by `lock`.
    private nonisolated(unsafe) var result: Result<UInt64, any Error>?
    private nonisolated(unsafe) var acknowledged = 0

    /// Milliseconds that it took; `nil`: it is not over.
    var outcome: Result<UInt64, any Error>? { lock.withLock { result } }

    init(_ fault: ReplayFault) {
        let started = SystemClock.monotonicMilliseconds()
        WorkThread.start("fault") { [self] in
            let ended = Result {
                try fault.carryOut(self)
                return SystemClock.monotonicMilliseconds() - started
            }
            lock.withLock { result = ended }
        }
    }

    /// The replay tells how many of its lines were acknowledged.
    func note(acknowledged count: Int) { lock.withLock { acknowledged = count } }

    /// For the fault: returns when so many more lines were acknowledged.
    func awaitLines(_ count: Int) throws {
        let end = lock.withLock { acknowledged } + count
        let limit = SystemClock.monotonicMilliseconds() + Self.patience
        while lock.withLock({ acknowledged }) < end {
            guard SystemClock.monotonicMilliseconds() < limit else {
                throw ScenarioError("no \(count) lines were acknowledged in time")
            }
            WorkThread.sleep(milliseconds: 20)
        }
    }

    /// Milliseconds.
    private static let patience: UInt64 = 60_000
}

extension Replay {
    /// One step on the way through the faults.
    func goThroughFaults(_ now: UInt64) {
        guard let course, let fault = course.faults.first else { return }
        switch course.stage {
        case .before:
            guard goOn(now, course) else { return }
            self.course?.current.name = fault.name
            options.remark("\(fault.name) ...")
            self.course?.stage = .during(FaultThread(fault))
        case .during(let thread):
            play(now)
            thread.note(acknowledged: ledger.acknowledged)
            switch thread.outcome {
            case nil: break
            case .success(let time):
                self.course?.current.milliseconds = time
                self.course?.linesBefore = ledger.messages.count
                self.course?.stage = .after
            case .failure(let error): fail("\(fault.name): \(error)")
            }
        case .after:
            if goOn(now, course) { self.course?.stage = .judging }
        case .judging:
            lastTick = now
            guard isSettled(now) else { return }
            self.course?.stage = .looking
            lookAtScreens { [unowned self] tally in self.judge(tally) }
        case .looking: lastTick = now
        }
    }

    /// - Returns: whether enough lines were sent.
    private func goOn(_ now: UInt64, _ course: FaultCourse) -> Bool {
        guard nextEvent < log.events.count else {
            fail("the log is at its end, \(course.faults.count) faults before the last")
            return false
        }
        play(now)
        return ledger.messages.count >= course.linesBefore + FaultCourse.margin
    }

    private func judge(_ tally: ScreenTally) {
        guard var course else { return }
        let verdict = ledger.verdict()
        var fault = course.current
        fault.lines = ledger.messages.count - report.faults.reduce(0) { $0 + $1.lines }
        fault.lost = verdict.lost - course.lost
        fault.duplicated = verdict.duplicated - course.duplicated
        fault.outOfOrder = ledger.outOfOrder - course.outOfOrder
        fault.screensWrong = tally.wrong.count
        fault.iconsWrong = tally.wrongIcons.count
        let longest = ledger.takeLongestDelay()
        fault.longestMilliseconds = longest.milliseconds
        (course.lost, course.duplicated) = (verdict.lost, verdict.duplicated)
        course.outOfOrder = ledger.outOfOrder
        course.current = ReplayReport.Fault()
        course.linesBefore = ledger.messages.count
        course.faults.removeFirst()
        course.stage = .before
        report.faults.append(fault)
        options.remark("\(fault.name): \(fault.text); \(longest.text)")
        report.failures += tally.details.map { "\(fault.name): \($0)" }
        if tally.judged < ledger.devices.count {
            report.failures.append(
                "\(fault.name): \(tally.judged) of \(ledger.devices.count) screens were seen")
        }
        unsettle()
        self.course = course.faults.isEmpty ? nil : course
    }
}

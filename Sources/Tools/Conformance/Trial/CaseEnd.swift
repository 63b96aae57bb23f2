/// How a case ends other than by passing.
enum CaseEnd: Error, Equatable {
    /// The server breaks the clause.
    case failed(String)
    /// The case could not be carried through, so nothing is known.
    case inconclusive(String)
    /// The case does not apply to this server, or lacks what it needs.
    case skipped(String)
}

/// Fails the case unless it holds.
func require(_ holds: Bool, _ what: @autoclosure () -> String) throws {
    guard holds else { throw CaseEnd.failed(what()) }
}

/// Fails the case unless both are the same.
func requireEqual<Value: Equatable>(
    _ found: Value, _ expected: Value, _ what: @autoclosure () -> String
) throws {
    guard found == expected else {
        throw CaseEnd.failed("\(what()): \(expected) was expected, it is \(found)")
    }
}

/// Steps that a case stands on but does not judge: a failure in them proves nothing.
@discardableResult
func settingUp<Value>(_ what: String, _ body: () throws -> Value) throws -> Value {
    do {
        return try body()
    } catch CaseEnd.failed(let reason) {
        throw CaseEnd.inconclusive("\(what): \(reason)")
    } catch let end as CaseEnd {
        throw end
    } catch {
        throw CaseEnd.inconclusive("\(what): \(error)")
    }
}

/// The time a case has, as a whole and for one step.
final class CaseClock {
    let end: Moment
    let patience: Duration

    init(seconds: Int, patience: Duration) {
        end = ContinuousClock.now.advanced(by: .seconds(seconds))
        self.patience = patience
    }

    /// When a step that must happen has not happened.
    var stepDeadline: Moment { min(end, ContinuousClock.now.advanced(by: patience)) }

    func deadline(within time: Duration?) throws -> Moment {
        try check()
        guard let time else { return stepDeadline }
        return min(end, ContinuousClock.now.advanced(by: time))
    }

    func check() throws {
        guard ContinuousClock.now < end else {
            throw CaseEnd.inconclusive("the case's time is over")
        }
    }
}

/// What was sent and came, for people who ask why a case failed.
final class Transcript {
    static let linesMax = 60
    private(set) var lines: [String] = []
    private let start = ContinuousClock.now

    func add(_ who: String, _ line: String) {
        let (seconds, attoseconds) = start.duration(to: .now).components
        let hundredths = attoseconds / 10_000_000_000_000_000
        lines.append("\(seconds).\(hundredths < 10 ? "0" : "")\(hundredths) \(who) \(line)")
        if lines.count > Self.linesMax { lines.removeFirst() }
    }
}

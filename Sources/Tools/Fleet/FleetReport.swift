import FoundationEssentials
import Glibc
import Model
import Wake

/// What came of a run.
public struct FleetReport: Codable, Equatable, Sendable {
    /// A policy as the core has it; durations in seconds.
    public struct Policy: Codable, Equatable, Sendable {
        public let graceSeconds: Double
        public let silentBudget: UInt64
        public let silentWindowSeconds: Double
        public let silentSpacingSeconds: Double
        public let alertExpirationSeconds: Double
        public let graceQuantile: UInt64
        public let graceMinSeconds: Double
        public let graceMaxSeconds: Double
        public let graceSamples: UInt64
        public let silentBudgetMin: UInt64
        public let silentBudgetMax: UInt64
        public let demotionMisses: UInt64
        public let demotionOf: UInt64
        public let goneAfterDays: Double
        public let doubtMisses: UInt64
        public let doubtOf: UInt64
        public let doubtRetryHours: Double

        init(_ policy: WakePolicy) {
            graceSeconds = Double(policy.grace) / 1_000
            silentBudget = policy.silentBudget
            silentWindowSeconds = Double(policy.silentWindow) / 1_000
            silentSpacingSeconds = Double(policy.silentSpacing) / 1_000
            alertExpirationSeconds = Double(policy.alertExpiration) / 1_000
            graceQuantile = policy.adaptive.graceQuantile
            graceMinSeconds = Double(policy.adaptive.graceMin) / 1_000
            graceMaxSeconds = Double(policy.adaptive.graceMax) / 1_000
            graceSamples = policy.adaptive.graceSamples
            silentBudgetMin = policy.adaptive.budgetMin
            silentBudgetMax = policy.adaptive.budgetMax
            demotionMisses = policy.adaptive.demotionMisses
            demotionOf = policy.adaptive.demotionOf
            goneAfterDays = Double(policy.adaptive.goneAfter) / 86_400_000
            doubtMisses = policy.adaptive.doubtMisses
            doubtOf = policy.adaptive.doubtOf
            doubtRetryHours = Double(policy.adaptive.doubtRetry) / 3_600_000
        }
    }

    /// In seconds; `nil`: so many were never reached that there is none.
    public struct Delays: Codable, Equatable, Sendable {
        public let p50: Double?
        public let p95: Double?
        public let p99: Double?
        /// Of how many, and how many of them got there.
        public let of: UInt64
        public let reached: UInt64

        init(_ delays: DelayHistogram, of total: UInt64) {
            func seconds(_ share: Double) -> Double? {
                delays.quantile(share, of: total).map { Double($0) / 1_000 }
            }
            p50 = seconds(0.5)
            p95 = seconds(0.95)
            p99 = seconds(0.99)
            of = total
            reached = delays.count
        }
    }

    /// A point of the curve: how many of `Delays.of` were reached within the time.
    public struct Point: Codable, Equatable, Sendable {
        public let seconds: Double
        public let count: UInt64
    }

    /// Where messages ended; each is in exactly one.
    public struct Messages: Codable, Equatable, Sendable {
        public let published: UInt64
        public let live: UInt64
        public let toldByApp: UInt64
        public let toldByAlert: UInt64
        public let openedBefore: UInt64
        public let cameUpon: UInt64
        public let pending: UInt64
        public let untold: UInt64
        public let denied: UInt64

        /// Nobody told the person of these.
        public var nobodyTold: UInt64 { cameUpon + untold }

        public var sum: UInt64 {
            live + toldByApp + toldByAlert + openedBefore + cameUpon + pending + untold + denied
        }
    }

    public struct Pushes: Codable, Equatable, Sendable {
        public let silent: UInt64
        public let alert: UInt64
        public let badge: UInt64
        public let perMessage: Double
        /// Of the silent ones, those that made the app sync something new, and the others.
        public let silentUsed: UInt64
        public let silentWasted: UInt64
        /// Of the alerts, those of what the person knew, and those that a silent push would have
        /// made needless.
        public let alertRepeated: UInt64
        public let alertNeedless: UInt64
        /// What alerts were made for.
        public let alertCauses: [String: UInt64]
        /// Why silent pushes started nothing.
        public let silentFates: [String: UInt64]
        /// What the server made of them; `late` ones were `no-show` before.
        public let outcomes: [String: UInt64]
    }

    public struct Result: Codable, Equatable, Sendable {
        public let name: String
        public let policy: Policy
        /// From publish to the first moment the person could see it: a notification on a screen,
        /// or the app in front. Of the messages that found the app on no screen.
        public let told: Delays
        /// From publish to a device's acknowledgement: of the same messages, for each device.
        public let arrived: Delays
        public let messages: Messages
        public let pushes: Pushes
        public let demotions: UInt64
        public let recoveries: UInt64
        public let toldCurve: [Point]
        public let arrivedCurve: [Point]
    }

    public let devices: UInt64
    public let users: UInt64
    public let days: Int
    public let seed: UInt64
    public let traffic: String
    public let model: FleetModel
    public let policies: [Result]

    /// Four points a doubling, from a tenth of a second to beyond two days.
    private static let curve: [UInt64] = (0...84).map {
        UInt64((100 * pow(2, Double($0) / 4)).rounded())
    }

    init(_ options: FleetOptions, tallies: [Tally]) {
        devices = tallies.first?.devices ?? 0
        users = tallies.first?.users ?? 0
        days = options.days
        seed = options.seed
        traffic = options.trafficName
        model = options.model
        policies = zip(options.policies, tallies).map { choice, tally in
            Self.result(choice, tally)
        }
    }

    private static func result(_ choice: PolicyChoice, _ tally: Tally) -> Result {
        var outcomes: [String: UInt64] = [:]
        for outcome in WakeOutcome.allCases {
            let count = tally.outcomes[Int(outcome.rawValue)]
            if count > 0 { outcomes[outcome.name] = count }
        }
        var causes: [String: UInt64] = [:]
        for cause in AlertCause.allCases where tally.causes[Int(cause.rawValue)] > 0 {
            causes[cause.name] = tally.causes[Int(cause.rawValue)]
        }
        var fates: [String: UInt64] = [:]
        for fate in Tally.Fate.allCases where tally.fates[fate.rawValue] > 0 {
            fates[fate.name] = tally.fates[fate.rawValue]
        }
        func points(_ delays: DelayHistogram) -> [Point] {
            zip(curve, delays.cumulative(at: curve)).map {
                Point(seconds: Double($0) / 1_000, count: $1)
            }
        }
        return Result(
            name: choice.name, policy: Policy(choice.policy),
            told: Delays(tally.told, of: tally.asleep),
            arrived: Delays(tally.arrived, of: tally.awaited),
            messages: Messages(
                published: tally.messages, live: tally.live, toldByApp: tally.local,
                toldByAlert: tally.alerted, openedBefore: tally.opened,
                cameUpon: tally.cameUpon, pending: tally.pending, untold: tally.untold,
                denied: tally.denied),
            pushes: Pushes(
                silent: tally.silent, alert: tally.alerts, badge: tally.badges,
                perMessage: tally.messages == 0
                    ? 0 : Double(tally.pushes) / Double(tally.messages),
                silentUsed: tally.silentUsed, silentWasted: tally.silent - tally.silentUsed,
                alertRepeated: tally.repeated, alertNeedless: tally.needless,
                alertCauses: causes, silentFates: fates, outcomes: outcomes),
            demotions: tally.demotions, recoveries: tally.recoveries, toldCurve: points(tally.told),
            arrivedCurve: points(tally.arrived))
    }

    /// The same run gives the same bytes.
    public var json: String {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        } catch {
            preconditionFailure("a report that is no JSON: \(self): \(error)")
        }
    }
}

// MARK: Text

extension FleetReport {
    /// The table for people.
    public var text: String {
        let rows: [(String, (Result) -> String)] = [
            ("publish to told, p50", { Self.time($0.told.p50) }),
            ("                 p95", { Self.time($0.told.p95) }),
            ("                 p99", { Self.time($0.told.p99) }),
            ("publish to device, p50", { Self.time($0.arrived.p50) }),
            ("                   p95", { Self.time($0.arrived.p95) }),
            ("                   p99", { Self.time($0.arrived.p99) }),
            ("pushes per message", { Self.number($0.pushes.perMessage, digits: 3) }),
            ("  silent", { Self.share($0.pushes.silent, of: $0.messages.published) }),
            ("  alert", { Self.share($0.pushes.alert, of: $0.messages.published) }),
            ("    budget spent", { Self.cause(.noBudget, of: $0) }),
            ("    grace missed", { Self.cause(.missed, of: $0) }),
            ("    unreachable", { Self.cause(.unreachable, of: $0) }),
            ("    refresh off", { Self.cause(.refreshOff, of: $0) }),
            ("  badge", { Self.share($0.pushes.badge, of: $0.messages.published) }),
            ("silent pushes wasted", { Self.share($0.pushes.silentWasted, of: $0.pushes.silent) }),
            ("alerts a silent push", { Self.share($0.pushes.alertNeedless, of: $0.pushes.alert) }),
            ("  would have spared", { _ in "" }),
            (
                "alerts of what was known",
                {
                    Self.share($0.pushes.alertRepeated, of: $0.pushes.alert)
                }
            ),
            ("told by the woken app", { Self.share($0.messages.toldByApp, of: $0.told.of) }),
            ("told by an alert", { Self.share($0.messages.toldByAlert, of: $0.told.of) }),
            ("opened before told", { Self.share($0.messages.openedBefore, of: $0.told.of) }),
            ("nobody told", { Self.share($0.messages.nobodyTold, of: $0.told.of, digits: 4) }),
            ("pending at the end", { Self.share($0.messages.pending, of: $0.told.of) }),
        ]
        let first = policies.first
        var lines = [
            "\(devices) devices of \(users) users over \(days) days, traffic \(traffic), "
                + "seed \(seed)",
            "\(first?.messages.published ?? 0) messages; \(first?.told.of ?? 0) found the app on "
                + "no screen and notifications allowed: times and shares are of these",
            "",
        ]
        let cells = heads + rows.map { row in [row.0] + policies.map { row.1($0) } }
        let widths = (0...policies.count).map { column in
            cells.map { $0[column].count }.max() ?? 0
        }
        for line in cells {
            let text = line.enumerated().map { column, cell in
                let gap = String(repeating: " ", count: widths[column] - cell.count)
                return column == 0 ? cell + gap : gap + cell
            }.joined(separator: "  ")
            lines.append(text.replacing(#/ +$/#, with: ""))
        }
        return lines.joined(separator: "\n")
    }

    /// The policies' names, what is changed in a line of its own.
    private var heads: [[String]] {
        let names = policies.map { $0.name.split(separator: "/").map(String.init) }
        let most = names.map(\.count).max() ?? 0
        return (0..<most).map { line in
            [""] + names.map { line < $0.count ? $0[line] : "" }
        }
    }

    private static func cause(_ cause: AlertCause, of result: Result) -> String {
        share(result.pushes.alertCauses[cause.name] ?? 0, of: result.messages.published)
    }

    static func number(_ value: Double, digits: Int) -> String {
        value.text(decimals: digits)
    }

    /// In per cent.
    private static func share(
        _ part: UInt64, of whole: UInt64, digits: Int = 2
    ) -> String {
        whole == 0 ? "-" : number(100 * Double(part) / Double(whole), digits: digits) + " %"
    }

    static func time(_ seconds: Double?) -> String {
        guard let seconds else { return "never" }
        if seconds < 60 { return number(seconds, digits: 1) + " s" }
        if seconds < 3_600 { return number(seconds / 60, digits: 1) + " min" }
        return number(seconds / 3_600, digits: 1) + " h"
    }
}

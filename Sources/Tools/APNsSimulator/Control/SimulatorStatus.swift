internal import Model

/// A simulator at a glance: for `status` and the page for people.
public struct SimulatorStatus: Codable, Equatable, Sendable {
    /// Milliseconds since 1970, by the simulator's clock.
    public var now: UInt64
    public var clockOffsetMs: Int64
    public var ports: SimulatorPorts
    public var options: CheckOptions
    public var limits: SimulatorLimits
    /// Topics, and the team of each.
    public var apps: [String: String]
    /// Key ids of keys that are not revoked.
    public var keys: [String]
    public var certificates: Int
    public var tokens: Int
    public var devices: Int
    /// Providers' connections by environment.
    public var connections: [String: Int]
    /// Answers since the start, by status and reason.
    public var answers: [String: UInt64]
    /// Lints since the start.
    public var lints: [String: UInt64]
    /// Faults that wait for their pushes.
    public var faultsWaiting: Int
    /// The newest event's number.
    public var head: UInt64
}

/// One row of the tables of checks, rules and lints.
public struct CheckRow: Codable, Equatable, Sendable {
    public var id: String
    public var what: String
    public var status: Int
    public var reason: String

    /// The checks of a request in their order.
    public static let table: [CheckRow] = Check.allCases.map { check in
        CheckRow(
            id: check.rawValue, what: check.what, status: check.refusal.status,
            reason: check.refusal.rawValue)
    }
}

extension Simulator {
    public var status: SimulatorStatus {
        var connections: [String: Int] = [:]
        for environment in APNsEnvironment.allCases {
            connections[environment.rawValue] = connectionCount(environment)
        }
        return SimulatorStatus(
            now: now.milliseconds, clockOffsetMs: clockOffset, ports: ports,
            options: state.options, limits: state.limits, apps: state.apps.mapValues(\.team),
            keys: state.keys.filter { !$0.value.isRevoked }.keys.sorted(),
            certificates: state.certificates.count, tokens: state.tokens.count,
            devices: deviceNames.count, connections: connections, answers: answers,
            lints: Dictionary(uniqueKeysWithValues: lints.map { ($0.key.rawValue, $0.value) }),
            faultsWaiting: faults.waiting, head: log.head)
    }
}

public import Model

/// What may be in the way of a wake that the callback table grants, in the order in which it is
/// asked for. An app in front is told all the same; an alert and a badge appear all the same.
public enum WakeObstacle: String, Codable, Sendable, CaseIterable {
    /// The phone was restarted and the app not opened since, where that matters
    /// (`DeviceRules.wakesAfterRestart`).
    case restarted
    /// Background App Refresh is off for the app.
    case refreshOff = "refresh_off"
    /// The user has not opened the app for a long time.
    case forgotten
    /// Low Power Mode.
    case lowPower = "low_power"
    /// Priority 1 spares power above all and never wakes the device.
    case priorityOne = "priority_1"
    /// As many wakes as an hour has.
    case hourSpent = "hour_spent"
    /// As many wakes as a day has.
    case daySpent = "day_spent"

    /// What becomes of a silent push.
    public enum Verdict: String, Codable, Sendable {
        /// The device keeps it, the newest only, until the obstacle is gone or the user opens the
        /// app (Apple: Pushing background updates to your App).
        case held
        /// It is gone.
        case dropped
    }

    /// The table. For Background App Refresh and the forgotten app Apple says only that nothing
    /// is delivered; the rest is Apple's "may hold and delay".
    public var silent: Verdict {
        switch self {
        case .restarted, .refreshOff, .forgotten: .dropped
        case .lowPower, .priorityOne, .hourSpent, .daySpent: .held
        }
    }
}

/// The numbers behind a phone. Apple publishes ranges at best, so they are ours to set.
public struct DeviceRules: Equatable, Codable, Sendable {
    public static let hour: Milliseconds = 3_600_000
    public static let day: Milliseconds = 86_400_000

    /// Run time the system gives to a woken app (Apple: "up to 30 seconds").
    public var runTime: Milliseconds = 30_000
    /// Run time left to an app that its user leaves.
    public var leaveTime: Milliseconds = 5_000
    /// APNs keeps a push without an expiration this long.
    public var storageTime: Milliseconds = 30 * day
    /// Wakes in an hour, counted from the first; `nil`: as many as come, as under Xcode.
    public var silentPerHour: UInt16?
    /// Wakes in 24 hours, counted from the first; `nil`: as many as come.
    public var silentPerDay: UInt16?
    /// After so long without being opened the app gets no silent push; `nil`: never.
    public var forgottenAfter: Milliseconds?
    /// Whether an app is woken that was not opened since the phone's restart. Apple says so today
    /// ("until the user opens the app or restarts the device"); what was written of it in its first
    /// years says that such an app is never woken.
    public var wakesAfterRestart = true
    /// Least time between two background refreshes of one app.
    public var refreshSpacing: Milliseconds = 900_000
    /// How often in a thousand the storage slot keeps the older push, not the newer.
    public var keepsOlderPermille: UInt16 = 0
    /// The oldest notifications leave the screen beyond this number.
    public var screenMax = 500

    public init() {}

    /// What is not named is as in `init()`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        func set<Value: Decodable>(
            _ path: WritableKeyPath<Self, Value>, _ key: CodingKeys
        ) throws {
            if let value = try values.decodeIfPresent(Value.self, forKey: key) {
                self[keyPath: path] = value
            }
        }
        try set(\.runTime, .runTime)
        try set(\.leaveTime, .leaveTime)
        try set(\.storageTime, .storageTime)
        silentPerHour = try values.decodeIfPresent(UInt16.self, forKey: .silentPerHour)
        silentPerDay = try values.decodeIfPresent(UInt16.self, forKey: .silentPerDay)
        forgottenAfter = try values.decodeIfPresent(Milliseconds.self, forKey: .forgottenAfter)
        try set(\.keepsOlderPermille, .keepsOlderPermille)
        try set(\.wakesAfterRestart, .wakesAfterRestart)
        try set(\.refreshSpacing, .refreshSpacing)
        try set(\.screenMax, .screenMax)
    }

    /// Without budgets, as the system treats an app that was started from Xcode.
    public static let unlimited = DeviceRules()

    /// As a phone in somebody's pocket: "two or three per hour" are Apple's words, the other
    /// numbers are ours.
    public static let everyday: DeviceRules = {
        var rules = DeviceRules()
        rules.silentPerHour = 3
        rules.silentPerDay = 40
        rules.forgottenAfter = 14 * day
        rules.keepsOlderPermille = 20
        return rules
    }()
}

/// Counts the wakes of an hour and of a day.
struct WakeBudget: Equatable, Sendable {
    private var hourStart: UInt64 = 0
    private var dayStart: UInt64 = 0
    private var hourCount: UInt16 = 0
    private var dayCount: UInt16 = 0

    /// What is spent; `nil`: a wake is left.
    func obstacle(_ rules: DeviceRules, now: Timestamp) -> WakeObstacle? {
        let now = now.milliseconds
        if let most = rules.silentPerDay {
            let spent = now &- dayStart < DeviceRules.day ? dayCount : 0
            if spent >= most { return .daySpent }
        }
        if let most = rules.silentPerHour {
            let spent = now &- hourStart < DeviceRules.hour ? hourCount : 0
            if spent >= most { return .hourSpent }
        }
        return nil
    }

    /// When the obstacle goes by itself; `nil`: never.
    func end(of obstacle: WakeObstacle, _ rules: DeviceRules) -> Timestamp? {
        switch obstacle {
        case .hourSpent where rules.silentPerHour != 0:
            Timestamp(milliseconds: hourStart) + DeviceRules.hour
        case .daySpent where rules.silentPerDay != 0:
            Timestamp(milliseconds: dayStart) + DeviceRules.day
        default: nil
        }
    }

    mutating func spend(now: Timestamp) {
        let now = now.milliseconds
        // A clock that went back begins anew: the difference is then very large.
        if now &- hourStart >= DeviceRules.hour { (hourStart, hourCount) = (now, 0) }
        if now &- dayStart >= DeviceRules.day { (dayStart, dayCount) = (now, 0) }
        hourCount = hourCount == .max ? .max : hourCount + 1
        dayCount = dayCount == .max ? .max : dayCount + 1
    }
}

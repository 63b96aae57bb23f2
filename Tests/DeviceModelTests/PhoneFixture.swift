import DeviceModel
import Model

/// A phone, its rules and clock, and what has happened on it.
struct PhoneFixture {
    var phone: Phone
    var rules = DeviceRules.unlimited
    var now = Timestamp(milliseconds: 1_700_000_000_000)
    var events: [PhoneEvent] = []

    /// Brought into its state by what its user and the system do.
    init(in state: PushEffect.State) {
        phone = Phone(openedAt: now)
        switch state {
        case .suspended: break
        case .foreground: phone.open(rules: rules, now: now, into: &events)
        case .inactive:
            phone.open(rules: rules, now: now, into: &events)
            phone.cover(into: &events)
        case .background:
            phone.open(rules: rules, now: now, into: &events)
            phone.background(now: now, runTime: rules.leaveTime, into: &events)
        case .notRunning: phone.kill(into: &events)
        case .forceQuit: phone.forceQuit(into: &events)
        case .rebooted:
            phone.forceQuit(into: &events)
            phone.reboot(into: &events)
        }
        events = []
    }

    mutating func change(
        _ input: (inout Phone, DeviceRules, Timestamp, inout [PhoneEvent]) -> Void
    ) {
        input(&phone, rules, now, &events)
    }

    mutating func push(_ push: PhonePush, chance: UInt64 = .max) {
        phone.push(push, rules: rules, now: now, chance: chance, into: &events)
    }

    /// What has happened since the last call.
    mutating func taken() -> [PhoneEvent] {
        defer { events = [] }
        return events
    }

    static func silent(_ handle: UInt64) -> PhonePush {
        PhonePush(.silent, handle: handle, priority: 5)
    }
}

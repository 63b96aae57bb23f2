import DeviceModel
import Model
import Wake

/// One device: what the server knows of it, the phone, and the app between them.
struct FleetDevice {
    /// The connection of the app, as the server's session row has it.
    enum Session {
        case none
        case live
        /// The device has lost the network; the server does not know yet.
        case broken
        /// It has ended, and the device is expected back.
        case expected
    }

    /// A push on its way from APNs to the device.
    struct Delivery {
        let at: Timestamp
        let push: PhonePush
    }

    /// What the text of an alert speaks for.
    struct Telling {
        let handle: UInt64
        let seq: UInt64
        let conversation: ConversationID
        let scope: AlertScope
    }

    /// A silent push whose record is still open to change.
    struct SilentPush {
        let wake: WakeID
        let acceptedAt: Timestamp
        var outcome: WakeOutcome = .pending
    }

    let traits: DeviceTraits
    var machine: Reachability
    var phone: Phone
    var alerts = AlertBook()
    var deliveries: [Delivery] = []
    var tellings: [Telling] = []
    var silents: [SilentPush] = []
    var session = Session.none
    var sessionEndsAt = Timestamp.never
    /// When what was told over a dead connection makes it suspect: it counts as none from then on.
    var suspectAt = Timestamp.never
    /// When HELLO reaches the server.
    var helloAt = Timestamp.never
    /// The push that started the app.
    var cause: UInt64?
    /// When the ACK reaches the server.
    var ackAt = Timestamp.never
    var openedAt = fleetStart
    /// Something to tell the person was under way when the app was opened.
    var wasUnderWay = false
    /// When something is to be done; kept up to date by `reschedule`.
    var next = Timestamp.never

    /// Pushes remembered by what they tell, and silent ones by what became of them.
    static let memory = 64

    init(_ traits: DeviceTraits, policy: WakePolicy, number: Int) {
        self.traits = traits
        machine = Reachability(
            policy: policy, tokenGeneration: 1, tokenConfirmedAt: fleetStart,
            isRefreshOff: traits.isRefreshOff, heardAt: traits.openedAt,
            row: Self.emptyRow)
        phone = Phone(state: .suspended, openedAt: traits.openedAt)
        if traits.areAlertsDenied { phone.setAlertsAllowed(false) }
    }

    private static let emptyRow = WakeRecord(
        app: AppID("fleet"), user: UserID("user"), device: DeviceID(high: 0, low: 1))

    /// A row in which nothing is owed is deleted: what it remembered is forgotten.
    mutating func forgetIdleRow(policy: WakePolicy, now: Timestamp) {
        guard machine.row.attempt > 0 || machine.row.target > 0, machine.isIdle(now: now) else {
            return
        }
        machine = Reachability(
            policy: policy, tokenGeneration: machine.tokenGeneration,
            tokenConfirmedAt: machine.tokenConfirmedAt, isTokenProven: machine.isTokenProven,
            isUnreachable: machine.isUnreachable, wasAlerted: machine.wasAlerted,
            isRefreshOff: machine.isRefreshOff, isSessionCounted: machine.isSessionCounted,
            applied: machine.applied, budget: machine.budget, habit: machine.habit,
            appGrace: machine.appGrace, heardAt: machine.heardAt, row: Self.emptyRow)
    }

    var hasRow: Bool { machine.row != Self.emptyRow }

    /// A wake, an alert, a push or a connection that may still tell the person something.
    var isUnderWay: Bool {
        machine.row.phase != .none || machine.row.due != nil || !deliveries.isEmpty
            || phone.slot != nil || phone.held != nil || helloAt != .never
            || session != .none
    }

    mutating func reschedule() {
        var time = min(helloAt, ackAt, sessionEndsAt, suspectAt)
        for delivery in deliveries { time = min(time, delivery.at) }
        if let at = phone.nextDeadline { time = min(time, at) }
        if let at = machine.row.due { time = min(time, at) }
        if let at = machine.row.deadline { time = min(time, at) }
        next = time
    }

    mutating func remember(_ telling: Telling) {
        if tellings.count >= Self.memory { tellings.removeFirst(Self.memory / 2) }
        tellings.append(telling)
    }

    mutating func remember(_ push: SilentPush) {
        if silents.count >= Self.memory { silents.removeFirst(Self.memory / 2) }
        silents.append(push)
    }
}

public import Model
public import Wire

// The push registration, which only a HELLO presents (SES-18).
extension ClientSession {
    /// The system gave the app another push token. `nil`: none is presented any more; the server
    /// keeps the one it has.
    public mutating func setPush(
        _ push: PushRegistration?, now: Instant
    ) -> [ClientAction] {
        configuration.push = push
        var actions: [ClientAction] = []
        presentPush(now: now, &actions)
        return actions
    }

    /// What WELCOME says of the token (SES-18). The system gives an app its token some time after
    /// it has started, and mostly the same one: a HELLO that left before presented none, and the
    /// server goes on with the one it has confirmed last.
    mutating func noteToken(isHeld: Bool, _ actions: inout [ClientAction]) {
        guard configuration.role == .app else { return }
        if presentedPush == nil, isHeld {
            presentedPush = confirmedPush
        } else {
            confirm(isHeld ? presentedPush : nil, &actions)
        }
    }

    mutating func confirm(_ push: PushRegistration?, _ actions: inout [ClientAction]) {
        guard push != confirmedPush else { return }
        confirmedPush = push
        actions.append(.savePush(push))
    }

    /// Says HELLO anew, on a connection of its own, where the present one began with another
    /// registration: until then the server has no token to push to, or a dead one. A covered app
    /// could not connect again and keeps what it has, until it is in front or behind the front;
    /// and a server that drains has said when to come.
    mutating func presentPush(now: Instant, _ actions: inout [ClientAction]) {
        guard let push = configuration.push, push != presentedPush, configuration.role == .app,
            !isLeaving, appState.phase != .inactive
        else { return }
        switch phase {
        case .idle, .waiting, .connecting: return
        case .opening, .authenticating:
            // WELCOME says whether the server has it still.
            if push == confirmedPush, presentedPush == nil { return }
        case .open:
            guard slotAt == nil else { return }
            // What brought the app to connect was told with the HELLO before.
            syncReason = .connect
        }
        leaveConnection(&actions)
        connectNow(now: now, &actions)
    }
}

// What the system lets the app do; the server keeps what APP_STATE and HELLO say of it.
extension ClientSession {
    /// - Parameter switches: its `phase` and time mean nothing.
    public mutating func switchesChanged(
        _ switches: AppState, now: Instant
    ) -> [ClientAction] {
        let state = appState.with(switches)
        guard state != appState else { return [] }
        appState = state
        var actions: [ClientAction] = []
        if phase == .open { send(.appState(state), now: now, &actions) }
        return actions
    }
}

extension AppState {
    /// The same phase and time, with the switches of another.
    public func with(_ switches: AppState) -> AppState {
        var state = self
        state.notifications = switches.notifications
        state.backgroundRefresh = switches.backgroundRefresh
        state.lowPower = switches.lowPower
        return state
    }
}

public import Model

// What its user does with a notification, and with the app's window.
extension Phone {
    /// The user does something with a notification: it goes. False: it does not stand there.
    public mutating func respond(
        _ response: NotificationResponse, to handle: UInt64, rules: DeviceRules, now: Timestamp,
        into events: inout [PhoneEvent]
    ) -> Bool {
        guard let index = screen.firstIndex(where: { $0.handle == handle }) else { return false }
        let callback = PushEffect.callback(of: response, in: state)
        let gone = screen.remove(at: index)
        events.append(.removed(handle: handle, identifier: gone.identifier))
        guard !response.opensApp else {
            bringToFront(now, &events)
            events.append(.responded(handle: handle, response, callback))
            release(rules, now, &events)
            return true
        }
        guard response != .dismissed(isTold: false) else { return true }
        // The person's own doing, not the system's: no budget and no obstacle, and an app that was
        // swiped away is launched for it, too.
        if state != .foreground, state != .inactive {
            let launches = !state.isRunning && state != .suspended
            runBehind(0, rules, now, launches: launches, &events)
        }
        events.append(.responded(handle: handle, response, callback))
        return true
    }

    /// The user taps a notification: the app is opened with it. False: it does not stand there.
    public mutating func tap(
        handle: UInt64, rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) -> Bool {
        respond(.opened, to: handle, rules: rules, now: now, into: &events)
    }

    /// Something lies over the app in front: a call, the list of notifications, the app switcher.
    public mutating func cover(into events: inout [PhoneEvent]) {
        guard state == .foreground else { return }
        state = .inactive
        events.append(.resignActive)
    }
}

// Background App Refresh, as the system plans it.
extension Phone {
    /// The app asks to be run behind the front, not before a moment; an older wish is replaced.
    /// It has to ask anew after each time. False: the user does not let it.
    public mutating func planRefresh(
        notBefore moment: Timestamp, rules: DeviceRules, now: Timestamp
    ) -> Bool {
        guard !isRefreshOff else { return false }
        refresh.at = max(moment, now, refresh.last.map { $0 + rules.refreshSpacing } ?? now)
        return true
    }

    /// When the system next thinks of running the app; `nil`: the app has not asked.
    public var refreshAt: Timestamp? { refresh.at }

    /// The system runs the app's background refresh now, asked for or not. The push of the `run`
    /// event has no handle.
    public mutating func refresh(
        rules: DeviceRules, now: Timestamp, into events: inout [PhoneEvent]
    ) {
        guard state == .suspended || state == .notRunning, !isRefreshOff, !isLowPower else {
            return
        }
        refresh = RefreshPlan(at: nil, last: now)
        runBehind(0, rules, now, launches: state == .notRunning, &events)
    }

    /// What is in the way passes: the system tries again. Only a switch of the user's ends it.
    mutating func refreshIsDue(
        _ rules: DeviceRules, _ now: Timestamp, _ events: inout [PhoneEvent]
    ) {
        if isRefreshOff {
            refresh.at = nil
            return
        }
        let isForgotten = rules.forgottenAfter.map { now.since(openedAt) > $0 } ?? false
        guard hasCoverage, !isForgotten, !isLowPower, state == .suspended || state == .notRunning
        else {
            refresh.at = now + max(1, rules.refreshSpacing)
            return
        }
        refresh(rules: rules, now: now, into: &events)
    }
}

/// What the system knows of the app's background refresh.
struct RefreshPlan: Equatable, Sendable {
    var at: Timestamp?
    var last: Timestamp?
}

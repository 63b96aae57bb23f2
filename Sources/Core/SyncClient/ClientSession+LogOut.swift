public import Model
import Wire

// The user's own logout, *forget this device* (MSG-7).
extension ClientSession {
    /// What the store has of the logout that is sent next.
    enum LogoutMark: Equatable, Sendable {
        case none
        case asked(UInt64)
        case stored(UInt64)
    }

    /// Nothing of the user is to come here any more: no features, no feed.
    mutating func sayLeavingHello(now: Instant, _ actions: inout [ClientAction]) {
        presentedPush = nil
        helloState = appState
        let hello = Hello(
            versionMin: 1, versionMax: 1, app: configuration.app, device: configuration.device,
            role: .app, clientName: configuration.clientName,
            clientVersion: configuration.clientVersion, sessionToken: sessionToken,
            appState: appState)
        quietSince = now
        send(.hello(hello), request: nextRequest(), now: now, &actions)
    }

    /// The logout that the server may have carried out without this client having its answer: not
    /// one that was only queued.
    var sentLogout: UInt64? {
        guard hasSentLogout else { return nil }
        return outbox.first { $0.mutation.isLogout }?.mutation.number
    }

    /// Whether this mutation may leave. A logout may when the store knows of it: if this process
    /// ends before the answer, the next one must not log the user in again (MSG-7).
    mutating func mayLeave(_ mutation: Mutation, _ actions: inout [ClientAction]) -> Bool {
        guard mutation.isLogout, logoutMark != .stored(mutation.number) else { return true }
        if logoutMark != .asked(mutation.number) {
            logoutMark = .asked(mutation.number)
            actions.append(.markLogoutSent(mutation.number))
        }
        return false
    }

    /// `LocalStore.markLogoutSent` is done: the logout leaves now, if there is a connection, and
    /// with the next one if not.
    public mutating func logoutMarked(now: Instant) -> [ClientAction] {
        guard case .asked(let number) = logoutMark else { return [] }
        var actions: [ClientAction] = []
        logoutMark = .stored(number)
        sendMutations(now: now, &actions)
        return actions
    }

    /// The device's own logout took effect, whether or not its result came: logging in again by
    /// itself would undo it.
    mutating func logOut(_ number: UInt64, _ actions: inout [ClientAction]) {
        if outbox.contains(where: { $0.mutation.number == number }) {
            outbox.removeAll { $0.mutation.number == number }
            actions.append(.saveResults([MutationResult(number: number)]))
        }
        isLoggedOut = true
        (hasSentLogout, isLeaving) = (false, false)
        logoutMark = .none
        dropToken(&actions)
        leaveConnection(&actions)
        actions.append(.report(.loggedOut))
    }
}

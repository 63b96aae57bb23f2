import Wire

// The user's own logout, *forget this device* (MSG-7).
extension ClientSession {
    /// The logout that the server may have carried out without this client having its answer: not
    /// one that was only queued, nor one that came with a HELLO that was not read (SES-8).
    var sentLogout: UInt64? {
        guard let number = outbox.first(where: { $0.mutation.isLogout })?.mutation.number,
            hasSentLogout || number <= queuedBefore
        else { return nil }
        return number
    }

    /// What is on its way is forgotten: the server may carry it out all the same.
    mutating func noteSentLogout() {
        if outbox.contains(where: { $0.isSent && $0.mutation.isLogout }) { hasSentLogout = true }
    }

    /// The device's own logout took effect, whether or not its result came: logging in again by
    /// itself would undo it.
    mutating func logOut(_ number: UInt64, _ actions: inout [ClientAction]) {
        if outbox.contains(where: { $0.mutation.number == number }) {
            outbox.removeAll { $0.mutation.number == number }
            actions.append(.saveResults([MutationResult(number: number)]))
        }
        isLoggedOut = true
        hasSentLogout = false
        dropToken(&actions)
        leaveConnection(&actions)
        actions.append(.report(.loggedOut))
    }
}

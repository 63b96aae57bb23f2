internal import AppLife
public import Model
public import SyncClient
import Wire

// The end of a user on this device.
extension Rouse {
    /// Logs the user out and closes: what waits is sent, the server ends the device's sessions and
    /// pushes nothing more to it, what stands on the screen goes, and everything of the user is
    /// erased here. Without the server's answer in time, or where it does not let the device in,
    /// all but its part is done, and what still waited is lost: it pushes to the device until
    /// another user logs in on it, so that the app should ask the system for no more pushes. What
    /// a notification service extension has kept is in a store of its own
    /// (`RouseExtension.erase`).
    ///
    /// The screen is cleared before anything is erased. A process that ends before that has erased
    /// nothing: the next one goes on to log the user out, erases, tells `RouseChange.loggedOut` and
    /// closes, unless it says by `ClientConfiguration.user` that this user is logged in. What a
    /// phone that did not answer goes on to show, the next client of this store takes away before
    /// all else.
    ///
    /// - Returns: whether the server has done its part.
    /// - Throws: when the store cannot be used or written: then nothing was erased in it; the
    ///   screen may be clear by then.
    @discardableResult
    public func logOut(
        within time: Milliseconds = 10_000
    ) async throws(LocalStoreError) -> Bool {
        try send(.forgetDevice(ForgetDevice()))
        isLoggingOut = true
        defer { isLoggingOut = false }
        let end = clock.now + time
        let timer = Task { [weak self, clock] in
            do { try await clock.sleep(until: end) } catch { return }
            await self?.logOutEnded(false)
        }
        let isDone = await withCheckedContinuation {
            loggingOut = $0
            // Not after the back-off.
            refresh()
            // An app that is too old for the server connects no more.
            if replica?.session.isStopped == true { logOutEnded(false) }
        }
        timer.cancel()
        try await eraseUser(telling: nil)
        return isDone
    }

    /// The server has carried out the logout that an earlier process began: the rest of it.
    func finishLogOut() async {
        guard !isLoggingOut, !isClosed else { return }
        isLoggingOut = true
        defer { isLoggingOut = false }
        do {
            try await eraseUser(telling: .loggedOut)
        } catch {
            // The server lets this device in no more: the next process is told so again.
            storeTrouble(error)
        }
    }

    /// Clears the screen, erases everything of the user, and closes.
    private func eraseUser(telling change: RouseChange?) async throws(LocalStoreError) {
        give(.willSuspend)
        // Before anything is erased, so that an app that starts no client without a user is left
        // with a clear screen, too, whenever its process ends.
        steps.append(.clearScreen)
        await asleep()
        guard let store else { throw isAbsent }
        try store.erase()
        if let change { tell(change) }
        await close()
        // Again and last, for the phone may not have answered. The store goes on to say that it is
        // to be done: the next client of this store does it first.
        await clearScreen()
    }

    func logOutEnded(_ isDone: Bool) {
        loggingOut?.resume(returning: isDone)
        loggingOut = nil
    }

    var hasFormerScreen: Bool {
        do {
            return try store?.hasFormerScreen() ?? false
        } catch {
            storeTrouble(error)
            return false
        }
    }

    /// The next process need not do it.
    func clearFormerScreen() async {
        await clearScreen()
        do {
            try store?.formerScreenCleared()
        } catch {
            storeTrouble(error)
        }
    }

    /// Takes away the notifications and the number of a user who is here no more.
    private func clearScreen() async {
        for notification in await phone.delivered() where notification.object != nil {
            await phone.remove(identifier: notification.identifier)
        }
        await phone.setBadge(0)
    }
}

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
    /// `tellLogOut` has told it, or another user logs in, so that the app should ask the system for
    /// no more pushes. Nothing stays here then but the user's name and the credential that it is
    /// told with. What a notification service extension has kept is in a store of its own
    /// (`LoginRecord`).
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
        return try await endLogOut(within: time)
    }

    /// Tells the server of a logout that it has not heard of, or that an earlier process did not
    /// live to finish, and closes. For an app that starts with nobody logged in, by a client
    /// without `ClientConfiguration.user`: mostly there is nothing to tell, and nobody is
    /// connected to. Nothing of the user's feed comes here.
    ///
    /// - Returns: whether there is nothing left to tell.
    /// - Throws: as `logOut`.
    @discardableResult
    public func tellLogOut(
        within time: Milliseconds = 10_000
    ) async throws(LocalStoreError) -> Bool {
        guard !isLoggingOut else { return false }
        let store = try usableStore()
        let isLeft = try !store.load().user.isEmpty
        // The process ended before the logout was so much as kept.
        if isLeft, configuration.user == nil, try !store.hasLogout() {
            try send(.forgetDevice(ForgetDevice()))
        }
        guard try store.hasLogout() else {
            await close()
            return true
        }
        return try await endLogOut(within: time)
    }

    private func endLogOut(within time: Milliseconds) async throws(LocalStoreError) -> Bool {
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
        try await eraseUser(telling: nil, keepsLogout: !isDone)
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
    private func eraseUser(
        telling change: RouseChange?, keepsLogout: Bool = false
    ) async throws(LocalStoreError) {
        give(.willSuspend)
        // Before anything is erased, so that an app that starts no client without a user is left
        // with a clear screen, too, whenever its process ends.
        steps.append(.clearScreen)
        await asleep()
        guard let store else { throw isAbsent }
        // First: what the extension holds goes when it looks next, whatever becomes of this.
        if login?.write(nil) == false { journal(.storeFailed("the login record stands")) }
        try store.erase(keepsLogout: keepsLogout)
        if let change {
            hasLoggedOut = change == .loggedOut
            tell(change)
        }
        await close()
        // Again and last, for the phone may not have answered. The store goes on to say that it is
        // to be done: the next client of this store does it first.
        await clearScreen()
    }

    /// Tells the extension whose device it is. While a logout waits it is nobody's.
    func noteLogin() {
        guard let login else { return }
        do {
            let named = configuration.user ?? liveUser
            let isLeaving = try store?.hasLogout() ?? false
            let user = isLeaving || named.isEmpty ? nil : named
            if !login.write(user) { journal(.storeFailed("the login record is not written")) }
        } catch {
            storeTrouble(error)
        }
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

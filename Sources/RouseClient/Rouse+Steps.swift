public import AppLife
import Model
import SyncClient
import Wire

// One thing at a time: what the session and the app's rules ask for, in their order.
extension Rouse {
    /// From outside: after what goes on.
    func give(_ input: AppInput) {
        guard !isClosed else { return }
        steps.append(.input(input))
        carryOutAll()
    }

    /// The person has left the front: known before what waits is shown or taken for seen, though
    /// not before an older callback. What follows from it waits for its turn.
    func leave(_ input: AppInput) {
        let isNext = !steps.contains { if case .input = $0 { true } else { false } }
        guard isNext else { return give(input) }
        steps += life.on(input, now: clock.now).map { .action($0) }
        carryOutAll()
    }

    func perform(_ effects: [ClientReplica.Effect]) {
        steps += queued(effects)
        carryOutAll()
    }

    /// What a connection is about is carried out at once, in the session's own order: an older
    /// wish to disconnect, behind what waits for the phone's screen, would end a newer connection.
    /// What it rests on is committed. The rest waits for its turn.
    private func queued(_ effects: [ClientReplica.Effect]) -> [Step] {
        effects.compactMap { effect in
            switch effect {
            case .connect, .send, .raiseLimits, .disconnect, .needIdentityToken:
                carryOut(effect)
                return nil
            case .applied, .results, .report: return .effect(effect)
            }
        }
    }

    func hear(_ input: (inout ClientSession, Instant) -> [ClientAction]) {
        let (now, wall) = (clock.now, clock.wall)
        perform(replica?.on(now: now, wall: wall, input) ?? [])
    }

    /// What a step leads to: before what is left.
    func answer(_ input: AppInput) {
        guard !isClosed else { return }
        steps.insert(contentsOf: life.on(input, now: clock.now).map { .action($0) }, at: 0)
        readSeen(after: input)
    }

    func act(_ input: (inout ClientSession, Instant) -> [ClientAction]) {
        let (now, wall) = (clock.now, clock.wall)
        let effects = replica?.on(now: now, wall: wall, input) ?? []
        steps.insert(contentsOf: queued(effects), at: 0)
    }

    func carryOutAll() {
        guard !isCarryingOut else { return }
        guard !steps.isEmpty else { return setTimer() }
        isCarryingOut = true
        carrying = Task { await carryOutSteps() }
    }

    func carryOutSteps() async {
        while !steps.isEmpty, !isClosed {
            switch steps.removeFirst() {
            case .input(let input): answer(input)
            case .effect(let effect): carryOut(effect)
            case .action(let action): await carryOut(action)
            case .lastCall:
                lastCall = nil
                answer(.deadlineReached)
            case .clearScreen: await clearFormerScreen()
            case .readHere: readHere()
            case .asleep(let number): suspensions.removeValue(forKey: number)?.isOver.resume()
            }
            setTimer()
        }
        isCarryingOut = false
    }

    func setTimer() {
        if isClosed { return }
        let deadlines = [
            nextDeadline, replica?.session.nextDeadline, waiting.values.map(\.end).min(),
            suspensions.values.map(\.end).min(),
        ]
        guard let next = deadlines.compactMap({ $0 }).min() else {
            timer?.task.cancel()
            timer = nil
            return
        }
        guard timer?.moment != next else { return }
        timer?.task.cancel()
        let task = Task { [weak self, clock] in
            do { try await clock.sleep(until: next) } catch { return }
            await self?.deadlineReached(next)
        }
        timer = (next, task)
    }

    func deadlineReached(_ moment: Instant) {
        guard timer?.moment == moment else { return }
        timer = nil
        let now = clock.now
        if let deadline = nextDeadline, deadline <= now { ended(deadline, now) }
        for (number, suspension) in suspensions where suspension.end <= now { overtake(number) }
        for (number, waiter) in waiting where waiter.end <= now {
            waiting[number] = nil
            waiter.answer.resume(returning: queuedResult(of: number) ?? .failed)
        }
        hear { $0.deadlineReached(now: $1) }
        setTimer()
    }

    private var nextDeadline: Instant? {
        lastCall.map { $0 + lastCallTime } ?? life.nextDeadline
    }

    /// The deadline of a task, or what it gave to those that wait.
    private func ended(_ deadline: Instant, _ now: Instant) {
        if isCarryingOut, lastCall == nil, now < deadline + lastCallTime {
            // What waits is durable: it is told before, if the phone answers in time.
            lastCall = deadline
            steps.append(.lastCall)
        } else {
            lastCall = nil
            steps.removeAll { if case .lastCall = $0 { true } else { false } }
            carryOutBeside(life.on(.deadlineReached, now: now))
        }
    }

    /// Beside the queue: whatever the system has not answered, its handler is called in time.
    private func carryOutBeside(_ actions: [AppAction]) {
        for action in actions {
            switch action {
            case .complete(let task, let result): complete(task, result)
            case .sleep:
                let (now, wall) = (clock.now, clock.wall)
                let effects = replica?.on(now: now, wall: wall) { $0.sleep(now: $1) } ?? []
                for effect in effects { carryOut(effect) }
            default: steps.append(.action(action))
            }
        }
    }

    /// Whatever the phone has not answered: the system takes the time now.
    func expired(_ task: UInt64) {
        guard !isClosed, waiting[task] != nil else { return }
        carryOutBeside(life.on(.expired(task), now: clock.now))
        // Its callback may wait still, or its answer.
        complete(task, queuedResult(of: task) ?? .failed)
        carryOutAll()
        setTimer()
    }

    private func complete(_ task: UInt64, _ result: FetchResult) {
        waiting.removeValue(forKey: task)?.answer.resume(returning: result)
    }

    /// A call to the phone does not return, and what a suspension gave waits behind it: what the
    /// system and the server are told goes before.
    private func overtake(_ number: UInt64) {
        let mark = steps.firstIndex { if case .asleep(number) = $0 { true } else { false } }
        let ahead = steps[..<(mark ?? steps.startIndex)]
        var urgent: [AppAction] = []
        let rest = ahead.filter { step in
            switch step {
            case .action(let action):
                switch action {
                case .sleep, .complete:
                    urgent.append(action)
                    return false
                default: return true
                }
            case .input(.willSuspend):
                // It stays, too: an older callback may stand before it.
                urgent += life.on(.willSuspend, now: clock.now)
                return true
            case .input, .effect, .lastCall, .clearScreen, .readHere, .asleep: return true
            }
        }
        steps.replaceSubrange(ahead.indices, with: rest)
        carryOutBeside(urgent)
        suspensions.removeValue(forKey: number)?.isOver.resume()
    }

    private func queuedResult(of task: UInt64) -> FetchResult? {
        for case .action(.complete(task, let result)) in steps { return result }
        return nil
    }

    func carryOut(_ action: AppAction) async {
        switch action {
        case .openStore:
            answer(opened() ? .storeOpened : .storeLocked)
            // Whoever erased it, be it a process that ended before the screen was clear.
            if hasFormerScreen { steps.insert(.clearScreen, at: 0) }
        case .start(let state, let wake):
            let state = state.with(switches)
            act { $0.start(appState: state, wake: wake, now: $1) }
        case .tell(let state):
            let state = state.with(switches)
            act { $0.appStateChanged(state, now: $1) }
        case .sync(let state, let wake):
            let state = state.with(switches)
            act { $0.pushReceived(wake: wake, appState: state, now: $1) }
        case .sleep: act { $0.sleep(now: $1) }
        case .look: answer(await look())
        case .show(let notice):
            await phone.show(notice)
            // After it is shown, as it is settled: rather twice than never.
            told?.note(notice.identifier)
        case .remove(let identifier): await phone.remove(identifier: identifier)
        case .badge(let count): await setBadge(count)
        case .settle(let objects):
            do {
                try store?.settle(objects)
            } catch {
                storeTrouble(error)
            }
        case .complete(let task, let result): complete(task, result)
        }
    }

    /// What is over goes before the change to 0, with which the system takes the whole list away:
    /// the phone puts back what stood then.
    private func setBadge(_ count: UInt32) async {
        if count == 0, let store {
            let standing = await phone.delivered()
            let screen = try? store.screen(delivered: standing, at: clock.wall)
            for shown in screen?.delivered ?? [] where shown.standing == .over {
                await phone.remove(identifier: shown.identifier)
            }
        }
        await phone.setBadge(count)
    }

    func storeTrouble(_ error: any Error) {
        journal(.storeFailed("\(error)"))
        let failure = LocalStoreError(opening: error)
        if case .corrupt = failure { damage = failure }
        tell(.storeFailed(failure))
    }

    /// What was told and holds still, for whoever begins to listen.
    var holding: [RouseChange] {
        if hasLoggedOut { return [.loggedOut] }
        guard !isClosed else { return [] }
        var changes: [RouseChange] = []
        if let failure = damage ?? (store == nil ? openFailure : nil) {
            changes.append(.storeFailed(failure))
        }
        if case .refused(let why) = connectionState { changes.append(.refused(why)) }
        if isTokenRefused { changes.append(.pushTokenRefused) }
        return changes
    }

    func opened() -> Bool {
        if store != nil { return true }
        do {
            if let device { configuration.device = try device() }
            let store = try openStore()
            try store.belong(to: configuration.device)
            replica = try ClientReplica(store: store, configuration: configuration, seed: seed)
            (self.store, openFailure) = (store, nil)
            // Begun by a process before this one.
            isResetting = try store.load().isResetting
            liveUser = replica?.session.userName ?? ""
            noteLogin()
            follow(.everything)
            return true
        } catch {
            openFailure = LocalStoreError(opening: error)
            storeTrouble(error)
            return false
        }
    }

    func carryOut(_ effect: ClientReplica.Effect) {
        switch effect {
        case .connect:
            connect()
            state(.connecting)
        case .send(let frame):
            connection?.send(frame.encoded)
            followSent()
        case .raiseLimits(let limits): decoder.limits = limits
        case .disconnect:
            disconnect()
            journal(.left)
            state(.offline)
            followSent()
        case .needIdentityToken(let nonce):
            let (number, identity) = (connections, identity)
            // Who waits for the backend keeps no client that the app has let go of.
            asking?.cancel()
            asking = Task { [weak self] in
                let token = await identity(nonce)
                await self?.signed(token, number)
            }
        case .applied(let entries, _):
            journal(.applied(entries))
            follow(.entries(entries))
            tell(.entries(entries))
            answer(.applied)
        case .results(let results):
            journal(.results(results))
            lastSent = replica?.session.mutationsSent ?? []
            follow(.pending)
            tell(.results(results))
            answer(.outbox(isWaiting: replica?.session.hasUnanswered ?? false))
        case .report(let event): heard(event)
        }
    }

    func heard(_ event: ClientEvent) {
        journal(.event(event))
        followEvent(event)
        switch event {
        case .unread(let count):
            tell(.unread(count))
            answer(.unread(count))
        case .synced:
            tell(.inSync)
            // Of an earlier process's too; before `synced`, which may complete a wake.
            answer(.outbox(isWaiting: replica?.session.hasUnanswered ?? false))
            answer(.synced)
        case .syncRequested: answer(.syncRequested)
        case .closed: answer(.disconnected)
        case .loggedOut:
            logOutEnded(true)
            answer(.gaveUp)
            // Not from within the steps, whose end it waits for.
            if !isLoggingOut { Task { await finishLogOut() } }
        case .parked, .upgradeRequired:
            tell(.refused(lastRefusal))
            // The server does not hear of a logout that it lets nobody say.
            logOutEnded(false)
            answer(.gaveUp)
        case .otherUser(let user):
            let why = "the backend vouched for \(user), and the app has another user"
            disconnectReason = why
            tell(.trouble(why))
        case .loginRefused(let code):
            tell(.trouble("the server refused the login: \(Refusal(code: code))"))
        case .storeFailed(let error):
            storeTrouble(error)
            answer(.storeFailed)
        case .signalled(let kind, let conversation, let user):
            tell(.signal(kind, conversation: conversation, user: user))
        case .pushTokenRefused:
            isTokenRefused = true
            tell(.pushTokenRefused)
        case .opened, .reauthenticated, .delta, .reset, .snapshot, .fetched, .fetchFailed,
            .peeked, .digest, .refused, .drained, .retrying:
            break
        }
    }
}

extension Rouse {
    /// A notification came while the app is in front: what its person is to see of it there. To be
    /// asked for each, the app's own among them: what an app does not ask for, the system does
    /// not show in front.
    public func presents(_ notification: DeliveredNotification) -> Presentation {
        var standing = NotificationStanding.unknown
        if let object = notification.object {
            // A store that cannot be read knows nothing of it.
            let known = try? store?.standing(
                of: object, in: notification.conversation, at: clock.wall)
            standing = known ?? .unknown
        }
        return life.presents(
            notification.conversation, standing: standing, isQuiet: notification.isQuiet)
    }

    func look() async -> AppInput {
        let standing = await phone.delivered()
        guard let store else { return .storeFailed }
        do {
            var screen = try store.screen(delivered: standing, at: clock.wall)
            if let told {
                for index in screen.owed.indices where !screen.owed[index].wasTold {
                    let identifier = screen.owed[index].notice.identifier
                    screen.owed[index].wasTold = told.contains(identifier)
                }
            }
            return .looked(screen)
        } catch {
            storeTrouble(error)
            return .storeFailed
        }
    }
}

public import Model
import Wire

/// The app's half of being woken, as one value: what the system calls back with, what the client
/// reports and `now` go in; what to show, when to sleep and when to tell the system that it is
/// done comes out. Protocol/push.md has its rules, each with its tests.
///
/// It remembers nothing that a killed process would miss: what the person has not been told of is
/// in the store, what stands on the screen is in the system's list, and it looks at both.
public struct AppLife: Equatable, Sendable {
    /// Numbers of the app's side. Times in milliseconds.
    public struct Limits: Equatable, Sendable {
        /// So long before its deadline a task is completed, whatever stands.
        public var margin: Milliseconds = 2_000
        /// Tasks at a time; one more is completed as failed at once.
        public var tasks = 16

        public init() {}
    }

    public enum Phase: Equatable, Sendable {
        case foreground
        /// In front, but covered: the person is told as if it were not.
        case inactive
        /// Running, unseen.
        case background
        /// In memory, not running; also before the first callback.
        case suspended
    }

    private struct OpenTask: Equatable, Sendable {
        let task: SystemTask
        /// When it is completed whatever stands.
        let end: Instant
        let wake: WakeID?
        var hasNew = false
        var hasSynced = false
        var result: FetchResult { hasNew ? .newData : hasSynced ? .noData : .failed }
    }

    public let limits: Limits
    public private(set) var phase = Phase.suspended
    public private(set) var onScreen = OnScreen.nothing
    private var isStoreOpen = false
    /// The client was started and has not been told to sleep since.
    private var isAwake = false
    /// Until when the app may run on of its own, apart from any task.
    private var runsUntil: Instant?
    private var tasks: [OpenTask] = []
    private var outboxWaits = false
    /// Things of the app's own that go on.
    private var works = 0
    /// Notifications that stood before the connection was made: what they are about came into the
    /// feed before the sync over that connection (PSH-11). `nil`: to be noted at the next look.
    private var stood: Set<ExactText>?
    /// The feed was applied to its head over this connection, and nothing was told of since.
    private var isInSync = false

    public init(limits: Limits = Limits()) { self.limits = limits }

    /// By when this task is completed, whatever stands.
    public func end(of task: SystemTask) -> Instant {
        let deadline = task.deadline.milliseconds
        return Instant(milliseconds: deadline > limits.margin ? deadline - limits.margin : 0)
    }

    /// When `deadlineReached` is due; `nil`: never.
    public var nextDeadline: Instant? { tasks.map(\.end).min() }

    public mutating func on(_ input: AppInput, now: Instant) -> [AppAction] {
        var actions: [AppAction] = []
        switch input {
        case .launched, .unlocked:
            if !isStoreOpen { actions.append(.openStore) }
        case .storeOpened: storeOpened(now, &actions)
        case .storeLocked: failTasks(&actions)
        case .becameActive: becameActive(now, &actions)
        case .resignedActive:
            guard phase == .foreground else { break }
            phase = .inactive
            if isAwake { actions.append(.tell(state(now))) }
        case .enteredBackground(let until):
            phase = .background
            runsUntil = until
            if isAwake { actions.append(.tell(state(now))) }
        case .willSuspend: willSuspend(&actions)
        case .pushReceived(let task, let wake): begin(task, wake: wake, now, &actions)
        case .refreshTask(let task): begin(task, wake: nil, now, &actions)
        case .onScreen(let seen): onScreen = seen
        case .applied:
            for index in tasks.indices { tasks[index].hasNew = true }
            actions.append(.look)
        case .unread(let count): actions.append(.badge(count))
        case .outbox(let isWaiting):
            outboxWaits = isWaiting
            completeWhatIsDone(&actions)
        case .syncRequested:
            isInSync = false
            for index in tasks.indices { tasks[index].hasSynced = false }
        case .synced:
            isInSync = true
            for index in tasks.indices { tasks[index].hasSynced = true }
            actions.append(.look)
        case .disconnected: lookAnew(&actions)
        case .gaveUp, .storeFailed: failTasks(&actions)
        case .looked(let screen):
            tidy(screen, &actions)
            completeWhatIsDone(&actions)
        case .workBegan: works += 1
        case .workEnded(let isNew):
            works = max(0, works - 1)
            if isNew { for index in tasks.indices { tasks[index].hasNew = true } }
            completeWhatIsDone(&actions)
        case .deadlineReached: complete(&actions) { $0.end <= now }
        case .expired(let task): complete(&actions) { $0.task.id == task }
        }
        return actions
    }
}

// MARK: - Running and sleeping

extension AppLife {
    private mutating func storeOpened(_ now: Instant, _ actions: inout [AppAction]) {
        isStoreOpen = true
        // With the app in front, or woken: it goes on now.
        guard !isAwake, phase == .foreground || !tasks.isEmpty else { return }
        start(wake: tasks.last?.wake, now, &actions)
    }

    /// What a killed process left untold is told, and what stands is noted.
    private mutating func lookAnew(_ actions: inout [AppAction]) {
        guard isStoreOpen else { return }
        (stood, isInSync) = (nil, false)
        actions.append(.look)
    }

    private mutating func becameActive(_ now: Instant, _ actions: inout [AppAction]) {
        phase = .foreground
        runsUntil = nil
        // Another process may have held it for a moment.
        guard isStoreOpen else { return actions.append(.openStore) }
        if isAwake { actions.append(.tell(state(now))) } else { start(wake: nil, now, &actions) }
    }

    private mutating func start(
        wake: WakeID?, _ now: Instant, _ actions: inout [AppAction]
    ) {
        isAwake = true
        lookAnew(&actions)
        actions.append(.start(state(now), wake: wake))
    }

    private mutating func begin(
        _ task: SystemTask, wake: WakeID?, _ now: Instant, _ actions: inout [AppAction]
    ) {
        guard !tasks.contains(where: { $0.task.id == task.id }) else { return }
        if phase == .suspended { phase = .background }
        guard tasks.count < limits.tasks else {
            actions.append(.complete(task: task.id, .failed))
            return
        }
        tasks.append(OpenTask(task: task, end: end(of: task), wake: wake))
        if !isStoreOpen {
            // What kept it from opening may be over. Before first unlock nothing is fetched that
            // could not be kept: the server sees that nobody came, and alerts (PSH-7).
            actions.append(.openStore)
        } else if isAwake {
            actions.append(.sync(state(now), wake: wake))
        } else {
            start(wake: wake, now, &actions)
        }
    }

    private mutating func willSuspend(_ actions: inout [AppAction]) {
        // Asleep first: what comes now would not be told.
        phase = .suspended
        runsUntil = nil
        sleep(&actions)
        complete(&actions) { _ in true }
    }

    private mutating func sleep(_ actions: inout [AppAction]) {
        guard isAwake else { return }
        isAwake = false
        actions.append(.sleep)
    }

    private func state(_ now: Instant) -> AppState {
        switch phase {
        case .foreground: return AppState(phase: .foreground)
        case .inactive, .suspended: return AppState(phase: .inactive)
        case .background:
            let ends = tasks.map(\.task.deadline) + (runsUntil.map { [$0] } ?? [])
            let left = (ends.max() ?? now).since(now)
            return AppState(phase: .background, remainingMs: UInt32(clamping: left))
        }
    }
}

// MARK: - Completion

extension AppLife {
    private mutating func completeWhatIsDone(_ actions: inout [AppAction]) {
        guard !outboxWaits, works == 0 else { return }
        complete(&actions) { $0.hasSynced }
    }

    /// Each task once, since it is forgotten with its completion. With the last one the system
    /// takes the run time: the server is told before, so that it wakes this device by push.
    private mutating func complete(
        _ actions: inout [AppAction], where isDone: (OpenTask) -> Bool
    ) {
        let done = tasks.filter(isDone)
        guard !done.isEmpty else { return }
        tasks.removeAll(where: isDone)
        if tasks.isEmpty, phase == .background, runsUntil == nil { sleep(&actions) }
        actions += done.map { .complete(task: $0.task.id, $0.result) }
    }

    private mutating func failTasks(_ actions: inout [AppAction]) {
        // What was stored before stays: it is told at the next look.
        for index in tasks.indices {
            (tasks[index].hasNew, tasks[index].hasSynced) = (false, false)
        }
        complete(&actions) { _ in true }
    }
}

// MARK: - The screen

extension AppLife {
    private mutating func tidy(_ screen: AppScreen, _ actions: inout [AppAction]) {
        let standing = Set(screen.delivered.map { ExactText($0.identifier) })
        let before = stood ?? standing
        for shown in screen.delivered {
            let isGone =
                shown.standing == .over
                || shown.standing == .missing && isInSync
                    && before.contains(ExactText(shown.identifier))
            if isGone { actions.append(.remove(identifier: shown.identifier)) }
        }
        stood = before
        var settled: [MessageID] = []
        for owed in screen.owed {
            var notice = owed.notice
            settled.append(notice.object)
            guard owed.standing == .shows || owed.standing == .muted else { continue }
            if standing.contains(ExactText(notice.identifier)) {
                // Also of what is muted, or on the screen: nothing stands with a text that was
                // taken back.
                guard owed.isEdited else { continue }
                notice.isQuiet = true
            } else if owed.standing == .muted || owed.wasTold || sees(notice.conversation) {
                continue
            }
            actions.append(.show(notice))
        }
        // After they are shown: a process that is killed in between shows them again, under the
        // same identifiers, rather than never.
        if !settled.isEmpty { actions.append(.settle(settled)) }
    }

    /// What the system does with a notification that comes while the app is in front, whoever has
    /// sent it: an alert that was under way when the app was opened is told by nobody else, since
    /// the feed says that the server alerted it.
    ///
    /// - Parameters:
    ///   - conversation: of what it is about; `nil`: none.
    ///   - standing: of what it is about, as far as the store knows.
    ///   - isQuiet: the app has it take the place of one that stands (`AppNotice.isQuiet`).
    public func presents(
        _ conversation: ConversationID?, standing: NotificationStanding, isQuiet: Bool = false
    ) -> Presentation {
        switch standing {
        case .over: return .nothing
        // Were it not put into the list, the text that was taken back would stay there.
        case _ where isQuiet: return .list
        case .muted: return .nothing
        // A campaign's, or the app's own: nothing on the screen tells of what is not in the feed.
        case .unknown where conversation == nil: return .all
        case .shows: return sees(conversation) ? .nothing : .all
        // Not here yet: who looks at the conversation may leave before it is.
        case .missing, .unknown: return sees(conversation) ? .list : .all
        }
    }

    /// The person looks at it already: the app is in front, and says that it is on the screen.
    public func sees(_ conversation: ConversationID?) -> Bool {
        guard phase == .foreground else { return false }
        return switch onScreen {
        case .everything: true
        case .conversation(let shown): shown == conversation
        case .nothing: false
        }
    }
}

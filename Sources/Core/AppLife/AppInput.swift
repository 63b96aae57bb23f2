public import Model

/// Run time that the system gave for a purpose and of which it wants to be told that it is used:
/// the completion handler of a push, or a background task.
public struct SystemTask: Equatable, Sendable {
    /// The shell's name for it; never used twice in a process.
    public var id: UInt64
    /// When the system takes the run time back.
    public var deadline: Instant

    public init(id: UInt64, deadline: Instant) {
        self.id = id
        self.deadline = deadline
    }
}

/// How a task ended, in the words of `UIBackgroundFetchResult`.
public enum FetchResult: String, Equatable, Sendable {
    case newData = "new_data"
    case noData = "no_data"
    case failed
}

/// What the person can see of the app while it is in front.
public enum OnScreen: Equatable, Sendable {
    /// Wherever the person is, the app itself shows what is new.
    case everything
    case conversation(ConversationID)
    case nothing
}

/// What an `AppLife` is told: callbacks of the system, events of the client, and what the app
/// says. Each comes with `now`.
public enum AppInput: Equatable, Sendable {
    /// The process began; whatever made it begin comes next.
    case launched
    /// Answers `openStore`.
    case storeOpened
    /// Answers `openStore`: the phone was restarted and not unlocked since, so its files are
    /// locked; or the store does not open.
    case storeLocked
    /// The phone's files can be read from now on.
    case unlocked
    case becameActive
    /// Something covers the app, or the person is about to leave it.
    case resignedActive
    /// The app may finish what it does until then.
    case enteredBackground(until: Instant)
    /// The run time is over; nothing is carried out after what this gives.
    case willSuspend
    /// A push came and the system waits for the task's end. `wake`: the push's `w` (PSH-2).
    case pushReceived(SystemTask, wake: WakeID?)
    /// The system runs the app's background refresh.
    case refreshTask(SystemTask)
    /// Where the person is in the app.
    case onScreen(OnScreen)
    /// Entries are durable that were not here before.
    case applied
    /// SYN-27: the number for the icon.
    case unread(UInt32)
    /// Mutations wait for their results, or none does any more.
    case outbox(isWaiting: Bool)
    /// The server told of more.
    case syncRequested
    /// Everything up to the feed's head is durable and acknowledged.
    case synced
    /// The connection is gone; the client tries again.
    case disconnected
    /// The client tries no more: logged out, superseded, or too old for the server.
    case gaveUp
    /// The store failed in the middle.
    case storeFailed
    /// Answers `look`.
    case looked(AppScreen)
    /// The app does something of its own that this run time is to serve: a download, an import.
    case workBegan
    /// - Parameter isNew: it has brought something new.
    case workEnded(isNew: Bool)
    /// `nextDeadline` has come.
    case deadlineReached
    /// The system takes the run time of this task now, before its deadline.
    case expired(UInt64)
}

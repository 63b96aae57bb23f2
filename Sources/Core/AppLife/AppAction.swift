public import Model
public import Wire

/// What the shell carries out for an `AppLife`, in the order given. An action that is answered is
/// answered before the next is carried out, and what the answer gives comes before what is left.
public enum AppAction: Equatable, Sendable {
    /// Answer with `storeOpened` or `storeLocked`.
    case openStore
    /// Connect, and stay connected from here on.
    case start(AppState, wake: WakeID?)
    /// The app's state changed; there is a connection, or one is being tried.
    case tell(AppState)
    /// Sync now over the connection there is.
    case sync(AppState, wake: WakeID?)
    /// Say good-bye (CON-12) and close.
    case sleep
    /// Take the system's list of this app's notifications and what the store is owed; answer with
    /// `looked`, or with `storeFailed`.
    case look
    case show(AppNotice)
    case remove(identifier: String)
    case badge(UInt32)
    /// These were told, or need not be: the store owes them no more.
    case settle([MessageID])
    /// The system's handler of this task is called, with this: the last that is done for it.
    case complete(task: UInt64, FetchResult)
}

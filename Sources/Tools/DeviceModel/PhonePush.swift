public import Model

/// A push as the phone model sees it: small, without text. What it says stays with whoever sent
/// it, under `handle`.
public struct PhonePush: Equatable, Sendable {
    /// The caller's name for the push; comes back in the events.
    public var handle: UInt64
    /// Identifies the notification: a later one with the same takes its place, and the app can
    /// name it. 0: none, so the app cannot name it.
    public var identifier: UInt64
    /// Until when APNs may keep it, in milliseconds since 1970; 0: one attempt only; `.max`: no
    /// expiration was given, as long as the rules say.
    public var expires: UInt64
    /// The icon's number; -1: as it is.
    public var badge: Int32
    public var kind: PushEffect.Kind
    /// 10, 5 or 1.
    public var priority: UInt8
    /// There is text to show, not only a sound.
    public var hasText: Bool

    public init(
        _ kind: PushEffect.Kind, handle: UInt64 = 0, identifier: UInt64 = 0, expires: UInt64 = 0,
        badge: Int32 = -1, priority: UInt8 = 10, hasText: Bool = true
    ) {
        self.kind = kind
        self.handle = handle
        self.identifier = identifier
        self.expires = expires
        self.badge = badge
        self.priority = priority
        self.hasText = hasText
    }
}

/// What happens on a phone. Handles and identifiers are the pushes' own.
public enum PhoneEvent: Equatable, Sendable {
    /// A push reached the device, and this delegate was called. `obstacle`: why an alert or badge
    /// did not wake the app although the callback table lets it.
    case received(handle: UInt64, PushEffect.Callback, obstacle: WakeObstacle?)
    /// The app runs in the background for so long, for this push; also told to an app that runs
    /// already, whose time then counts anew. `launches`: it was not in memory.
    case run(handle: UInt64, remaining: Milliseconds, launches: Bool)
    /// A push came while the user sees the app.
    case notify(handle: UInt64)
    /// The user sees the app.
    case enterForeground
    /// Something lies over the app in front.
    case resignActive
    /// The user has done something with the notification, and the app, which runs, is told.
    case responded(handle: UInt64, NotificationResponse, PushEffect.Callback)
    /// What is kept for the apps can be read.
    case unlocked
    /// The app left the front and may finish what it does.
    case enterBackground(remaining: Milliseconds)
    /// The app stops running and stays in memory.
    case suspend
    /// The app is gone from memory.
    case terminate
    case networkChanged(isUp: Bool)
    /// APNs keeps the push until the device has coverage; `replaced`: the one it kept before.
    case stored(handle: UInt64, replaced: UInt64?)
    /// The device keeps a silent push back until the obstacle is gone; `received` comes then.
    case held(handle: UInt64, WakeObstacle)
    /// The push is gone.
    case dropped(handle: UInt64, Loss)
    case shown(handle: UInt64, identifier: UInt64)
    case removed(handle: UInt64, identifier: UInt64)
    case cleared
    case badge(UInt32)

    /// Why a push never reached its app.
    public enum Loss: String, Codable, Sendable {
        /// Expiration 0 and no coverage.
        case notStored = "not_stored"
        /// Its time passed in the storage slot.
        case expired
        /// APNs kept the older one in the slot.
        case olderKept = "older_kept"
        /// The device held it and a newer silent push came.
        case superseded
        /// The device held it and the app was force-quit or killed, or the phone restarted.
        case discarded
        /// An obstacle that drops.
        case disallowed
    }
}

/// What a user may do with a notification.
public enum NotificationResponse: Equatable, Hashable, Sendable {
    /// A tap: the app comes to the front (`UNNotificationDefaultActionIdentifier`).
    case opened
    /// A button of the notification's category. `opensApp`: it has the option `foreground`;
    /// otherwise the app does it behind the front.
    case action(opensApp: Bool)
    /// Cleared. `isTold`: its category has the option `customDismissAction`
    /// (`UNNotificationDismissActionIdentifier`); otherwise the app never hears of it.
    case dismissed(isTold: Bool)

    /// The app comes to the front.
    public var opensApp: Bool {
        switch self {
        case .opened, .action(opensApp: true): true
        case .action(opensApp: false), .dismissed: false
        }
    }
}

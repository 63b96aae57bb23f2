/// An enumeration of the schema: open, 0 first. A value this side does not know is read as
/// `unspecified` (framing.md, FRM-27).
public protocol WireEnumeration: RawRepresentable, CaseIterable, Equatable, Sendable
where RawValue == UInt32 {
    /// The value 0.
    static var unspecified: Self { get }
}

/// What runs on the device.
public enum Role: UInt32, WireEnumeration {
    case unspecified = 0
    /// The app itself.
    case app = 1
    /// A notification service extension beside it: it only peeks and acknowledges ranges.
    case `extension` = 2
}

/// Which APNs environment a push token belongs to.
public enum PushEnvironment: UInt32, WireEnumeration {
    case unspecified = 0
    case production = 1
    case development = 2
}

/// What a client may do after an error or a close. It counts also when the code is unknown.
public enum RetryClass: UInt32, WireEnumeration {
    /// The same again would fail the same way. A connection closed so is opened again only at
    /// the next foreground, wake or user action.
    case none = 0
    /// The same again may succeed, after the client's own back-off.
    case retry = 1
    /// As `retry`, but not before the time given beside it.
    case retryAfter = 2
    /// After a new login.
    case reauthenticate = 3
    /// After dropping the cursor and taking what the server has.
    case resync = 4
    /// Not with this version of the client.
    case upgrade = 5

    public static var unspecified: RetryClass { .none }
}

/// Why a server asks for a login.
public enum ChallengeReason: UInt32, WireEnumeration {
    case unspecified = 0
    /// The device has no session yet.
    case first = 1
    /// Its session token is too old.
    case expired = 2
    /// Its session token was taken back.
    case revoked = 3
}

/// Whether a sync moves the cursor.
public enum SyncMode: UInt32, WireEnumeration {
    case unspecified = 0
    /// Pages ascend from the cursor.
    case advance = 1
    /// Newest first; the cursor stays.
    case peek = 2
}

/// What made a client sync.
public enum SyncReason: UInt32, WireEnumeration {
    case unspecified = 0
    case connect = 1
    case syncRequest = 2
    case wake = 3
    case user = 4
    case timer = 5
}

/// Why a cursor cannot be continued.
public enum ResetReason: UInt32, WireEnumeration {
    case unspecified = 0
    case noCursor = 1
    case cursorTooOld = 2
    case epochChanged = 3
    case cursorAhead = 4
}

/// What a signal says of its user.
public enum SignalKind: UInt32, WireEnumeration {
    case unspecified = 0
    /// Writes a message in the conversation.
    case typing = 1
    /// Stopped writing.
    case typingEnded = 2
    /// Looks at the conversation.
    case present = 3
    /// Does so no longer.
    case away = 4
}

/// What the operating system lets the app do.
public enum AppPhase: UInt32, WireEnumeration {
    case unspecified = 0
    case foreground = 1
    /// Running, for `AppState.remainingMs` more.
    case background = 2
    /// In the background without run time; never iOS' `.inactive` overlay, which is foreground.
    case inactive = 3
}

/// A switch the user or the system sets on the device.
public enum Setting: UInt32, WireEnumeration {
    case unspecified = 0
    case on = 1
    case off = 2
}

/// Where a drained client connects again.
public enum DrainPlace: UInt32, WireEnumeration {
    case unspecified = 0
    /// Another node, at once: make before break.
    case elsewhereNow = 1
    /// The same address, at the slot.
    case sameAddressAtSlot = 2
}

/// Where the sound of a notification is from.
public enum SoundKind: UInt32, WireEnumeration {
    /// The system.
    case unspecified = 0
    /// There is none.
    case none = 1
    /// A file of the app.
    case named = 2
    /// A file of the app that is heard although the device is muted.
    case critical = 3
}

/// How much a notification may disturb, in Apple's words.
public enum InterruptionLevel: UInt32, WireEnumeration {
    case unspecified = 0
    case passive = 1
    case active = 2
    case timeSensitive = 3
    case critical = 4
}

public import Model

// Numbers stored in rows. They are never reused; the wire has its own.

/// An APNs environment; the token and the credential carry it.
public enum PushEnvironmentKind: UInt64, StoredNumber, CaseIterable {
    case production = 1
    case development = 2
}

/// The role of a session: the app itself, or an extension beside it.
public enum RoleKind: UInt64, StoredNumber {
    case app = 1
    case `extension` = 2
}

/// A switch on the device, as last reported.
public enum SettingKind: UInt64, StoredNumber {
    case unknown = 0
    case on = 1
    case off = 2
}

/// The kinds of entries. The raw value is also the bit in SYNC_REQUEST's `kinds`, and the field
/// number of `Entry.body` is this plus 10.
public enum EntryKind: UInt64, StoredNumber, CaseIterable {
    case conversation = 0
    case participant = 1
    case message = 2
    case receipt = 3
    case readMark = 4
    /// A deleted message (`object`: its id) or conversation (`object`: empty), or, of no
    /// conversation, an announcement that was taken back (`object`: its id).
    case tombstone = 5
    case metadata = 6
    case announcement = 7
    case conversationSettings = 8
    case block = 9
}

/// What a fan-out job writes into the feeds.
public enum FanOutKind: UInt64, StoredNumber {
    case message = 1
    case join = 2
    case metadata = 3
    case leave = 4
    /// An edit of a message, or its deletion for everyone.
    case messageChange = 5
    /// The deletion of the conversation for everyone.
    case conversationEnd = 6
}

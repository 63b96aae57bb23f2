/// What is driven and measured: a row of the table, or several where turns in the background
/// follow. They run in this order: what ends sessions and deletes comes last.
public enum BenchKind: String, CaseIterable, Codable, Sendable {
    // What a backend asks.
    case publish
    case publishHundred = "publish-100"
    case publishAsleep = "publish-asleep"
    case edit = "edit-message"
    case delete = "delete-message"
    case create = "create-conversation"
    case add = "add-participants"
    case remove = "remove-participants"
    case end = "delete-conversation"
    case metadata = "change-metadata"
    case announce
    case announceThousand = "announce-1000"
    case schedule
    case webhook
    case campaign
    case tag

    // What a device asks.
    case open
    case tokenChange = "token-change"
    case sync
    case acknowledge
    case acknowledgeRanges = "acknowledge-ranges"
    case read
    case readRanges = "read-ranges"
    case appState = "app-state"
    case reauthenticate
    case endSession = "end-session"
    case abandonSession = "abandon-session"
    case mutateSend = "mutate-send"
    case mutateEdit = "mutate-edit"
    case mutateDelete = "mutate-delete"
    case mutateHide = "mutate-hide"
    case mutateCreate = "mutate-create"
    case mutateAdd = "mutate-add"
    case mutateRemove = "mutate-remove"
    case mutateClear = "mutate-clear"
    case mutateEnd = "mutate-end"
    case mutateMetadata = "mutate-metadata"
    case mute
    case block
    case forget = "forget-device"

    // What the reader answers.
    case page
    case pageThousand = "page-1000"
    case pageTenThousand = "page-10000"

    // What the writer does by itself, what the gateway asks, and administration.
    case receipts
    case pushes
    case providerToken = "provider-token"
    case alive
    case administer
    case removeDevice = "remove-device"
    case revoke
    case suspendUser = "suspend-user"

    // Much at once.
    case groupPublish = "group-publish"
    case groupEdit = "group-edit"
    case groupRemove = "group-remove"
    case groupEnd = "group-end"
    case suspendApp = "suspend-app"
    case removeApp = "remove-app"
    case start
    case expire
    case groupAsleep = "group-publish-asleep"
    case deleteUser = "delete-user"
    case retention

    /// What it is, in a few words.
    public var summary: String {
        switch self {
        case .publish: "a message of one user to another, who is online, with a key"
        case .publishHundred: "the same, 100 in one transaction"
        case .publishAsleep: "the same to a user whose device sleeps and is woken"
        case .edit: "an edit of a message between two"
        case .delete: "a message between two deleted for everyone"
        case .create: "a conversation of two"
        case .add: "one more in a conversation of eight"
        case .remove: "one less in a conversation of eight"
        case .end: "a conversation of two deleted for everyone"
        case .metadata: "a value of a conversation of eight"
        case .announce: "an announcement to 256 users, the most that are served at once"
        case .announceThousand: "an announcement to 1,000 users taken back, and the turns"
        case .schedule: "a message for later, one taken back, and the turn that publishes"
        case .webhook: "a webhook made and changed, an event claimed and delivered"
        case .campaign: "a campaign to a whole app, and its turns"
        case .tag: "a tag on a user"
        case .open: "HELLO with a session token and an inline SYNC"
        case .tokenChange: "the same with another push token"
        case .sync: "SYNC from the head"
        case .acknowledge: "ACK of a page of 16 messages"
        case .acknowledgeRanges: "ACK of 256 ranges over a feed of many entries"
        case .read: "a read receipt over 4 messages"
        case .readRanges: "a read receipt of 256 ranges over as many messages"
        case .appState: "APP_STATE to background and back"
        case .reauthenticate: "AUTHENTICATE on an open session"
        case .endSession: "the end of a connection"
        case .abandonSession: "the end of a connection whose login was not answered"
        case .mutateSend: "MUTATE: send between two"
        case .mutateEdit: "MUTATE: edit"
        case .mutateDelete: "MUTATE: delete for everyone"
        case .mutateHide: "MUTATE: delete for oneself"
        case .mutateCreate: "MUTATE: a conversation of two"
        case .mutateAdd: "MUTATE: one more in a conversation of eight"
        case .mutateRemove: "MUTATE: one less in a conversation of eight"
        case .mutateClear: "MUTATE: a conversation deleted for oneself"
        case .mutateEnd: "MUTATE: a conversation deleted for everyone"
        case .mutateMetadata: "MUTATE: a value of a conversation of eight"
        case .mute: "MUTATE: mute"
        case .block: "MUTATE: block"
        case .forget: "MUTATE: log this device out"
        case .page: "a page of one new message (the reader)"
        case .pageThousand: "pages of a device 1,000 entries behind (the reader)"
        case .pageTenThousand: "pages of a device 10,000 entries behind (the reader)"
        case .receipts: "the turn that writes receipts that are due"
        case .pushes: "claims of due wakes, and the answers of APNs"
        case .providerToken: "the provider token of a signing key"
        case .alive: "the sign of life"
        case .administer: "an app's settings, a key of its backend"
        case .removeDevice: "a device logged out"
        case .revoke: "all sessions of a user ended"
        case .suspendUser: "a user suspended, and let in again"
        case .groupPublish: "a message to a large conversation, all online, and its fan-out"
        case .groupEdit: "an edit of that message, and its fan-out"
        case .groupRemove: "256 users removed from it, and the fan-out"
        case .groupEnd: "its end, the fan-out and the purge"
        case .suspendApp: "a large app suspended, and the turns that end its sessions"
        case .removeApp: "a large app removed, and the turns that delete its rows"
        case .start: "the start of another process, and the turns over all sessions"
        case .expire: "the turns when none of these devices has come back"
        case .groupAsleep: "a message to the large conversation, all asleep, and its fan-out"
        case .deleteUser: "a user with many messages deleted, and the turns that do it"
        case .retention: "the turns over what is past its retention a day later"
        }
    }

    /// Whether it changes so much that it can be driven once in a store.
    var isOnce: Bool {
        switch self {
        case .start, .expire, .groupAsleep, .deleteUser, .retention: true
        default: false
        }
    }
}

public import Model

/// The bounds the rules keep. One value for all apps; tests lower them.
public struct RuleLimits: Equatable, Sendable {
    /// Users named in one request.
    public var participantsPerRequest = 256
    public var participantsPerConversation = 10_000
    /// A conversation that has had more is large: participants are not told of each other, for
    /// that would be an entry for each pair of them (MSG-38).
    public var participantsTold = 256
    /// Parts of one message.
    public var parts = 32
    /// Bytes of all parts of one message together, MIME types included.
    public var messageBytes = 64 << 10
    public var mimeTypeBytes = 128
    /// Of the address of content by reference.
    public var referenceBytes = 2048
    /// Keys of one path of metadata, bytes of one key and of one value.
    public var metadataDepth = 8
    public var metadataKeyBytes = 64
    public var metadataValueBytes = 2048
    /// Values of one conversation's metadata, and their bytes together.
    public var metadataValues = 64
    public var metadataBytes = 8192
    /// Bytes of the names of a distinct conversation's participants together: they are a key, and
    /// an index of PostgreSQL takes a third of a page.
    public var distinctBytes = 2000
    /// A page sent so often without an ACK is sent entry by entry.
    public var deliveryTries: UInt64 = 5
    /// Above so many participants a signal reaches nobody.
    public var signalParticipants = 128
    /// Users one user blocks.
    public var blocks = 1000
    /// Title and body of a push text together.
    public var pushTextBytes = 2048
    /// Above so many recipients a change is fanned out in the background.
    public var directRecipients = 256
    /// Above so many entries too: a join writes an entry for each pair.
    public var directEntries = 2048
    /// Entries written in one step of a fan-out.
    public var fanOutStep = 512
    /// Changes of one conversation that may wait; further ones are refused for the time being.
    public var fanOutQueue: UInt64 = 1024
    /// Users of one announcement.
    public var announcementRecipients = 1000
    /// Batches of users of one app that may wait for announcements.
    public var announcementQueue: UInt64 = 1024
    /// How long it is kept whom an announcement was for, so that it can be taken back: as long as a
    /// deleted user's name stays elsewhere.
    public var audienceLifetime: Milliseconds = 90 * 86_400_000
    /// Read receipts in one write: each counts a conversation anew and tells every device of the
    /// user. A session hands over those of a SYNC or ACK in parts.
    public var readsPerRequest = 16
    /// Ranges in one SYNC or ACK.
    public var rangesPerRequest = 256
    /// Ranges kept in one read mark; beyond it the lowest are dropped.
    public var rangesPerReadMark = 256
    public var mutationsPerRequest = 256
    /// Results kept of one device.
    public var mutationResults: UInt64 = 1024
    public var mutationLifetime: Milliseconds = 7 * 86_400_000
    public var idempotencyLifetime: Milliseconds = 86_400_000
    public var idempotencyKeyBytes = 255
    /// At most one receipt of a conversation and reader in this time.
    public var receiptInterval: Milliseconds = 2000
    /// Entries, and messages of one conversation, that one receipt step looks at.
    public var receiptStep = 512
    /// Steps in which a turn looks for edits that the user's devices do not have yet.
    public var movedSteps = 4
    /// Conversations whose receipts one step tells.
    public var receiptConversations = 64
    /// How long a forgotten device's counters are kept: it cannot come back later with numbers
    /// it used before.
    public var forgottenLifetime: Milliseconds = 90 * 86_400_000
    /// How long a device may take to come back when its server process ended.
    public var reconnectWindow: Milliseconds = 10_000
    /// How long a node is taken to be there after it said so.
    public var nodeLease: Milliseconds = 10_000
    /// After a refusal for the time being.
    public var retryAfter: Milliseconds = 1000
    /// Bytes of a push token; APNs does not fix it (32 today).
    public var pushTokenBytes = 256
    /// Bytes of a client's name, and of its version.
    public var clientNameBytes = 128
    /// Of a device's language tag and of its time zone's name.
    public var placeBytes = 64
    /// Messages of a FETCH that names no number, and of any.
    public var historyMessages = 50
    public var historyMessagesMax = 500
    /// Messages of each conversation of a SNAPSHOT that names no number, and of any.
    public var snapshotMessages = 20
    public var snapshotMessagesMax = 100
    /// Announcements on its first page, at most.
    public var snapshotAnnouncements = 50
    /// Conversations of one page.
    public var snapshotConversations = 256
    /// Pages of conversations that moved while a snapshot was read; 255 at most.
    public var snapshotNewerPages = 64
    /// A conversation with more participants is not whole in a SNAPSHOT: FETCH gives the rest.
    public var snapshotParticipants = 32
    /// Receipts of a conversation in a snapshot.
    public var snapshotReceipts = 64
    /// Positions of each conversation a digest sums up.
    public var digestPositions = 50
    /// With more conversations, or more messages to look at, no digest is made.
    public var digestConversations = 1000
    public var digestMessages = 65_536
    /// The work of one part of a digest, in messages; other queries get between the parts.
    public var digestPart = 1_024
    /// The share of a conversation's state in that work: it takes as many reads.
    public var digestConversation = 8
    /// Entries or messages that are not for the user which one page passes over before it ends
    /// with `more`.
    public var skippedRows = 1_024
    /// What a commit hands over of the feeds without a read.
    public var tail = TailLimits()
    /// Live keys of the backend API of one app.
    public var apiKeys = 2
    /// Tombstones are kept so long, and until every device seen lately has them.
    public var tombstoneLifetime: Milliseconds = 30 * 86_400_000
    /// A device not seen for so long is not waited for: it gets a reset.
    public var deviceMemory: Milliseconds = 90 * 86_400_000
    /// How long after a user's deletion the name stays where others hold it: as long as devices
    /// are waited for that have to learn of it.
    public var nameLifetime: Milliseconds = 90 * 86_400_000
    /// When to look again at a tombstone that a device still needs.
    public var tombstoneDelay: Milliseconds = 86_400_000
    /// Messages and announcements of one app that wait for their time, and how far ahead it is.
    public var scheduled: UInt64 = 10_000
    public var scheduleHorizon: Milliseconds = 366 * 86_400_000
    /// Webhooks of one app.
    public var webhooks = 16
    /// Events kept of one app for its webhooks, and how long.
    public var webhookEvents: UInt64 = 100_000
    public var webhookEventLifetime: Milliseconds = 7 * 86_400_000
    /// Events of one delivery, and about the bytes of it; one event is always given.
    public var webhookBatch = 100
    public var webhookBatchBytes = 256 << 10
    /// Events looked at for one delivery.
    public var webhookScan = 512
    /// Campaigns of one app that are not over.
    public var campaigns = 32
    /// Campaigns brought further in one round.
    public var campaignsAtOnce = 16
    /// Pushes of one campaign that wait to be claimed: its cursor goes on when there are fewer.
    public var campaignQueue = 4096
    /// Tags of one user, and of one device.
    public var tags = 64
    /// Devices of one user that are logged in: one more logs out the one not seen for longest.
    /// So many forgotten ones keep their counters.
    public var devicesPerUser = 32
    /// Rows read and written after which what is left of a request, or of a turn in the
    /// background, waits for the next turn: below 10 ms of the writer, for rows of background work
    /// lie far apart in the file and take about 6 us each.
    public var rowsPerTurn = 1024
    /// Sessions of a suspended or removed app, or of an earlier process, that one turn ends.
    public var sessionsPerTurn = 256
    /// Tries of one step that met a conflict.
    public var attempts = 3
    /// Rows a list query gives.
    public var listRows = 1000
    /// Resets of one app that may begin at once, and milliseconds between those that follow.
    public var resetBurst: UInt64 = 100
    public var resetInterval: Milliseconds = 10
    /// The longest a reset waits for its turn.
    public var resetWaitMax: Milliseconds = 3_600_000
    /// By how much a restore raises the head of every feed: more than one can have grown since.
    public var restoreHeadStep: UInt64 = 1 << 32

    public init() {}
}

/// How much of what a commit appended to feeds is handed over to sessions; above it they read it.
public struct TailLimits: Equatable, Sendable {
    /// The most entries of one feed, and the most bytes of more than one entry.
    public var entries = 32
    public var bytes = 64 << 10
    /// The same for all feeds together; an object that many entries show counts once.
    public var entriesPerCommit = 8_192
    public var bytesPerCommit = 1 << 20

    public init() {}
}

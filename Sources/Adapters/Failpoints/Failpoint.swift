/// A durable step of the server at which a test can have the process killed, as by kill -9:
/// what is on disk then is all there is.
///
/// Only a debug build can: there `ROUSE_FAILPOINT=NAME` (or `NAME@3`: at its third time) in the
/// environment of `rouse serve` arms one point, and an unknown name is an error at the start. In
/// a release build `hit` is empty, nothing can be armed, and the variable is refused like any
/// other that names no setting. `FailpointTests` kills at each.
///
/// The name of a plain point is that of its case; that of a point in a commit is
/// `stage.kind`, such as `committed.publish`.
public enum Failpoint: Hashable, Sendable {
    // Opening the store.
    /// This process has the right to write the database, which may not exist yet.
    case storeLocked
    /// The database file exists, perhaps empty.
    case storeFileMade
    /// A migration is carried out and not committed.
    case migrationApplied
    case migrationCommitted
    /// The journal is about to be moved into the database, or has just been.
    case checkpointBegun
    case checkpointDone
    /// At the orderly end: before the last checkpoint, and with the file closed.
    case storeClosing
    case storeClosed

    // The server as a whole.
    /// The admin socket's file exists.
    case adminSocketMade
    /// SIGTERM came; nobody was told yet.
    case drainBegun
    /// At the orderly end: connections are gone, their sessions' ends may not be written.
    case sessionsStopped
    case gatewayStopped

    // A push on its way.
    /// Claims are committed and nothing of them is sent.
    case pushClaimed
    /// Handed to the connection to APNs, not answered.
    case silentSent, alertSent, badgeSent, campaignSent
    /// APNs has answered and the answer is not written down.
    case silentAnswered, alertAnswered, badgeAnswered, campaignAnswered
    /// The answer is committed.
    case silentSettled, alertSettled, badgeSettled, campaignSettled

    // A delivery to a webhook on its way.
    /// Claims are committed and nothing of them is posted.
    case webhookClaimed
    /// Handed to the HTTP client, not answered.
    case webhookSent
    /// The receiver has answered and the answer is not written down.
    case webhookAnswered
    /// The answer is committed.
    case webhookSettled

    /// A transaction that holds an effect of this kind.
    case commit(CommitStage, CommitKind)

    /// Where a transaction is.
    public enum CommitStage: Sendable, CaseIterable {
        /// Requests are taken together; nothing is carried out.
        case begun
        /// Everything is carried out and nothing is committed.
        case applied
        /// Committed; nobody has heard of it.
        case committed
        /// Those it concerns have heard of it; those who asked have no answer.
        case told
        /// The answers are on their way to those who asked.
        case answered
    }

    /// What a transaction does.
    public enum CommitKind: Sendable, CaseIterable {
        /// A process has started: epoch, and what other boots left open.
        case start
        /// A session with an identity token: device and session token are new.
        case login
        /// A session with a session token, which is rotated.
        case resume
        case pushToken
        /// A HELLO that names the push which caused it.
        case wakeAnswered
        case sync
        case acknowledge
        case read
        case appState
        case endSession
        /// An identity token on a session that is open.
        case reauthenticate
        /// Mutations of clients.
        case clientConversation, clientParticipants, clientMessage, logout
        case clientRemoval, clientEdit, clientDeletion, clientConversationDeletion
        case clientMetadata
        /// Of clients, and of backends for them.
        case mute, block
        /// Requests of backends.
        case createConversation, addParticipants, publish, changeMetadata, announce, deleteUser
        case removeParticipants, editMessage, deleteMessage, deleteConversation
        case takeBackAnnouncement
        case schedule, cancelScheduled
        case createCampaign, controlCampaign, changeTags
        /// Requests of operators.
        case putApp, removeApp, putIssuerKey, removeIssuerKey, putAPIKey, removeAPIKey
        case putPushCredential, removePushCredential, removeDevice
        case revokeSessions, suspendUser, resumeUser, suspendApp, resumeApp
        /// What the server does by itself, when there is something to do.
        case fanOut, userDeletion, receipts, retention, sweep, keepAlive
        case publishScheduled
        case claimSilent, claimAlert, claimBadge, claimCampaign, finishPush, providerToken
        /// A campaign queues more, or goes from one stage to the next.
        case campaignStep
        case demotion, recovery, alertRelease
        /// Webhooks, by operators and backends, and what their sender does.
        case createWebhook, changeWebhook, removeWebhook, rotateWebhook, testWebhook
        case claimDelivery, finishDelivery
    }

    /// Kinds whose transaction is killed in at all its stages, not only on both sides of the
    /// commit: a backend's request, a client's mutation, a new session.
    private static let watchedThroughout: [CommitKind] = [.publish, .clientMessage, .login]

    /// Every point there is.
    public static var all: [Failpoint] {
        let plain: [Failpoint] = [
            .storeLocked, .storeFileMade, .migrationApplied, .migrationCommitted,
            .checkpointBegun, .checkpointDone, .storeClosing, .storeClosed, .adminSocketMade,
            .drainBegun, .sessionsStopped, .gatewayStopped, .pushClaimed, .silentSent,
            .alertSent, .badgeSent, .silentAnswered, .alertAnswered, .badgeAnswered,
            .silentSettled, .alertSettled, .badgeSettled, .webhookClaimed, .webhookSent,
            .webhookAnswered, .webhookSettled,
            .campaignSent, .campaignAnswered, .campaignSettled,
        ]
        let commits = CommitKind.allCases.flatMap { kind in
            CommitStage.allCases.filter { stage in
                stage == .applied || stage == .committed || watchedThroughout.contains(kind)
            }.map { Failpoint.commit($0, kind) }
        }
        return plain + commits
    }

    public var name: String {
        switch self {
        case .commit(let stage, let kind): "\(stage).\(kind)"
        default: "\(self)"
        }
    }

    /// The environment variable that arms a point.
    public static let variable = "ROUSE_FAILPOINT"
}

/// Why a point was not armed.
public struct FailpointError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
}

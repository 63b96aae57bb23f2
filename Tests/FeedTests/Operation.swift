import Feed
import Model
import Wire

/// Everything that changes the store: what devices, backends, administrators and the server itself
/// ask of `Rules.execute`. The initializer names each case of each request there is, so that a new
/// one has to be put here before the tests build, and `roles` says with what it must then be tried.
enum Operation: CaseIterable {
    // Mutations of a device.
    case create, add, send, forget, remove, leave, edit, delete, hide, end, clear, setMetadata
    case mute, unmute, block, unblock
    // What else a session tells.
    case open, sync, acknowledge, read, readAnnouncement, changeState, endSession, abandon
    case reauthenticate
    // The backend's.
    case backendCreate, backendAdd, publish, publishAs, backendRemove, backendEdit, backendDelete
    case backendEnd, backendMetadata, announce, takeBack, deleteUser, schedule
    case scheduleAnnouncement, cancel
    case backendMute, backendUnmute, backendBlock, backendUnblock
    case revoke, challenge, suspendUser, resumeUser, tagUser, tagDevice
    // The backend's, about its app.
    case createWebhook, changeWebhook, removeWebhook, rotateSecret, endRotation
    case undoRotation, testWebhook
    case createCampaign, pauseCampaign, resumeCampaign, cancelCampaign
    // The administrator's.
    case putApp, removeApp, putIssuerKey, removeIssuerKey, putAPIKey, removeAPIKey, putCredential
    case removeCredential, suspendApp, resumeApp, removeDevice
    // The server's own.
    case continueFanOut, continueDeletions, coalesceReceipts, enforceRetention, start, restore
    case claimPushes, finishPush, keepProviderToken, keepTicketKeys, sweepWakes, keepAlive
    case beat, order, publishDue
    case advanceCampaigns, claimDeliveries, finishDelivery

    /// What the server does by itself.
    static let turns = allCases.filter { $0.roles[.store] != nil }
}

extension Operation {
    init(_ request: StoreRequest) {
        switch request {
        case .openSession: self = .open
        case .sync: self = .sync
        case .acknowledge(let request):
            if let read = request.reads.first {
                self = read.announcement == nil ? .read : .readAnnouncement
            } else {
                self = .acknowledge
            }
        case .changeAppState: self = .changeState
        case .mutate(let request): self.init(request.mutation.operation, by: request.session.user)
        case .endSession: self = .endSession
        case .abandonSession: self = .abandon
        case .reauthenticate: self = .reauthenticate
        case .change(_, let change, _): self.init(change)
        case .administer(let request): self.init(request)
        case .webhooks(let request): self.init(request)
        case .schedules(let request): self.init(request)
        case .campaigns(let request): self.init(request)
        case .continueFanOut: self = .continueFanOut
        case .continueDeletions: self = .continueDeletions
        case .coalesceReceipts: self = .coalesceReceipts
        case .enforceRetention: self = .enforceRetention
        case .start: self = .start
        case .restore: self = .restore
        case .claimPushes: self = .claimPushes
        case .finishPush: self = .finishPush
        case .keepProviderToken: self = .keepProviderToken
        case .keepTicketKeys: self = .keepTicketKeys
        case .sweepWakes: self = .sweepWakes
        // Both move the same row.
        case .keepAlive, .rested: self = .keepAlive
        case .beat: self = .beat
        case .order: self = .order
        }
    }

    private init(_ change: Change) {
        switch change {
        case .createConversation: self = .backendCreate
        case .addParticipants: self = .backendAdd
        case .publish(let publication):
            self = publication.sender.isEmpty ? .publish : .publishAs
        case .removeParticipants: self = .backendRemove
        case .editMessage: self = .backendEdit
        case .deleteMessage: self = .backendDelete
        case .deleteConversation: self = .backendEnd
        case .changeMetadata: self = .backendMetadata
        case .announce: self = .announce
        case .takeBackAnnouncement: self = .takeBack
        case .deleteUser: self = .deleteUser
        case .mute(let mute): self = mute.isMuted ? .backendMute : .backendUnmute
        case .block(let block): self = block.isBlocked ? .backendBlock : .backendUnblock
        }
    }

    private init(_ operation: Mutation.Operation?, by user: UserID) {
        switch operation {
        case .createConversation: self = .create
        case .addParticipants: self = .add
        case .sendMessage: self = .send
        case .forgetDevice: self = .forget
        case .removeParticipants(let request):
            let isOwn = request.users.allSatisfy { $0.isExactly(user.name) }
            self = isOwn ? .leave : .remove
        case .editMessage: self = .edit
        case .deleteMessage(let request): self = request.forEveryone ? .delete : .hide
        case .deleteConversation(let request): self = request.forEveryone ? .end : .clear
        case .changeMetadata: self = .setMetadata
        case .muteConversation(let request): self = request.muted ? .mute : .unmute
        case .blockUser(let request): self = request.blocked ? .block : .unblock
        case nil: preconditionFailure("nobody asks for nothing")
        }
    }

    private init(_ request: Administration) {
        switch request {
        case .putApp: self = .putApp
        case .removeApp: self = .removeApp
        case .putIssuerKey: self = .putIssuerKey
        case .removeIssuerKey: self = .removeIssuerKey
        case .putAPIKey: self = .putAPIKey
        case .removeAPIKey: self = .removeAPIKey
        case .putPushCredential: self = .putCredential
        case .removePushCredential: self = .removeCredential
        case .removeDevice: self = .removeDevice
        case .revokeSessions(_, _, let reauthenticate):
            self = reauthenticate ? .challenge : .revoke
        case .suspendUser: self = .suspendUser
        case .resumeUser: self = .resumeUser
        case .suspendApp: self = .suspendApp
        case .resumeApp: self = .resumeApp
        // In tables of their own, which no other rule reads or writes: OperatorTests tries them.
        case .putConsoleToken, .removeConsoleToken, .noteAudit, .settleAudit:
            preconditionFailure("\(request) is not tried in pairs")
        }
    }

    private init(_ request: WebhookRequest) {
        switch request {
        case .create: self = .createWebhook
        case .change: self = .changeWebhook
        case .remove: self = .removeWebhook
        case .rotate: self = .rotateSecret
        case .endRotation: self = .endRotation
        case .undoRotation: self = .undoRotation
        case .test: self = .testWebhook
        case .claim: self = .claimDeliveries
        case .finish: self = .finishDelivery
        }
    }

    private init(_ request: ScheduleRequest) {
        switch request {
        case .add(_, let new, _):
            switch new.content {
            case .message: self = .schedule
            case .announcement: self = .scheduleAnnouncement
            }
        case .cancel: self = .cancel
        case .publishDue: self = .publishDue
        }
    }

    private init(_ request: CampaignRequest) {
        switch request {
        case .create: self = .createCampaign
        case .control(_, _, let control, _):
            switch control {
            case .pause: self = .pauseCampaign
            case .resume: self = .resumeCampaign
            case .cancel: self = .cancelCampaign
            }
        case .tag(let change, _): self = change.device == nil ? .tagUser : .tagDevice
        case .advance: self = .advanceCampaigns
        }
    }
}

/// What two operations have in common.
enum ObjectKind: CaseIterable {
    case message, announcement, conversation, user, device, app
    /// What the server does by itself looks at everything.
    case store
}

/// Whose doing an operation on an object is.
enum Party {
    /// The backend's, an administrator's or the server's, and it names nobody beside the object.
    case nobody
    /// The user who asks, or the one whom the backend names.
    case anyone
    /// The object is the user who asks.
    case own
    /// Another user than the object asks.
    case other
}

extension Operation {
    private static let rolesOfAll = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0, $0.everyRole) })

    /// The objects it is about.
    var roles: [ObjectKind: Party] { Self.rolesOfAll[self] ?? [:] }

    private var everyRole: [ObjectKind: Party] {
        switch self {
        case .create, .leave, .end, .clear, .setMetadata, .mute, .unmute:
            [.conversation: .anyone, .user: .own]
        case .add, .remove: [.conversation: .anyone, .user: .other]
        case .send: [.message: .anyone, .conversation: .anyone, .user: .own, .device: .anyone]
        case .edit, .delete, .hide, .read:
            [.message: .anyone, .conversation: .anyone, .user: .own]
        case .block, .unblock: [.user: .other]
        case .open, .sync, .acknowledge, .changeState, .endSession, .reauthenticate, .forget:
            [.device: .anyone, .user: .own]
        // It names the device alone.
        case .abandon: [.device: .nobody]
        case .readAnnouncement: [.announcement: .anyone, .user: .own]
        case .backendCreate: [.conversation: .nobody, .user: .nobody]
        case .backendAdd, .backendRemove, .backendMute, .backendUnmute:
            [.conversation: .anyone, .user: .nobody]
        case .backendBlock, .backendUnblock: [.user: .nobody]
        case .publish, .backendEdit, .backendDelete, .schedule:
            [.message: .nobody, .conversation: .nobody]
        case .publishAs: [.message: .anyone, .conversation: .anyone, .user: .nobody]
        case .backendEnd, .backendMetadata: [.conversation: .nobody]
        case .announce, .scheduleAnnouncement: [.announcement: .nobody, .user: .nobody]
        case .takeBack: [.announcement: .nobody]
        case .cancel: [.message: .nobody, .announcement: .nobody]
        case .deleteUser, .revoke, .challenge, .suspendUser, .resumeUser, .tagUser:
            [.user: .nobody]
        case .removeDevice, .tagDevice: [.device: .anyone, .user: .nobody]
        case .createWebhook, .changeWebhook, .removeWebhook, .rotateSecret, .endRotation,
            .undoRotation, .testWebhook, .createCampaign, .pauseCampaign, .resumeCampaign,
            .cancelCampaign,
            .putApp, .removeApp, .putIssuerKey, .removeIssuerKey, .putAPIKey, .removeAPIKey,
            .putCredential,
            .removeCredential, .suspendApp, .resumeApp:
            [.app: .nobody]
        case .continueFanOut, .continueDeletions, .coalesceReceipts, .enforceRetention, .start,
            .restore, .claimPushes, .finishPush, .keepProviderToken, .keepTicketKeys,
            .sweepWakes, .keepAlive, .beat, .order, .publishDue, .advanceCampaigns,
            .claimDeliveries, .finishDelivery:
            [.store: .nobody]
        }
    }
}

extension Operation {
    /// It makes a message, or the wish to have one.
    var makesMessages: Bool { [.send, .publish, .publishAs, .schedule].contains(self) }

    /// The app must have what it makes before the pair can be tried.
    func isNeeded(by pair: OperationPair) -> Bool {
        func has(_ operations: Operation...) -> Bool {
            operations.contains(pair.first) || operations.contains(pair.second)
        }
        return switch self {
        case .putIssuerKey: has(.removeIssuerKey)
        case .putAPIKey: has(.removeAPIKey)
        case .putCredential: has(.removeCredential)
        case .createWebhook:
            has(
                .changeWebhook, .removeWebhook, .rotateSecret, .endRotation, .undoRotation,
                .testWebhook)
        default: has(.pauseCampaign, .resumeCampaign, .cancelCampaign)
        }
    }
}

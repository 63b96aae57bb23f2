import Feed
import Wire

/// Every request that the writer knows, by name.
///
/// Whoever adds one is asked by the compiler where it is measured: the switches here have no
/// default. What they say is held to what is driven: a run fails at a request in a kind that is
/// not named here, and a test looks for each name in the report.
public enum BenchRequest: String, CaseIterable, Sendable {
    case openSession, sync, acknowledge, changeAppState, endSession, abandonSession
    case reauthenticate
    case mutateCreate, mutateAdd, mutateSend, mutateForget, mutateRemove, mutateEdit
    case mutateDelete, mutateEnd, mutateMetadata, mutateMute, mutateBlock, mutateNothing
    case createConversation, addParticipants, publish, removeParticipants, editMessage
    case deleteMessage, deleteConversation, changeMetadata, announce, deleteUser
    case takeBackAnnouncement, mute, block
    case putSetting, removeSetting, removeDevice, revokeSessions, suspendUser, resumeUser
    case suspendApp, resumeApp, removeApp
    case createWebhook, changeWebhook, claimDeliveries, finishDelivery
    case scheduleMessage, cancelScheduled, publishDue
    case createCampaign, controlCampaign, tag, advanceCampaigns
    case continueFanOut, continueDeletions, coalesceReceipts, enforceRetention, start, restore
    case claimPushes, finishPush, keepProviderToken, keepTicketKeys, sweepWakes, keepAlive
    case beat, order

    /// The kinds in which a request is driven, or why none does.
    public enum Place: Equatable, Sendable {
        case kinds([BenchKind])
        case none(String)
    }

    init(_ request: StoreRequest) {
        switch request {
        case .openSession: self = .openSession
        case .sync: self = .sync
        case .acknowledge: self = .acknowledge
        case .changeAppState: self = .changeAppState
        case .mutate(let request): self.init(request.mutation.operation)
        case .endSession: self = .endSession
        case .abandonSession: self = .abandonSession
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
        case .createConversation: self = .createConversation
        case .addParticipants: self = .addParticipants
        case .publish: self = .publish
        case .removeParticipants: self = .removeParticipants
        case .editMessage: self = .editMessage
        case .deleteMessage: self = .deleteMessage
        case .deleteConversation: self = .deleteConversation
        case .changeMetadata: self = .changeMetadata
        case .announce: self = .announce
        case .takeBackAnnouncement: self = .takeBackAnnouncement
        case .deleteUser: self = .deleteUser
        case .mute: self = .mute
        case .block: self = .block
        }
    }

    private init(_ operation: Mutation.Operation?) {
        switch operation {
        case nil: self = .mutateNothing
        case .createConversation: self = .mutateCreate
        case .addParticipants: self = .mutateAdd
        case .sendMessage: self = .mutateSend
        case .forgetDevice: self = .mutateForget
        case .removeParticipants: self = .mutateRemove
        case .editMessage: self = .mutateEdit
        case .deleteMessage: self = .mutateDelete
        case .deleteConversation: self = .mutateEnd
        case .changeMetadata: self = .mutateMetadata
        case .muteConversation: self = .mutateMute
        case .blockUser: self = .mutateBlock
        }
    }

    private init(_ request: Administration) {
        switch request {
        case .putApp, .putIssuerKey, .putAPIKey, .putPushCredential, .putConsoleToken, .noteAudit,
            .settleAudit:
            self = .putSetting
        case .removeIssuerKey, .removeAPIKey, .removePushCredential, .removeConsoleToken:
            self = .removeSetting
        case .removeDevice: self = .removeDevice
        case .revokeSessions: self = .revokeSessions
        case .suspendUser: self = .suspendUser
        case .resumeUser: self = .resumeUser
        case .suspendApp: self = .suspendApp
        case .resumeApp: self = .resumeApp
        case .removeApp: self = .removeApp
        }
    }

    private init(_ request: WebhookRequest) {
        switch request {
        case .create: self = .createWebhook
        case .change, .remove, .rotate, .endRotation, .undoRotation, .test: self = .changeWebhook
        case .claim: self = .claimDeliveries
        case .finish: self = .finishDelivery
        }
    }

    private init(_ request: ScheduleRequest) {
        switch request {
        case .add: self = .scheduleMessage
        case .cancel: self = .cancelScheduled
        case .publishDue: self = .publishDue
        }
    }

    private init(_ request: CampaignRequest) {
        switch request {
        case .create: self = .createCampaign
        case .control: self = .controlCampaign
        case .tag: self = .tag
        case .advance: self = .advanceCampaigns
        }
    }

    public var place: Place {
        switch self {
        case .openSession: .kinds([.open, .tokenChange])
        case .sync: .kinds([.sync])
        case .acknowledge: .kinds([.acknowledge, .acknowledgeRanges, .read, .readRanges])
        case .changeAppState: .kinds([.appState])
        case .endSession: .kinds([.endSession])
        case .abandonSession: .kinds([.abandonSession])
        case .reauthenticate: .kinds([.reauthenticate])
        case .mutateCreate: .kinds([.mutateCreate])
        case .mutateAdd: .kinds([.mutateAdd])
        case .mutateSend: .kinds([.mutateSend])
        case .mutateForget: .kinds([.forget])
        case .mutateRemove: .kinds([.mutateRemove])
        case .mutateEdit: .kinds([.mutateEdit])
        case .mutateDelete: .kinds([.mutateDelete, .mutateHide])
        case .mutateEnd: .kinds([.mutateClear, .mutateEnd])
        case .mutateMetadata: .kinds([.mutateMetadata])
        case .mutateMute: .kinds([.mute])
        case .mutateBlock: .kinds([.block])
        case .mutateNothing: .none("it is refused")
        case .createConversation: .kinds([.create])
        case .addParticipants: .kinds([.add])
        case .publish:
            .kinds([.publish, .publishHundred, .publishAsleep, .groupPublish, .groupAsleep])
        case .removeParticipants: .kinds([.remove, .groupRemove])
        case .editMessage: .kinds([.edit, .groupEdit])
        case .deleteMessage: .kinds([.delete])
        case .deleteConversation: .kinds([.end, .groupEnd])
        case .changeMetadata: .kinds([.metadata])
        case .announce: .kinds([.announce, .announceThousand])
        case .takeBackAnnouncement: .kinds([.announceThousand])
        case .deleteUser: .kinds([.deleteUser])
        case .mute, .block: .none("the same rule as a device's, without its number")
        case .putSetting, .removeSetting: .kinds([.administer])
        case .removeDevice: .kinds([.removeDevice])
        case .revokeSessions: .kinds([.revoke])
        case .suspendUser, .resumeUser: .kinds([.suspendUser])
        case .suspendApp: .kinds([.suspendApp])
        case .resumeApp: .none("one row; what waited goes on in the turns of others")
        case .removeApp: .kinds([.removeApp])
        case .createWebhook, .changeWebhook, .claimDeliveries, .finishDelivery:
            .kinds([.webhook])
        case .scheduleMessage, .cancelScheduled, .publishDue: .kinds([.schedule])
        case .createCampaign, .controlCampaign, .advanceCampaigns: .kinds([.campaign])
        case .tag: .kinds([.tag])
        case .continueFanOut:
            .kinds([
                .announceThousand, .groupPublish, .groupEdit, .groupRemove, .groupEnd,
                .groupAsleep,
            ])
        case .continueDeletions: .kinds([.deleteUser])
        case .coalesceReceipts: .kinds([.receipts])
        case .enforceRetention: .kinds([.groupEnd, .removeApp, .retention])
        case .start: .kinds([.start])
        case .restore: .none("made of a backup, before anybody is served")
        case .claimPushes, .finishPush: .kinds([.pushes])
        case .keepProviderToken: .kinds([.providerToken])
        case .keepTicketKeys: .none("four rows, twice a day")
        case .sweepWakes: .kinds([.suspendApp, .removeApp, .start, .expire])
        case .keepAlive: .kinds([.alive])
        case .beat, .order: .none("of stores that several nodes share")
        }
    }

    func isDriven(in kind: BenchKind) -> Bool {
        guard case .kinds(let kinds) = place else { return false }
        return kinds.contains(kind)
    }
}

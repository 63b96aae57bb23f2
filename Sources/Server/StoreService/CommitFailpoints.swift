import Failpoints
import Feed
import Model
import Wake
import Wire

// Which failpoints a transaction comes by: by what was asked, and by what came of it where a
// request may come to nothing.

extension Failpoint {
    /// A transaction of `requests` is at this stage; `outcomes` as far as they are known.
    static func hit(
        _ stage: CommitStage, _ requests: [StoreRequest],
        _ outcomes: [Result<StoreOutcome, StoreError>] = []
    ) {
        guard isArmed else { return }
        for (index, request) in requests.enumerated() {
            guard index < outcomes.count else {
                for kind in request.commitKinds { hit(.commit(stage, kind)) }
                continue
            }
            guard case .success(let outcome) = outcomes[index] else { continue }
            for kind in request.commitKinds(outcome) { hit(.commit(stage, kind)) }
        }
    }

    static func hit(
        _ stage: CommitStage, _ requests: [StoreRequest], _ results: [StoreResult]
    ) {
        guard isArmed else { return }
        let outcomes = results.map { result -> Result<StoreOutcome, StoreError> in
            switch result {
            case .committed(let outcome): .success(outcome)
            case .failed(let error): .failure(error)
            case .read: preconditionFailure("a request answered with a reading")
            }
        }
        hit(stage, requests, outcomes)
    }
}

extension StoreRequest {
    fileprivate func commitKinds(_ outcome: StoreOutcome) -> [Failpoint.CommitKind] {
        var kinds: [Failpoint.CommitKind] = []
        switch (self, outcome.answer) {
        case (_, .ended), (_, .refused), (_, .idempotencyMismatch): return []
        case (.continueFanOut, .progressed(0, _)), (.continueDeletions, .progressed(0, _)),
            (.coalesceReceipts, .progressed(0, _)),
            (.enforceRetention, .progressed(0, _)), (.sweepWakes, .progressed(0, _)),
            (.schedules, .progressed(0, _)),
            (.finishPush, .pushFinished(nil)), (.webhooks, .deliveryFinished(nil)),
            (.campaigns(.advance), .progressed(0, _)):
            break
        case (.openSession(let request), .opened(let opened)):
            kinds = commitKinds
            if request.push != nil, opened.isPushTokenHeld, !opened.isPushRefused {
                kinds.append(.pushToken)
            }
        case (_, .pushes(let claimed)):
            kinds = claimed.jobs.map { job in
                switch job.kind {
                case .silent: .claimSilent
                case .alert: .claimAlert
                case .badge: .claimBadge
                case .campaign: .claimCampaign
                }
            }
        case (_, .deliveries(let claimed)):
            kinds = claimed.jobs.isEmpty ? [] : [.claimDelivery]
        default: kinds = commitKinds
        }
        if outcome.effects.wakes.demotions > 0 { kinds.append(.demotion) }
        if outcome.effects.wakes.recoveries > 0 { kinds.append(.recovery) }
        if outcome.effects.wakes.released > 0 { kinds.append(.alertRelease) }
        return kinds
    }

    /// By what is asked alone.
    fileprivate var commitKinds: [Failpoint.CommitKind] {
        switch self {
        case .start: [.start]
        // Of `rouse restore`; no server commits it.
        case .restore: []
        // Of stores that several nodes share.
        case .beat, .order: []
        case .openSession(let request): request.commitKinds
        case .sync(let request): [.sync] + request.sync.commitKinds
        case .acknowledge(let request):
            request.reads.isEmpty ? [.acknowledge] : [.acknowledge, .read]
        case .changeAppState: [.appState]
        case .mutate(let request): request.mutation.commitKinds
        case .endSession, .abandonSession: [.endSession]
        case .reauthenticate: [.reauthenticate]
        case .change(_, let change, _): [change.commitKind]
        case .webhooks(let request): request.commitKinds
        case .schedules(.add): [.schedule]
        case .schedules(.cancel): [.cancelScheduled]
        case .schedules(.publishDue): [.publishScheduled]
        case .campaigns(let request): [request.commitKind]
        case .continueDeletions: [.userDeletion]
        case .administer(let request): request.commitKind.map { [$0] } ?? []
        case .continueFanOut: [.fanOut]
        case .coalesceReceipts: [.receipts]
        case .enforceRetention: [.retention]
        case .sweepWakes: [.sweep]
        case .keepAlive: [.keepAlive]
        case .claimPushes, .rested: []
        case .finishPush: [.finishPush]
        case .keepProviderToken: [.providerToken]
        // One that was lost is drawn anew.
        case .keepTicketKeys: []
        }
    }
}

extension Change {
    fileprivate var commitKind: Failpoint.CommitKind {
        switch self {
        case .createConversation: .createConversation
        case .addParticipants: .addParticipants
        case .publish: .publish
        case .removeParticipants: .removeParticipants
        case .editMessage: .editMessage
        case .deleteMessage: .deleteMessage
        case .deleteConversation: .deleteConversation
        case .changeMetadata: .changeMetadata
        case .announce: .announce
        case .takeBackAnnouncement: .takeBackAnnouncement
        case .deleteUser: .deleteUser
        case .mute: .mute
        case .block: .block
        }
    }
}

extension WebhookRequest {
    fileprivate var commitKinds: [Failpoint.CommitKind] {
        switch self {
        case .create: [.createWebhook]
        case .change: [.changeWebhook]
        case .remove: [.removeWebhook]
        case .rotate, .endRotation, .undoRotation: [.rotateWebhook]
        case .test: [.testWebhook]
        case .claim: []
        case .finish: [.finishDelivery]
        }
    }
}

extension CampaignRequest {
    fileprivate var commitKind: Failpoint.CommitKind {
        switch self {
        case .create: .createCampaign
        case .control: .controlCampaign
        case .tag: .changeTags
        case .advance: .campaignStep
        }
    }
}

extension OpenSession {
    fileprivate var commitKinds: [Failpoint.CommitKind] {
        var kinds: [Failpoint.CommitKind] = []
        switch credential {
        case .identity: kinds.append(.login)
        case .sessionToken: kinds.append(.resume)
        }
        if wake != nil { kinds.append(.wakeAnswered) }
        return kinds + (sync?.commitKinds ?? [])
    }
}

extension SyncFrame {
    fileprivate var commitKinds: [Failpoint.CommitKind] {
        (reads.isEmpty ? [] : [.read]) + mutations.flatMap(\.commitKinds)
    }
}

extension Mutation {
    fileprivate var commitKinds: [Failpoint.CommitKind] {
        switch operation {
        case .createConversation: [.clientConversation]
        case .addParticipants: [.clientParticipants]
        case .sendMessage: [.clientMessage]
        case .forgetDevice: [.logout]
        case .removeParticipants: [.clientRemoval]
        case .editMessage: [.clientEdit]
        case .deleteMessage: [.clientDeletion]
        case .deleteConversation: [.clientConversationDeletion]
        case .changeMetadata: [.clientMetadata]
        case .muteConversation: [.mute]
        case .blockUser: [.block]
        case nil: []
        }
    }
}

extension Administration {
    /// None: nothing is told before the change itself, which has a kind of its own.
    fileprivate var commitKind: Failpoint.CommitKind? {
        switch self {
        case .putApp: .putApp
        case .removeApp: .removeApp
        case .putIssuerKey: .putIssuerKey
        case .removeIssuerKey: .removeIssuerKey
        case .putAPIKey: .putAPIKey
        case .removeAPIKey: .removeAPIKey
        case .putPushCredential: .putPushCredential
        case .removePushCredential: .removePushCredential
        case .removeDevice: .removeDevice
        case .revokeSessions: .revokeSessions
        case .suspendUser: .suspendUser
        case .resumeUser: .resumeUser
        case .suspendApp: .suspendApp
        case .resumeApp: .resumeApp
        case .putConsoleToken, .removeConsoleToken, .noteAudit, .settleAudit: nil
        }
    }
}

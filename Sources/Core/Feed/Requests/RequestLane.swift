public import Model
import Wire

/// Which of a node's writers carries a request out: requests of one lane keep the order in which
/// they came, and do not wait for each other's locks.
public enum RequestLane: Hashable, Sendable {
    case user(AppID, UserID)
    case device(AppID, DeviceID)
    case conversation(AppID, ConversationID)
    case message(AppID, MessageID)
}

extension StoreRequest {
    /// `nil`: it is about many users, or about none, and the writer that has the duties carries it
    /// out.
    public var lane: RequestLane? {
        switch self {
        // The user may be known to the store alone. Nothing of the session comes before the answer,
        // so that it need not go the user's way.
        case .openSession(let request): .device(request.app, request.device)
        case .abandonSession(let request): .device(request.app, request.device)
        case .sync(let request): .user(request.session.app, request.session.user)
        case .acknowledge(let request): .user(request.session.app, request.session.user)
        case .changeAppState(let request): .user(request.session.app, request.session.user)
        case .mutate(let request): .user(request.session.app, request.session.user)
        case .endSession(let request): .user(request.session.app, request.session.user)
        case .reauthenticate(let request): .user(request.session.app, request.session.user)
        case .change(let app, let change, _): change.lane(in: app)
        case .webhooks, .schedules, .campaigns, .administer, .continueFanOut, .continueDeletions,
            .coalesceReceipts, .enforceRetention, .start, .restore, .claimPushes, .finishPush,
            .keepProviderToken, .keepTicketKeys, .sweepWakes, .keepAlive, .rested, .beat, .order:
            nil
        }
    }
}

extension Change {
    fileprivate func lane(in app: AppID) -> RequestLane? {
        func lane(_ conversation: ConversationID?) -> RequestLane? {
            conversation.map { .conversation(app, $0) }
        }
        return switch self {
        case .publish(let publication): lane(publication.message.conversation)
        case .createConversation(let creation): lane(creation.conversation)
        case .addParticipants(let addition): lane(addition.conversation)
        case .removeParticipants(let removal): lane(removal.conversation)
        case .changeMetadata(let change): lane(change.conversation)
        case .deleteConversation(let conversation): lane(conversation)
        case .editMessage(let edit): edit.message.map { .message(app, $0) }
        case .deleteMessage(let message): message.map { .message(app, $0) }
        case .deleteUser(let user): .user(app, user)
        case .mute(let mute): .user(app, mute.user)
        case .block(let block): .user(app, block.user)
        case .announce, .takeBackAnnouncement: nil
        }
    }
}

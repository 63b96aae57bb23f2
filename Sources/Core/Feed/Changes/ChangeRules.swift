import Model
import Wire

extension Work {
    /// Carries out a change, whoever makes it: what may differ is what the actor reaches.
    func carryOut(
        _ change: Change, in app: AppID, by actor: Actor
    ) throws(RuleFailure) -> StoreAnswer {
        switch change {
        case .createConversation(let request):
            return .conversation(try createConversation(app, request, by: actor).answered)
        case .addParticipants(let request):
            return .conversation(try addParticipants(app, request, by: actor).answered)
        case .removeParticipants(let request):
            return .conversation(try removeParticipants(app, request, by: actor).answered)
        case .publish(let request):
            return .published(
                try sendMessage(app, request, by: actor))
        case .editMessage(let request):
            return .edited(try editMessage(app, request, by: actor))
        case .deleteMessage(let message):
            try deleteMessage(app, message, by: actor)
            return .done
        case .deleteConversation(let conversation):
            try deleteConversation(app, conversation, by: actor)
            return .done
        case .changeMetadata(let request):
            return .metadata(try changeMetadata(app, request, by: actor))
        case .announce(let request): return .announced(try announce(app, request))
        case .takeBackAnnouncement(let announcement):
            try takeBackAnnouncement(app, announcement)
            return .done
        case .deleteUser(let user): return try deleteUser(app, user)
        case .mute(let request):
            try mute(app, request)
            return .done
        case .block(let request):
            try block(app, request)
            return .done
        }
    }
}

/// What a client's operation comes to.
enum ClientChange {
    /// Of what others see, too: the same as a backend's.
    case shared(Change)
    /// Of what only its user sees, on all devices.
    case hideMessage(MessageID?)
    case clearConversation(ConversationID?)
    case mute(MuteConversation)
    /// Of this device.
    case forgetDevice
}

extension Mutation.Operation {
    func change(by user: UserID) -> ClientChange {
        switch self {
        case .createConversation(let request): .shared(.createConversation(request))
        case .addParticipants(let request): .shared(.addParticipants(request))
        case .sendMessage(let request):
            .shared(.publish(Publication(message: request, sender: user.name)))
        case .forgetDevice: .forgetDevice
        case .removeParticipants(let request): .shared(.removeParticipants(request))
        case .editMessage(let request): .shared(.editMessage(request))
        case .deleteMessage(let request):
            request.forEveryone
                ? .shared(.deleteMessage(request.message)) : .hideMessage(request.message)
        case .deleteConversation(let request):
            request.forEveryone
                ? .shared(.deleteConversation(request.conversation))
                : .clearConversation(request.conversation)
        case .changeMetadata(let request): .shared(.changeMetadata(request))
        case .muteConversation(let request): .mute(request)
        case .blockUser(let request):
            .shared(.block(BlockChange(user, UserID(request.user), isBlocked: request.blocked)))
        }
    }
}

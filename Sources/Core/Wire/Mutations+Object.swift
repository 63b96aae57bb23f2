import Model

extension Mutation {
    /// Whether it ends the sessions of its device.
    public var isLogout: Bool {
        if case .forgetDevice = operation { true } else { false }
    }

    /// Id of the object it makes or changes; empty: none.
    public var object: [UInt8] {
        switch operation {
        case .createConversation(let request): request.conversation?.bytes ?? []
        case .addParticipants(let request): request.conversation?.bytes ?? []
        case .sendMessage(let request): request.message?.bytes ?? []
        case .removeParticipants(let request): request.conversation?.bytes ?? []
        case .editMessage(let request): request.message?.bytes ?? []
        case .deleteMessage(let request): request.message?.bytes ?? []
        case .deleteConversation(let request): request.conversation?.bytes ?? []
        case .changeMetadata(let request): request.conversation?.bytes ?? []
        case .muteConversation(let request): request.conversation?.bytes ?? []
        case .forgetDevice, .blockUser, nil: []
        }
    }
}

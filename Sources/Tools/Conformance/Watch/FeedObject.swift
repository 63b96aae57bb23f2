import Model
import Wire

/// Tells objects of a feed apart (SYN-3): a tombstone is a version of what it names.
struct FeedObject: Hashable {
    enum Kind: Hashable {
        case conversation, participant, message, receipt, readMark, metadata, announcement
        case settings, block, unknown
    }

    let kind: Kind
    let conversation: ConversationID?
    let object: [UInt8]
    let user: String

    init(_ entry: Entry) {
        var object: [UInt8] = []
        var user = ""
        switch entry.body {
        case .conversationState: kind = .conversation
        case .participant(let state):
            kind = .participant
            user = state.user
        case .message:
            kind = .message
            object = entry.object
        case .receipt(let state):
            kind = .receipt
            user = state.user
        case .readMark: kind = .readMark
        case .tombstone(let state):
            let kindOfOne: Kind = entry.conversation == nil ? .announcement : .message
            kind = state.conversation ? .conversation : kindOfOne
            object = state.conversation ? [] : entry.object
        case .metadata: kind = .metadata
        case .announcement:
            kind = .announcement
            object = entry.object
        case .conversationSettings: kind = .settings
        case .block(let state):
            kind = .block
            user = state.user
        case nil: kind = .unknown
        }
        conversation = entry.conversation
        self.object = object
        self.user = user
    }

    /// For people.
    var name: String { user.isEmpty ? "\(kind)" : "\(kind) of \(user)" }
}

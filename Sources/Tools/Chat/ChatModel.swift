public import AppLife
public import Model
public import RouseClient
public import SyncClient
import Wire

/// What stands on the terminal: the app, and the phone beside it.
public struct ChatModel: Sendable {
    /// What the system does with the app.
    public enum Phase: Equatable, Sendable {
        case front
        /// The phone is locked; the app may run on for a while.
        case background
        case suspended
        /// There is no process.
        case killed

        var words: String {
            switch self {
            case .front: "in front"
            case .background: "in the background"
            case .suspended: "suspended"
            case .killed: "not running"
            }
        }
    }

    public var user: String
    public var phase = Phase.killed
    public var connection = ConnectionState.offline
    public var conversations: [ConversationRow] = []
    /// The list was told, and everything was here since the app was started: what is not in it
    /// does not exist.
    public var hasList = false
    public var hasSynced = false
    public var trouble = ChatTrouble()
    public var opened: ConversationID?
    public var window = MessageWindow()
    /// What is seen of it; `nil`: the newest.
    public var place: ChatPlace?
    /// The first line that is seen of the list or of the help.
    public var top = 0
    /// Who types in the open conversation.
    public var typing: [String] = []
    /// On the phone's screen, newest first.
    public var notices: [AppNotice] = []
    public var icon: UInt32 = 0
    /// What was said last to who sits here.
    public var remark = ""
    public var showsHelp = false
    public var editor = LineEditor()

    public init(user: String) { self.user = user }

    public var openRow: ConversationRow? { conversations.first { $0.id == opened } }

    /// What `/edit` and `/delete` are about.
    enum LastOwn: Equatable {
        case none
        /// The server has not given it a place: nothing can be said of it yet.
        case waits
        case refused(MessageRow)
        case sent(MessageRow)
    }

    /// The last message of the user's that stands in the open conversation, and no other.
    var lastOwn: LastOwn {
        guard let row = window.rows.last(where: \.isOwn) else { return .none }
        if row.position != nil { return .sent(row) }
        if case .refused = row.delivery { return .refused(row) }
        return .waits
    }

    /// Another user begins or ends something in the open conversation. Who looks away, or whose
    /// look is over, may type still.
    mutating func heard(_ kind: SignalKind, of user: String) {
        switch kind {
        case .typing: if !typing.contains(user) { typing.append(user) }
        case .typingEnded: typing.removeAll { $0 == user }
        case .present, .away, .unspecified: break
        }
    }

    /// A conversation's title, or who else is in it.
    public func name(of row: ConversationRow) -> String {
        if let title = row.title, !title.isEmpty { return title }
        let others = row.participants.filter { $0 != user }
        return others.isEmpty ? "only you" : others.joined(separator: ", ")
    }

    /// By its number in the list, or by name.
    public func conversation(named word: String) -> ConversationRow? {
        if let number = Int(word), number > 0, conversations.indices.contains(number - 1) {
            return conversations[number - 1]
        }
        return conversations.first { name(of: $0) == word }
            ?? conversations.first { $0.participants.contains(word) }
    }
}

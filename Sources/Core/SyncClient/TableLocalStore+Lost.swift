import Model
import Wire

// What a restored server has lost of this user's.
extension TableLocalStore {
    /// Own objects that a restored server has lost (HIS-21), in the order they were made.
    struct Lost {
        private let since: UInt64?
        private let user: String
        private var conversations: [(made: UInt64, create: CreateConversation)] = []
        /// With the position that the lost history had given it.
        private var messages: [(made: UInt64, position: UInt64, message: SendMessage)] = []

        init(
            since: Timestamp?, _ transaction: any StoreTransaction
        ) throws(StoreError) {
            self.since = since?.milliseconds
            user = String(
                decoding: try TableLocalStore.fact(Fact.user, transaction)?.bytes ?? [],
                as: UTF8.self)
        }

        /// Above which position the user sees messages of the conversation; `nil`: the user does
        /// not take part any more.
        func reach(
            in conversation: [UInt8], _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> UInt64? {
            try TableLocalStore.reach(of: Array(user.utf8), in: conversation, snapshot)
        }

        /// Above which position of the lost history messages of a conversation are sent again, now
        /// that a page with it is stored; `nil`: none is.
        ///
        /// What the user saw neither here nor there is of an earlier membership. The page alone
        /// does not say so: its position is another history's, and the user may have been added
        /// again because the joining was lost, or not have left in it.
        ///
        /// - Parameter before: the user's reach before the page.
        func floor(
            in conversation: [UInt8], before: UInt64?, _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> UInt64? {
            guard let now = try reach(in: conversation, snapshot) else { return nil }
            return min(before ?? 0, now)
        }

        /// The row is about to be deleted.
        ///
        /// - Parameter floor: messages at or below it are left out; `nil`: the user has left the
        ///   conversation, and everything is.
        mutating func take(
            _ row: LocalEntryRecord, above floor: UInt64?, _ snapshot: any StoreSnapshot
        ) throws(StoreError) {
            guard let since, let floor, !user.isEmpty else { return }
            let entry: Entry = try TableLocalStore.decoded(row.entry)
            switch entry.body {
            // Who took part in a large one is not known here: its backend makes it again.
            case .conversationState(let state)
            where state.creator.isExactly(user) && state.createdMs >= since
                && state.participants == 0:
                let create = CreateConversation(
                    conversation: entry.conversation,
                    participants: try TableLocalStore.participants(
                        of: row.conversation, without: user, snapshot),
                    distinct: state.distinct,
                    metadata: try TableLocalStore.metadata(of: row.conversation, snapshot),
                    receiptsOff: state.receiptsOff)
                conversations.append((state.createdMs, create))
            case .message(let state)
            where state.sender.isExactly(user) && state.sentMs >= since && state.position > floor:
                messages.append(
                    (
                        state.sentMs, state.position,
                        SendMessage(
                            conversation: entry.conversation, message: MessageID(entry.object),
                            parts: state.parts, push: state.push)
                    ))
            default: break
            }
        }

        /// Own messages below what a page holds of their conversation: nobody knows whether the
        /// server has them, and it says so of each that it has (3010).
        mutating func look(
            below position: UInt64, above floor: UInt64?, in conversation: ConversationID,
            _ round: UInt64, _ snapshot: any StoreSnapshot
        ) throws(StoreError) {
            guard let since, position > 0 else { return }
            try TableLocalStore.look(
                at: conversation.bytes, through: position - 1, first: 256, snapshot
            ) { row throws(StoreError) in
                guard row.round != round else { return true }
                let entry: Entry = try TableLocalStore.decoded(row.entry)
                // Those below are older.
                if case .message(let state) = entry.body, state.sentMs < since { return false }
                try take(row, above: floor, snapshot)
                return true
            }
        }

        /// Messages that the server had accepted and the feed not told of: none are left of those
        /// that it has.
        mutating func takeSent(_ snapshot: any StoreSnapshot) throws(StoreError) {
            guard let since else { return }
            for row in try TableLocalStore.accepted(snapshot)
            where row.queuedAt.milliseconds >= since {
                guard try reach(in: row.conversation, snapshot) != nil else { continue }
                let send: SendMessage = try TableLocalStore.decoded(row.send)
                messages.append((row.queuedAt.milliseconds, row.position, send))
            }
        }

        /// Before what waits above the floor, which may need it.
        mutating func enqueue(
            at time: Timestamp, above floor: UInt64, _ transaction: any StoreTransaction
        ) throws(StoreError) {
            guard !conversations.isEmpty || !messages.isEmpty else { return }
            try TableLocalStore.raiseNumbers(above: floor, transaction)
            let waiting = try TableLocalStore.takeMutations(above: floor, transaction)
            conversations.sort { $0.made < $1.made }
            // Those of one commit have one time.
            messages.sort { ($0.made, $0.position) < ($1.made, $1.position) }
            for conversation in conversations {
                try TableLocalStore.enqueue(
                    .createConversation(conversation.create), at: time, transaction)
            }
            for message in messages {
                try TableLocalStore.enqueue(.sendMessage(message.message), at: time, transaction)
            }
            try TableLocalStore.enqueue(waiting, transaction)
        }
    }

    private static func metadata(
        of conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> [MetadataChange] {
        guard case .metadata(let state) = try snapshot.entry(.metadata, of: conversation)?.body
        else { return [] }
        return state.values.map { MetadataChange(path: $0.path, value: $0.value) }
    }

    private static func participants(
        of conversation: [UInt8], without user: String, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> [String] {
        var users: [String] = []
        for entry in try snapshot.entries(Scan(.participant, of: conversation, limit: 256)) {
            if case .participant(let state) = entry.body, !state.user.isExactly(user),
                !state.removed
            {
                users.append(state.user)
            }
        }
        return users
    }
}

import Model
import Wire

// What a restored server has lost of this user's.
extension TableLocalStore {
    /// Own objects that a restored server has lost (HIS-21), in the order they were made.
    struct Lost {
        /// What becomes of the messages of a conversation.
        enum Fate {
            /// Everybody who takes part now saw those above this position.
            case again(above: UInt64)
            /// Somebody takes part now who took no part here; or who does is not known.
            case withheld(isKnown: Bool)
            /// The conversation is not there. Perhaps whoever made it makes it again.
            case awaited
        }

        /// A conversation whose messages are looked through.
        struct Place {
            var conversation: [UInt8]
            /// Messages at or below it are left out; `nil`: the user has left, and all are.
            var floor: UInt64?
            var fate: Fate
            /// Of which snapshot what is stored of who takes part is; `nil`: of none.
            var round: UInt64?
        }

        private let since: UInt64?
        private let user: [UInt8]
        private var blocks: [String] = []
        private var conversations: [(made: UInt64, create: CreateConversation)] = []
        private var again: [LostMessage] = []
        private var withheld: [LostMessage] = []
        private var awaited: [LostMessage] = []
        /// Who took part in conversations that are not there.
        private var audiences: [[UInt8]: Audience] = [:]
        private var fates: [[UInt8]: Fate] = [:]

        init(
            since: Timestamp?, _ transaction: any StoreTransaction
        ) throws(StoreError) {
            self.since = since?.milliseconds
            user = try TableLocalStore.fact(Fact.user, transaction)?.bytes ?? []
        }

        /// Above which position the user sees messages of the conversation; `nil`: the user does
        /// not take part any more.
        func reach(
            in conversation: [UInt8], _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> UInt64? {
            try TableLocalStore.reach(of: user, in: conversation, snapshot)
        }

        /// Who takes part as of what is stored; `nil` also where nobody will ask.
        func audience(
            of conversation: [UInt8], _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> Audience? {
            since == nil ? nil : try Audience(of: conversation, snapshot)
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

        /// The rows of those who are blocked by what is stored.
        func heldBlocks(_ snapshot: any StoreSnapshot) throws(StoreError) -> [LocalEntryRecord] {
            guard since != nil else { return [] }
            var held: [LocalEntryRecord] = []
            for row in try snapshot.records(LocalEntryRecord.self, Scan(.block, of: []))
            where try Self.blockedUser(row) != nil {
                held.append(row)
            }
            return held
        }

        private static func blockedUser(
            _ row: LocalEntryRecord
        ) throws(StoreError) -> String? {
            let entry: Entry = try TableLocalStore.decoded(row.entry)
            guard case .block(let state) = entry.body, state.blocked else { return nil }
            return state.user
        }

        /// The blocks that the restored server does not know: the first page holds all. One that it
        /// holds as ended, as of before, was made again since.
        ///
        /// - Parameter held: as they were stored before the page.
        mutating func take(
            _ held: [LocalEntryRecord], unlessOf round: UInt64, _ snapshot: any StoreSnapshot
        ) throws(StoreError) {
            for row in held {
                guard let user = try Self.blockedUser(row) else { continue }
                let told = try snapshot.record(LocalEntryRecord.self, row.key)
                if let told, told.round == round {
                    let isBlocked = try Self.blockedUser(told) != nil
                    if isBlocked || told.version >= row.version { continue }
                }
                blocks.append(user)
            }
        }

        /// A page with the conversation is stored.
        ///
        /// - Parameters:
        ///   - before: who took part before it.
        ///   - round: of which snapshot that is.
        mutating func found(
            _ conversation: [UInt8], above floor: UInt64?, before: Audience?, of round: UInt64?,
            _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> Place {
            var fate = Fate.withheld(isKnown: false)
            if let before, let now = try audience(of: conversation, snapshot) {
                fate =
                    before.sawAll(now, without: user).map { .again(above: $0) }
                    ?? .withheld(isKnown: true)
            }
            fates[conversation] = fate
            return Place(conversation: conversation, floor: floor, fate: fate, round: round)
        }

        /// No page held the conversation, and its rows are about to be deleted: it is made again,
        /// if this user made it and everybody who takes part is known here.
        mutating func lose(
            _ row: LocalEntryRecord, _ snapshot: any StoreSnapshot
        ) throws(StoreError) -> Place {
            let id = row.conversation
            var place = Place(
                conversation: id, floor: try reach(in: id, snapshot), fate: .awaited,
                round: row.round)
            guard let since, place.floor != nil else { return place }
            let entry: Entry = try TableLocalStore.decoded(row.entry)
            let before = try audience(of: id, snapshot)
            if case .conversationState(let state) = entry.body, let before,
                !user.isEmpty, Array(state.creator.utf8) == user, state.createdMs >= since
            {
                let create = CreateConversation(
                    conversation: entry.conversation, participants: before.names(without: user),
                    distinct: state.distinct,
                    metadata: try TableLocalStore.metadata(of: id, snapshot),
                    receiptsOff: state.receiptsOff)
                conversations.append((state.createdMs, create))
                // Whoever joined late sees in the new one what came before, too.
                place.fate = .again(above: before.sawAll(before, without: user) ?? .max)
            } else {
                audiences[id] = before
            }
            fates[id] = place.fate
            return place
        }

        /// The row is about to be deleted, or the server may not have it.
        mutating func take(_ row: LocalEntryRecord, in place: Place) throws(StoreError) {
            guard let since, let floor = place.floor, !user.isEmpty else { return }
            let entry: Entry = try TableLocalStore.decoded(row.entry)
            guard case .message(let state) = entry.body, Array(state.sender.utf8) == user,
                state.sentMs >= since, state.position > floor
            else { return }
            let send = SendMessage(
                conversation: entry.conversation, message: MessageID(entry.object),
                parts: state.parts, push: state.push)
            let message = LostMessage(
                made: state.sentMs, position: state.position, send: send)
            if let round = place.round, row.round != round {
                // Left of an earlier snapshot: who saw it is not known any more.
                withheld.append(message)
            } else {
                add(message, to: place)
            }
        }

        /// Own messages below what a page holds of their conversation: nobody knows whether the
        /// server has them, and it says so of each that it has (3010). Those that are withheld stay
        /// where they are, until a FETCH tells: only then they show as not sent.
        mutating func look(
            below position: UInt64, in place: Place, _ round: UInt64,
            _ snapshot: any StoreSnapshot
        ) throws(StoreError) {
            guard let since, position > 0 else { return }
            try TableLocalStore.look(
                at: place.conversation, through: position - 1, first: 256, snapshot
            ) { row throws(StoreError) in
                guard row.round != round else { return true }
                let entry: Entry = try TableLocalStore.decoded(row.entry)
                // Those below are older.
                if case .message(let state) = entry.body, state.sentMs < since { return false }
                try take(row, in: place)
                return true
            }
        }

        /// Messages of the conversation that the server had accepted and the feed not told of: none
        /// are left of those that it has.
        mutating func takeSent(
            in place: Place, _ transaction: any StoreTransaction
        ) throws(StoreError) {
            guard let since else { return }
            for row in try TableLocalStore.accepted(transaction)
            where row.conversation == place.conversation {
                try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
                guard place.floor != nil, row.queuedAt.milliseconds >= since else { continue }
                let send: SendMessage = try TableLocalStore.decoded(row.send)
                let message = LostMessage(
                    made: row.queuedAt.milliseconds, position: row.position, send: send)
                add(message, to: place)
            }
        }

        /// What is left of them: their conversations are on no page, and not here.
        mutating func takeSent(_ transaction: any StoreTransaction) throws(StoreError) {
            guard since != nil else { return }
            for conversation in Set(try TableLocalStore.accepted(transaction).map(\.conversation)) {
                let place = Place(
                    conversation: conversation, floor: try reach(in: conversation, transaction),
                    fate: .awaited)
                try takeSent(in: place, transaction)
            }
        }

        private mutating func add(_ message: LostMessage, to place: Place) {
            switch place.fate {
            // Of a position that is not known nothing is known but that there is one.
            case .again(let above) where max(message.position, 1) > above: again.append(message)
            case .again, .withheld: withheld.append(message)
            case .awaited: awaited.append(message)
            }
        }
    }
}

// What is made of it.
extension TableLocalStore.Lost {
    /// Before what waits above the floor, which may need it.
    mutating func enqueue(
        at time: Timestamp, above floor: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard since != nil else { return }
        var waiting: [LocalMutationRecord] = []
        for row in try transaction.records(
            LocalMutationRecord.self, Scan(after: [.unsigned(floor)], limit: .max))
        {
            if try setAside(row) {
                try transaction.delete(LocalMutationRecord.self, [.unsigned(row.number)])
            } else {
                waiting.append(row)
            }
        }
        waiting = try settle(waiting, transaction)
        let made = operations()
        if !made.isEmpty {
            try TableLocalStore.raiseNumbers(above: floor, transaction)
            _ = try TableLocalStore.takeMutations(above: floor, transaction)
            for operation in made {
                try TableLocalStore.enqueue(operation, at: time, transaction)
            }
            try TableLocalStore.enqueue(waiting, transaction)
        }
        try TableLocalStore.withhold(withheld, because: .audienceChanged, transaction)
        try TableLocalStore.keepAwaited(awaited, of: audiences, at: time, transaction)
    }

    private func operations() -> [Mutation.Operation] {
        var made = blocks.map { Mutation.Operation.blockUser(BlockUser(user: $0, blocked: true)) }
        made += conversations.sorted { $0.made < $1.made }.map { .createConversation($0.create) }
        return made + again.sorted().map { .sendMessage($0.send) }
    }

    /// Carries out here what waits to be changed of messages that are not sent: whoever deleted one
    /// must not see it sent later.
    ///
    /// - Returns: what else waits.
    private mutating func settle(
        _ rows: [LocalMutationRecord], _ transaction: any StoreTransaction
    ) throws(StoreError) -> [LocalMutationRecord] {
        var kept = Set((withheld + awaited).compactMap(\.send.message))
        guard !kept.isEmpty else { return rows }
        var changes = MessageChanges()
        var left: [LocalMutationRecord] = []
        for row in rows {
            let mutation: Mutation = try TableLocalStore.decoded(row.mutation)
            let changed: MessageID? =
                switch mutation.operation {
                case .editMessage(let edit): edit.message
                case .deleteMessage(let deletion): deletion.message
                default: nil
                }
            guard let changed, kept.contains(changed) else {
                left.append(row)
                continue
            }
            changes.note(mutation.operation)
            try transaction.delete(LocalMutationRecord.self, [.unsigned(row.number)])
            let result = MutationResult(number: row.number)
            try transaction.put(LocalResultRecord(number: row.number, result: result.encoded))
        }
        kept.subtract(changes.deleted)
        func settled(_ messages: [LostMessage]) -> [LostMessage] {
            messages.compactMap { message in
                guard let id = message.send.message, kept.contains(id) else { return nil }
                var message = message
                if let edit = changes.edits[id] {
                    (message.send.parts, message.send.push) = (edit.parts, edit.push)
                }
                return message
            }
        }
        (withheld, awaited) = (settled(withheld), settled(awaited))
        return left
    }

    /// Whether a message that was not sent yet must not be: it was written for those who took part
    /// then, and somebody else is known to take part now; or its conversation is not there.
    private mutating func setAside(_ row: LocalMutationRecord) throws(StoreError) -> Bool {
        let mutation: Mutation = try TableLocalStore.decoded(row.mutation)
        guard case .sendMessage(let send) = mutation.operation,
            let fate = send.conversation.flatMap({ fates[$0.bytes] })
        else { return false }
        let message = LostMessage(
            made: row.queuedAt.milliseconds, position: LostMessage.unsent, send: send)
        switch fate {
        case .again, .withheld(isKnown: false): return false
        case .withheld(isKnown: true): withheld.append(message)
        case .awaited: awaited.append(message)
        }
        return true
    }
}

extension TableLocalStore {
    fileprivate static func metadata(
        of conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> [MetadataChange] {
        guard case .metadata(let state) = try snapshot.entry(.metadata, of: conversation)?.body
        else { return [] }
        return state.values.map { MetadataChange(path: $0.path, value: $0.value) }
    }
}

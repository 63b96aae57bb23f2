internal import AppLife
public import Model
public import SyncClient
public import Wire

// What a person does. Each is durable when the call returns, and is carried out by the server
// with the next connection; a store that is locked or full throws, in words.
extension Rouse {
    /// Sends a message. What comes back names it: `delivery(of:)` tells how far it gets.
    ///
    /// - Parameter push: what an alert shows; without it the message is shown inside apps only,
    ///   and counts as unread nowhere.
    @discardableResult
    public func send(
        _ parts: [Part], to conversation: ConversationID, push: PushText? = nil
    ) throws(LocalStoreError) -> MessageReference {
        let message = MessageID(madeAt: clock.wall)
        try send(
            .sendMessage(
                SendMessage(
                    conversation: conversation, message: message, parts: parts, push: push)))
        return MessageReference(conversation: conversation, message: message)
    }

    /// Sends a text, which an alert shows too.
    ///
    /// - Parameter title: what stands above it in an alert, as the sender's name.
    @discardableResult
    public func send(
        _ text: String, to conversation: ConversationID, title: String = ""
    ) throws(LocalStoreError) -> MessageReference {
        try send(
            [Part(text)], to: conversation,
            push: PushText(title: title.alerted, body: text.alerted))
    }

    /// Sends a text in run time that the system gives for that alone, as for the answer to a
    /// notification: connects if need be, and returns when the server has answered, or when the
    /// time is over. What it has not answered by then is kept, and leaves with the next connection.
    ///
    /// - Returns: how far it got.
    public func send(
        _ text: String, to conversation: ConversationID, title: String = "",
        within time: Milliseconds
    ) async throws(LocalStoreError) -> Delivery {
        let message = try send(text, to: conversation, title: title)
        _ = await refreshTask(within: time)
        guard let store else { return .queued }
        let sent = replica?.session.mutationsSent ?? []
        // Of one that is here no more, as it was deleted meanwhile, the server has known.
        return try store.delivery(of: message, sent: sent) ?? .accepted
    }

    /// The messages that the server refused and that were neither sent again nor discarded, oldest
    /// first: of all conversations, also of those that are not listed, for one that was deleted
    /// meanwhile, or was never made, is not. At most 256 are kept.
    public func refusedMessages() throws(LocalStoreError) -> [MessageRow] {
        return try usableStore().refusedMessages()
    }

    /// Sends a message again, as it was, that the server refused; whether it was there.
    @discardableResult
    public func resend(_ message: MessageReference) throws(LocalStoreError) -> Bool {
        guard let number = try usableStore().resend(message, at: clock.wall) else { return false }
        hear { $0.mutationQueued(number, now: $1) }
        give(.outbox(isWaiting: true))
        follow(.conversation(message.conversation))
        return true
    }

    /// Forgets a message that the server refused; whether it was there.
    @discardableResult
    public func discard(_ message: MessageReference) throws(LocalStoreError) -> Bool {
        let wasThere = try usableStore().discard(message)
        follow(.conversation(message.conversation))
        return wasThere
    }

    /// The edits, deletions and other changes that the server refused, oldest first, until they are
    /// discarded or the same is changed anew; `RouseChange.results` tells when there may be more.
    /// They count no more in what is shown, and the rows of their messages name them. At most 256
    /// are kept.
    public func refusedChanges() throws(LocalStoreError) -> [RefusedChange] {
        return try usableStore().refusedChanges()
    }

    /// Forgets a change that the server refused, as when its person has been told; whether it was
    /// there.
    @discardableResult
    public func discard(_ change: RefusedChange) throws(LocalStoreError) -> Bool {
        let wasThere = try usableStore().discard(change)
        follow(.pending)
        return wasThere
    }

    /// The server's answer to a change, by the number that `send` and its like gave; `nil`: none
    /// has come, or it is too long ago (1,024 changes at least).
    public func result(of number: UInt64) throws(LocalStoreError) -> MutationResult? {
        return try usableStore().result(of: number)
    }

    /// Replaces the content of a message: on this device at once, for others when the server has
    /// done it.
    ///
    /// - Parameter version: of the row that was changed; if it has another one by then, the server
    ///   refuses (3012). 0: any.
    @discardableResult
    public func edit(
        _ message: MessageID, parts: [Part], push: PushText? = nil, from version: UInt64 = 0
    ) throws(LocalStoreError) -> UInt64 {
        try send(
            .editMessage(
                EditMessage(message: message, parts: parts, push: push, baseVersion: version)))
    }

    /// Replaces the text of a message as its row shows it, and what an alert shows of it; its
    /// other parts, such as pictures, stay. Where an edit waits for its answer this one goes
    /// behind it, and stands whatever became of that.
    @discardableResult
    public func edit(_ row: MessageRow, text: String) throws(LocalStoreError) -> UInt64 {
        let push = row.push.map { PushText(title: $0.title, body: text.alerted) }
        let first = row.parts.firstIndex(where: \.isText) ?? row.parts.endIndex
        var parts = row.parts
        parts.removeAll(where: \.isText)
        parts.insert(Part(text), at: first)
        return try edit(row.id, parts: parts, push: push, from: row.version)
    }

    /// Deletes a message: for everyone, which the server lets only its sender do, or on all devices
    /// of this user. Returns the mutation's number.
    @discardableResult
    public func delete(
        _ message: MessageID, forEveryone: Bool
    ) throws(LocalStoreError) -> UInt64 {
        try send(.deleteMessage(DeleteMessage(message: message, forEveryone: forEveryone)))
    }

    /// Sets a value of a conversation's metadata; `nil` removes it and what is below it.
    @discardableResult
    public func setMetadata(
        _ path: [String], _ value: String?, in conversation: ConversationID
    ) throws(LocalStoreError) -> UInt64 {
        let change = MetadataChange(path: path, value: value ?? "", removed: value == nil)
        return try send(
            .changeMetadata(ChangeMetadata(conversation: conversation, changes: [change])))
    }

    /// Makes a conversation; it is listed when the server has made it.
    @discardableResult
    public func createConversation(
        with users: [String], title: String? = nil
    ) throws(LocalStoreError) -> ConversationID {
        let id = ConversationID(madeAt: clock.wall)
        let metadata = title.map { [MetadataChange(path: ["title"], value: $0)] } ?? []
        try send(
            .createConversation(
                CreateConversation(conversation: id, participants: users, metadata: metadata)))
        return id
    }

    // MARK: - Reading

    /// The person has read one message, and not those before it.
    public func read(_ message: MessageRow) throws(LocalStoreError) {
        guard let position = message.position else { return }
        try read(message.conversation, only: position)
    }

    /// The person has read the message at a position, and not those before it.
    public func read(
        _ conversation: ConversationID, only position: UInt64
    ) throws(LocalStoreError) {
        try read(conversation, from: position, through: position)
    }

    /// The person has read what stands between two positions, both of them too, and not what
    /// stands before.
    public func read(
        _ conversation: ConversationID, from first: UInt64, through last: UInt64
    ) throws(LocalStoreError) {
        let range = InclusiveRange(first: first, last: last)
        try read(ReadReceipt(conversation: conversation, ranges: [range]))
    }

    /// The person has read a conversation up to a position.
    public func markRead(
        _ conversation: ConversationID, through position: UInt64
    ) throws(LocalStoreError) {
        try read(ReadReceipt(conversation: conversation, through: position))
    }

    /// The person has read a conversation as far as it is on this device, wherever the app is: of
    /// what is on its screen `seen` says it.
    public func markRead(_ conversation: ConversationID) throws(LocalStoreError) {
        let window = try usableStore().messageWindow(of: conversation, newest: 1, sent: [])
        // An own message that is only accepted says nothing of those below it.
        guard let position = window.rows.filter(\.isTold).compactMap(\.position).max()
        else { return }
        try markRead(conversation, through: position)
    }

    /// The person has read an announcement (MSG-52): its notification goes, on the user's other
    /// devices too when they hear of it.
    public func read(announcement: MessageID) throws(LocalStoreError) {
        try read(ReadReceipt(announcement: announcement))
        follow(.announcements)
    }

    private func read(_ receipt: ReadReceipt) throws(LocalStoreError) {
        try usableStore()
        let (now, wall) = (clock.now, clock.wall)
        guard let effects = try replica?.read(receipt, now: now, wall: wall) else {
            throw isAbsent
        }
        perform(effects)
        if let conversation = receipt.conversation { follow(.conversation(conversation)) }
        // The server's answer says it too, and comes at once where there is a connection.
        guard replica?.session.isOpen != true else { return }
        let isDue = steps.contains { if case .readHere = $0 { true } else { false } }
        guard !isDue else { return }
        steps.append(.readHere)
        carryOutAll()
    }

    // MARK: - What nobody stores

    /// The person types, or has stopped; call it as often as it happens. It is told to others if
    /// there is a connection (`ClientConfiguration.wantsSignals`).
    public func typing(_ isTyping: Bool = true, in conversation: ConversationID) {
        hear { $0.signal(isTyping ? .typing : .typingEnded, in: conversation, now: $1) }
    }

    /// The person looks at a conversation, or has stopped. It is told again for as long as it
    /// lasts and the app is in front.
    public func looking(_ isLooking: Bool = true, at conversation: ConversationID) {
        hear { $0.signal(isLooking ? .present : .away, in: conversation, now: $1) }
    }
}

extension Part {
    /// A text.
    public init(_ text: String) {
        self.init(mimeType: "text/plain", content: Array(text.utf8))
    }
}

extension Identifier {
    /// A new one: UUIDv7 (RFC 9562 5.7), so that those made one after another stay together in the
    /// stores' indexes.
    init(madeAt time: Timestamp) {
        var random = SystemRandomNumberGenerator()
        self.init(
            high: time.milliseconds << 16 | 0x7000 | random.next() & 0xFFF,
            low: 1 << 63 | random.next() >> 2)
    }
}

extension String {
    /// As much of it as an alert can show: MSG-3 allows title and body 2 KiB together.
    fileprivate var alerted: String {
        guard utf8.count > 1_024 else { return self }
        var cut = ""
        for character in self {
            guard cut.utf8.count + character.utf8.count <= 1_021 else { break }
            cut.append(character)
        }
        return cut + "…"
    }
}

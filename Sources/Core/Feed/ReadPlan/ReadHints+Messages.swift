import Model
import Wake
import Wire

// What comes into feeds: a message, a change of one, and the turn that goes on with them.
extension ReadHints {
    /// The rows that `Work.once` looks at.
    func once(_ app: AppID, _ idempotency: Idempotency?) {
        self.app(app)
        if let idempotency {
            ask(IdempotencyRecord.self, [.app(app), .text(idempotency.key)], lock: .wait)
        }
    }

    func app(_ app: AppID, lock: RowLock = .none) {
        guard isFirst(app, lock: lock) else { return }
        ask(OutboxRecord.self, [.app(app)])
        ask(MetaRecord.self, [.text(MetaRecord.latenciesPrefix + app.name)])
        ask(AppRecord.self, [.app(app)], lock: lock)
    }

    /// The locked conversation, and what may wait for it. Only an id without one may stand for
    /// another.
    private func conversation(_ app: AppID, _ asked: ConversationID) -> ConversationRecord? {
        let key: [ColumnValue] = [.app(app), .identifier(asked)]
        var found = record(ConversationRecord.self, key, lock: .wait)
        if found == nil, isAbsent(ConversationRecord.self, key, lock: .wait),
            let alias = record(AliasRecord.self, key)
        {
            found = record(
                ConversationRecord.self, [.app(app), .identifier(alias.conversation)], lock: .wait)
        }
        if let found, !found.isSettled {
            ask(
                FanOutRecord.self,
                Scan(prefix: [.app(app), .identifier(found.conversation)], limit: 1))
        }
        return found
    }

    func sending(_ app: AppID, _ publication: Publication) {
        let (request, sender) = (publication.message, publication.sender)
        guard let id = request.conversation, let message = request.message else { return }
        if !publication.isIDFresh {
            let key: [ColumnValue] = [.app(app), .identifier(message)]
            ask(MessageRecord.self, key, lock: .wait)
            ask(AnnouncementRecord.self, key)
        }
        if !sender.isEmpty {
            ask(
                ParticipantRecord.self, [.app(app), .identifier(id), .user(UserID(sender))])
        }
        following(.recipients(app, id, sender: sender)) { recipients(app, id, from: sender) }
    }

    func recipients(_ app: AppID, _ id: ConversationID, from sender: String) {
        let found = conversation(app, id)
        recipients(app, found?.conversation ?? id, of: found) { member in
            following(.feed(member, sender: sender)) { feed(of: member, from: sender) }
        }
    }

    /// An edit, or a deletion for everyone.
    func messageChange(_ app: AppID, _ id: MessageID?) {
        guard let id, let message = record(MessageRecord.self, [.app(app), .identifier(id)])
        else { return }
        ask(MessageRecord.self, [.app(app), .identifier(id)], lock: .wait)
        let found = conversation(app, message.conversation)
        recipients(app, message.conversation, of: found) {
            messageEntry(of: $0, at: message.position)
            feed(of: $0, from: message.sender)
        }
    }

    /// Those whom a change is told at once, or by one step of a job.
    ///
    /// - Parameter conversation: `nil`: not known yet.
    private func recipients(
        _ app: AppID, _ id: ConversationID, of conversation: ConversationRecord?,
        _ body: (ParticipantRecord) -> Void
    ) {
        if let conversation, conversation.participants > UInt64(limits.directRecipients) { return }
        let page = participants(app, id)
        for member in page { body(member) }
        // Whether the others are few is not known before they are read.
        guard conversation != nil, page.count == Audience.atOnce, let last = page.last else {
            return
        }
        let others = participants(app, id, after: last.user.name, limit: limits.directRecipients)
        for member in others { body(member) }
    }

    private func participants(
        _ app: AppID, _ id: ConversationID, after user: String = "",
        limit: Int = Audience.atOnce
    ) -> [ParticipantRecord] {
        records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_presence", prefix: [.app(app), .identifier(id)],
                after: user.isEmpty ? nil : [.text(user)], limit: limit))
    }

    /// The rows of a member's feed that a message asks for.
    func feed(of member: ParticipantRecord, from sender: String) {
        let user: [ColumnValue] = [.app(member.app), .user(member.user)]
        let found = sender.isEmpty ? nil : record(UserRecord.self, user, lock: .wait)
        if sender.isEmpty { ask(UserRecord.self, user, lock: .wait) }
        // Looked at again when the user's row is locked.
        ask(ParticipantRecord.self, member.rowKey, isFresh: true)
        guard UserID(sender) != member.user else { return }
        if let found, !found.blocksNobody { ask(BlockRecord.self, user + [.text(sender)]) }
        following(.devices(member.app, member.user)) { devices(member.app, member.user) }
    }

    /// The user's devices, and what each that pushes reach is owed.
    func devices(_ app: AppID, _ user: UserID) {
        let all = records(
            DeviceRecord.self,
            Scan(prefix: [.app(app), .user(user)], limit: WakeRules.devicesMax),
            having: Self.pushToken)
        for device in all {
            ask(WakeRecord.self, device.wakeKey)
            if device.withoutSessionSince == nil {
                ask(
                    SessionRecord.self, device.wakeKey + [.unsigned(RoleKind.app.rawValue)])
            }
            if device.isUnreachable {
                ask(
                    AlertRecord.self,
                    Scan(
                        index: "alert_by_seq", prefix: device.wakeKey, descending: true, limit: 1)
                )
            }
        }
    }

    private static let pushToken: Int = {
        let columns = DeviceRecord.table.columns
        guard let place = columns.firstIndex(where: { $0.name == "push_token" }) else {
            preconditionFailure("a device has a push token")
        }
        return place
    }()

    private func messageEntry(of member: ParticipantRecord, at position: UInt64) {
        for isToBeRead in [true, false] {
            ask(
                EntryRecord.self,
                Scan(
                    index: "entry_by_place",
                    prefix: [
                        .app(member.app), .user(member.user), .identifier(member.conversation),
                        EntryRecord.place(isToBeRead: isToBeRead), .unsigned(position),
                    ],
                    limit: 1))
        }
    }

    // MARK: The turn

    /// Jobs that one turn is expected to look at, at most.
    private static let jobs = 32

    /// The job whose turn it is follows from three reads: the first jobs of all are looked at
    /// together.
    func fanOutTurn() {
        ask(MetaRecord.self, [.text(Work.announcementTurn)])
        ask(AnnouncementBatchRecord.self, Scan(limit: Self.jobs))
        ask(MetaRecord.self, [.text(Work.takingBackTurn)])
        ask(
            AnnouncementAudienceRecord.self,
            Scan(index: "announcement_audience_by_turn", limit: Self.jobs))
        let last = record(MetaRecord.self, [.text(Work.fanOutTurn)])
        let name = String(decoding: last?.bytes ?? [], as: UTF8.self)
        let first = records(FanOutRecord.self, Scan(limit: Self.jobs))
        if first.isEmpty { return }
        let later = records(FanOutRecord.self, Scan(after: [.text(name)], limit: 1))
        guard let app = (later.first ?? first.first)?.app else { return }
        self.app(app)
        ask(
            FanOutRecord.self,
            Scan(index: "fan_out_by_turn", prefix: [.app(app)], limit: Self.jobs))
        let next = first.filter { $0.app == app }.min { $0.turnAt < $1.turnAt }
        if let next { job(next) }
    }

    private func job(_ job: FanOutRecord) {
        let key: [ColumnValue] = [.app(job.app), .identifier(job.conversation)]
        ask(FanOutRecord.self, Scan(prefix: key, limit: 1))
        ask(ConversationRecord.self, key, lock: .wait)
        // When it is served the next one is looked for.
        ask(FanOutRecord.self, Scan(limit: Self.jobs), isFresh: true)
        ask(
            FanOutRecord.self,
            Scan(index: "fan_out_by_turn", prefix: [.app(job.app)], limit: Self.jobs),
            isFresh: true)
        let page = participants(job.app, job.conversation, after: job.cursor)
        guard job.change == .message || job.change == .messageChange,
            let id = MessageID(job.object)
        else {
            for member in page {
                ask(UserRecord.self, [.app(member.app), .user(member.user)], lock: .wait)
            }
            return
        }
        let message = record(MessageRecord.self, [.app(job.app), .identifier(id)])
        for member in page {
            if job.change == .messageChange, let message {
                messageEntry(of: member, at: message.position)
            }
            feed(of: member, from: message?.sender ?? "")
        }
    }
}

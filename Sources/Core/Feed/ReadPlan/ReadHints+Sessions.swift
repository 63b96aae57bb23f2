import Model
import Wake
import Wire

// What a device asks for: its session, what it has applied and read, its mutations.
extension ReadHints {
    func openSession(_ request: OpenSession) {
        app(request.app, lock: .share)
        let app = record(AppRecord.self, [.app(request.app)], lock: .share)
        ask(MetaRecord.self, [.text(MetaRecord.epochName)])
        for name in Work.lockedNames(of: request) {
            ask(UserRecord.self, [.app(request.app), .user(name)], lock: .wait)
        }
        let owners = records(
            DeviceRecord.self,
            Scan(
                index: "device_by_id", prefix: [.app(request.app), .identifier(request.device)],
                limit: 16))
        push(request)
        let user: UserID
        switch request.credential {
        case .identity(let name): user = name
        case .sessionToken(let hash):
            let token = record(SessionTokenRecord.self, [.app(request.app), .blob(hash)])
            guard let token else { return }
            user = token.user
        }
        for other in owners where other.user != user && other.expiresAt == nil {
            ask(UserRecord.self, [.app(other.app), .user(other.user)], lock: .wait)
            ask(DeviceRecord.self, other.wakeKey, lock: .wait)
        }
        let session = SessionKey(
            app: request.app, user: user, device: request.device, role: request.role,
            generation: 0)
        self.session(session)
        ask(
            SessionTokenRecord.self,
            Scan(index: "session_token_by_device", prefix: session.deviceKey, limit: 16))
        ask(
            DeviceRecord.self,
            Scan(prefix: [.app(request.app), .user(user)], limit: WakeRules.devicesMax))
        if request.push != nil { alerts(session.deviceKey) }
        if let wake = request.wake {
            ask(WakeHistoryRecord.self, session.deviceKey + [.identifier(wake)])
        }
        if app != nil, let frame = request.sync { sync(frame, session) }
    }

    private func push(_ request: OpenSession) {
        guard request.role == .app, let push = request.push else { return }
        let environment: PushEnvironmentKind =
            push.environment == .development ? .development : .production
        ask(
            PushCredentialRecord.self,
            Scan(
                prefix: [.app(request.app), .unsigned(environment.rawValue)],
                limit: PushCredentialRecord.countMax))
        ask(
            DeviceRecord.self,
            Scan(
                index: "device_by_token",
                prefix: [.app(request.app), .unsigned(environment.rawValue), .blob(push.token)],
                limit: 16))
    }

    /// Another token drops what was to be sent to the one before.
    private func alerts(_ device: [ColumnValue]) {
        ask(
            AlertRecord.self, Scan(index: "alert_queued", prefix: device, limit: AlertRoom.rows))
    }

    /// The session's row, its user and device, locked, and what the device is owed.
    func session(_ session: SessionKey) {
        self.app(session.app)
        ask(UserRecord.self, [.app(session.app), .user(session.user)], lock: .wait)
        ask(DeviceRecord.self, session.deviceKey, lock: .wait)
        ask(SessionRecord.self, session.deviceKey + [.unsigned(session.role.rawValue)])
        if session.role != .app {
            ask(SessionRecord.self, session.deviceKey + [.unsigned(RoleKind.app.rawValue)])
        }
        ask(WakeRecord.self, session.deviceKey)
        ask(
            ReceiptDueRecord.self, [.app(session.app), .user(session.user)], lock: .wait)
    }

    func sync(_ frame: SyncFrame, _ session: SessionKey) {
        ask(MetaRecord.self, [.text(MetaRecord.epochName)])
        if frame.cursor != nil {
            ask(MetaRecord.self, [.text(MetaRecord.resetsPrefix + session.app.name)])
        }
        for receipt in frame.reads { read(receipt, session) }
        for mutation in frame.mutations { self.mutation(mutation, session) }
    }

    func acknowledge(_ request: Acknowledge) {
        let session = request.session
        self.session(session)
        for receipt in request.reads { read(receipt, session) }
        following(.delivered(request)) { delivered(request) }
    }

    func delivered(_ request: Acknowledge) {
        let session = request.session
        var budget = limits.receiptStep
        var conversations: Set<ConversationID> = []
        for range in request.ranges.merged where budget > 0 && range.first > 0 {
            let entries = records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(session.app), .user(session.user)],
                    after: [.unsigned(range.first - 1)], through: [.unsigned(range.last)],
                    limit: budget))
            budget -= entries.count
            for entry in entries where entry.kind == .message {
                conversations.insert(entry.conversation)
            }
        }
        for id in conversations.sorted().prefix(limits.receiptConversations) {
            receipt(of: session, in: id)
        }
    }

    private func receipt(of session: SessionKey, in id: ConversationID) {
        let key: [ColumnValue] = [.app(session.app), .identifier(id)]
        ask(ConversationRecord.self, key)
        ask(ParticipantRecord.self, key + [.user(session.user)])
        ask(ReceiptRecord.self, key + [.user(session.user)])
    }

    private func read(_ receipt: ReadReceipt, _ session: SessionKey) {
        guard let id = receipt.conversation else { return }
        self.receipt(of: session, in: id)
        let own: [ColumnValue] = [
            .app(session.app), .user(session.user), .identifier(id),
        ]
        ask(
            MessageRecord.self,
            Scan(
                index: "message_by_position", prefix: [.app(session.app), .identifier(id)],
                through: [.unsigned(receipt.ranges.last?.last ?? receipt.through)],
                descending: true, limit: 1))
        ask(
            EntryRecord.self,
            Scan(
                index: "entry_by_place", prefix: own + [EntryRecord.place(isToBeRead: true)],
                after: [.unsigned(receipt.through)], through: [.unsigned(.max >> 1)],
                limit: Int(UnreadCount.most)))
        devices(session.app, session.user)
        if let mark = record(ReadMarkRecord.self, own), mark.version > 0 {
            let prefix: [ColumnValue] = [
                .app(session.app), .user(session.user), .unsigned(EntryKind.readMark.rawValue),
                .identifier(id), .blob([]),
            ]
            ask(EntryRecord.self, Scan(index: "entry_by_object", prefix: prefix, limit: 1))
        }
    }

    func mutation(_ mutation: Mutation, _ session: SessionKey) {
        self.session(session)
        ask(MutationRecord.self, session.deviceKey + [.unsigned(mutation.number)])
        if case .shared(let change) = mutation.operation?.change(by: session.user) {
            expect(change, in: session.app)
        }
    }

    // MARK: The coalescer's turn

    func receiptTurn(users: Int) {
        let limit = max(1, users)
        ask(
            ReceiptDueRecord.self,
            Scan(
                index: "receipt_due_by_due", after: [.timestamp(now + limits.receiptInterval)],
                limit: limit))
        let due = records(
            ReceiptDueRecord.self,
            Scan(index: "receipt_due_by_due", through: [.timestamp(now)], limit: limit))
        for row in due {
            following(.receipts(row.app, row.user)) { receipts(of: row.app, row.user) }
        }
    }

    func receipts(of app: AppID, _ name: UserID) {
        self.app(app)
        let key: [ColumnValue] = [.app(app), .user(name)]
        ask(ReceiptDueRecord.self, key, lock: .wait)
        // Both are looked at again at the end, when the authors are locked, too.
        let pending = records(
            ReceiptRecord.self,
            Scan(index: "receipt_pending", prefix: key, limit: limits.receiptConversations),
            isFresh: true)
        for receipt in pending { self.authors(receipt) }
        let devices = records(
            DeviceRecord.self, Scan(prefix: key, limit: WakeRules.devicesMax), isFresh: true)
        guard let user = record(UserRecord.self, key, lock: .wait) else { return }
        let applied = user.receiptable(devices.map(\.applied).max() ?? 0)
        guard applied > user.receipted else { return }
        let entries = records(
            EntryRecord.self,
            Scan(
                prefix: key, after: [.unsigned(user.receipted)], through: [.unsigned(applied)],
                limit: limits.receiptStep))
        let session = SessionKey(
            app: app, user: name, device: DeviceID(high: 0, low: 0), role: .app, generation: 0)
        let messages = entries.filter { $0.kind == .message }
        for (id, entries) in Dictionary(grouping: messages, by: \.conversation) {
            receipt(of: session, in: id)
            let positions = entries.map(\.position)
            var told = ReceiptRecord(app: app, conversation: id, user: name)
            told.announcedDelivered = max(1, positions.min() ?? 1) - 1
            told.announcedRead = told.announcedDelivered
            told.delivered = positions.max() ?? 0
            authors(told)
        }
    }

    /// The users who are told of the receipt.
    private func authors(_ receipt: ReceiptRecord) {
        let place: [ColumnValue] = [.app(receipt.app), .identifier(receipt.conversation)]
        ask(UserRecord.self, [.app(receipt.app), .user(receipt.user)], lock: .wait)
        ask(ReceiptRecord.self, place + [.user(receipt.user)], isFresh: true)
        ask(ConversationRecord.self, place)
        let reader = record(ParticipantRecord.self, place + [.user(receipt.user)])
        let told = min(receipt.announcedDelivered, receipt.announcedRead)
        let messages = records(
            MessageRecord.self,
            Scan(
                index: "message_by_position", prefix: place,
                after: [.unsigned(max(told, reader?.joinedPosition ?? 0))],
                through: [.unsigned(max(receipt.delivered, receipt.read))],
                limit: limits.receiptStep))
        for author in Set(messages.map { UserID($0.sender) }) where author.isValid {
            ask(ParticipantRecord.self, place + [.user(author)])
            ask(UserRecord.self, [.app(receipt.app), .user(author)], lock: .wait)
            let prefix: [ColumnValue] = [
                .app(receipt.app), .user(author), .unsigned(EntryKind.receipt.rawValue),
                .identifier(receipt.conversation), .blob(Array(receipt.user.name.utf8)),
            ]
            ask(EntryRecord.self, Scan(index: "entry_by_object", prefix: prefix, limit: 1))
        }
    }
}

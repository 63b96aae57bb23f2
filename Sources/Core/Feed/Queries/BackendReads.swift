import Model

// What a backend reads of one snapshot. `nil`: the conversation, message or user is unknown.
extension PageReader {
    func read(
        _ query: BackendQuery, of app: AppID, _ limits: RuleLimits
    ) throws(StoreError) -> BackendReading? {
        switch query {
        case .conversation(let id):
            guard let conversation = try conversation(app, id) else { return nil }
            return .conversation(conversation, metadata: try metadata(of: conversation))
        case .participants(let id, let after, let limit):
            guard let conversation = try conversation(app, id) else { return nil }
            let (rows, next) = try participants(
                of: conversation, after: after, min(limit, limits.listRows))
            return .participants(rows, next: next)
        case .messages(let id, let range):
            guard let conversation = try conversation(app, id) else { return nil }
            return try messages(of: conversation, range, limits)
        case .message(let id):
            guard
                let message = try snapshot.record(
                    MessageRecord.self, [.app(app), .identifier(id)]),
                try conversation(app, message.conversation) != nil
            else { return nil }
            return .message(message)
        case .receipts(let id, let after, let limit):
            guard let conversation = try conversation(app, id) else { return nil }
            let (rows, next) = try participants(
                of: conversation, after: after, min(limit, limits.listRows))
            var all: [ParticipantProgress] = []
            for participant in rows { all.append(try progress(of: participant)) }
            return .receipts(all, next: next)
        case .user(let user): return try view(of: user, app, limits).map { .user($0) }
        case .users(let prefix, let after, let limit):
            let (rows, next) = try users(
                of: app, prefix: prefix, after: after, max(1, min(limit, limits.listRows)))
            return .users(rows, next: next)
        case .allConversations(let after, let limit):
            let (rows, last) = cut(
                try snapshot.records(
                    ConversationRecord.self,
                    Scan(
                        prefix: [.app(app)], after: after.map { [.identifier($0)] },
                        limit: min(limit, limits.listRows) + 1)),
                to: min(limit, limits.listRows))
            return .allConversations(
                rows.filter { $0.deletedAt == nil }, next: last?.conversation)
        case .conversations(let user, let after, let limit, let bytes):
            return try conversations(
                of: user, app, after: after, min(limit, limits.listRows), bytes: bytes)
        case .blocks(let user, let after, let limit):
            return try blocks(of: user, app, after: after, min(limit, limits.listRows))
        case .mutes(let user, let after, let limit):
            return try mutes(of: user, app, after: after, min(limit, limits.listRows))
        case .written(let user, let after, let limit, let bytes):
            return try written(
                by: user, app, after: after, min(limit, limits.listRows), bytes: bytes, limits)
        case .webhooks:
            return .webhooks(
                try snapshot.records(
                    WebhookRecord.self, Scan(prefix: [.app(app)], limit: limits.webhooks)))
        case .webhook(let id):
            return try snapshot.record(WebhookRecord.self, [.app(app), .identifier(id)])
                .map { .webhook($0) }
        case .tokenFeedback(let after, let limit):
            let rows = try snapshot.records(
                TokenFeedbackRecord.self,
                Scan(
                    prefix: [.app(app)], after: [.unsigned(after)],
                    limit: min(limit, limits.listRows)))
            return .tokenFeedback(rows, last: rows.last?.number ?? after)
        case .scheduled(let id):
            return try snapshot.record(ScheduledRecord.self, [.app(app), .identifier(id)])
                .map { .scheduled($0) }
        case .schedule(let state, let after, let limit):
            let (rows, last) = cut(
                try snapshot.records(
                    ScheduledRecord.self,
                    Scan(
                        index: "scheduled_by_state",
                        prefix: [.app(app), .unsigned(state.rawValue)],
                        after: after.map { [.timestamp($0.sendAt), .identifier($0.message)] },
                        limit: min(limit, limits.listRows) + 1)),
                to: min(limit, limits.listRows))
            let next = last.map { SchedulePlace(sendAt: $0.sendAt, message: $0.message) }
            return .schedule(rows, next: next)
        }
    }

    /// Also under an id that was merged into it (MSG-24).
    func conversation(
        _ app: AppID, _ id: ConversationID
    ) throws(StoreError) -> ConversationRecord? {
        let alias = try snapshot.record(AliasRecord.self, [.app(app), .identifier(id)])
        let found = try snapshot.record(
            ConversationRecord.self, [.app(app), .identifier(alias?.conversation ?? id)])
        return found?.deletedAt == nil ? found : nil
    }

    private func metadata(
        of conversation: ConversationRecord
    ) throws(StoreError) -> MetadataRecord {
        try snapshot.record(
            MetadataRecord.self,
            [.app(conversation.app), .identifier(conversation.conversation)])
            ?? MetadataRecord(app: conversation.app, conversation: conversation.conversation)
    }

    /// The members who take part.
    private func participants(
        of conversation: ConversationRecord, after: UserID?, _ limit: Int
    ) throws(StoreError) -> ([ParticipantRecord], next: UserID?) {
        let (rows, last) = cut(
            try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_presence",
                    prefix: [.app(conversation.app), .identifier(conversation.conversation)],
                    after: after.map { [.user($0)] }, limit: limit + 1)),
            to: limit)
        return (rows, last?.user)
    }

    /// One row more than asked for was read: whether there is more is then known.
    private func cut<Row>(_ rows: [Row], to limit: Int) -> ([Row], last: Row?) {
        rows.count > limit ? (Array(rows.prefix(limit)), rows[limit - 1]) : (rows, nil)
    }

    /// Messages read at a time: what is read beyond the piece's bytes is thrown away.
    static let messagesChunk = 16

    private func messages(
        of conversation: ConversationRecord, _ range: MessageRange, _ limits: RuleLimits
    ) throws(StoreError) -> BackendReading {
        let limit = min(range.limit, limits.listRows)
        var found: [MessageRecord] = []
        var bytes = 0
        var beside = range.beside
        while true {
            // Positions begin at 1.
            if range.descending, let beside, beside <= 1 {
                return .messages(found, next: nil)
            }
            let rows = try snapshot.records(
                MessageRecord.self,
                Scan(
                    index: "message_by_position",
                    prefix: [.app(conversation.app), .identifier(conversation.conversation)],
                    after: range.descending ? nil : beside.map { [.unsigned($0)] },
                    through: range.descending ? beside.map { [.unsigned($0 - 1)] } : nil,
                    descending: range.descending, limit: Self.messagesChunk))
            for message in rows {
                let content = try readable(message.app, UserID(""), message.conversation) {
                    () throws(StoreError) in try self.entry(of: message)
                }
                guard content != nil else {
                    beside = message.position
                    continue
                }
                bytes += message.contentBytes
                if found.count == limit || bytes > range.bytes && !found.isEmpty {
                    return .messages(found, next: found.last?.position)
                }
                found.append(message)
                beside = message.position
            }
            if rows.count < Self.messagesChunk { return .messages(found, next: nil) }
        }
    }

    private func progress(
        of participant: ParticipantRecord
    ) throws(StoreError) -> ParticipantProgress {
        let receipt = try snapshot.record(
            ReceiptRecord.self,
            [
                .app(participant.app), .identifier(participant.conversation),
                .user(participant.user),
            ])
        return ParticipantProgress(
            user: participant.user, delivered: receipt?.delivered ?? 0,
            read: receipt?.read ?? 0)
    }

    func view(
        of user: UserID, _ app: AppID, _ limits: RuleLimits
    ) throws(StoreError) -> UserView? {
        let key: [ColumnValue] = [.app(app), .user(user)]
        guard let known = try snapshot.record(UserRecord.self, key), known.deletingSince == nil
        else { return nil }
        let devices = try snapshot.records(
            DeviceRecord.self, Scan(prefix: key, limit: limits.listRows))
        return UserView(
            user: known, devices: devices.filter { $0.expiresAt == nil }.count,
            unread: try snapshot.unread(app, user, now: now))
    }

    /// Users by name, those who are being deleted left out.
    func users(
        of app: AppID, prefix: String, after: UserID?, _ limit: Int
    ) throws(StoreError) -> ([UserRecord], next: UserID?) {
        var rows: [UserRecord] = []
        // A bound leaves its own name out: the user who is called like the prefix comes first.
        let exact = UserID(prefix)
        if after == nil, !prefix.isEmpty,
            let user = try snapshot.record(UserRecord.self, [.app(app), .user(exact)])
        {
            rows.append(user)
        }
        let bound = after ?? (prefix.isEmpty ? nil : exact)
        rows += try snapshot.records(
            UserRecord.self,
            Scan(
                prefix: [.app(app)], after: bound.map { [.user($0)] },
                limit: limit + 1 - rows.count))
        let fitting = Array(rows.prefix { $0.user.name.utf8.starts(with: prefix.utf8) })
        let next = fitting.count > limit ? fitting[limit - 1].user : nil
        return (fitting.prefix(limit).filter { $0.deletingSince == nil }, next)
    }

    private func conversations(
        of user: UserID, _ app: AppID, after: ConversationID?, _ limit: Int, bytes bytesMax: Int
    ) throws(StoreError) -> BackendReading? {
        guard try isThere(user, app) else { return nil }
        let (rows, last) = cut(
            try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_user", prefix: [.app(app), .user(user)],
                    after: after.map { [.identifier($0)] }, limit: limit + 1)),
            to: limit)
        var all: [UserConversation] = []
        var bytes = 0
        for participant in rows where participant.leftRevision == nil {
            let conversation = try readable(app, user, participant.conversation) {
                () throws(StoreError) in
                try self.found(
                    ConversationRecord.self,
                    [.app(app), .identifier(participant.conversation)])
            }
            guard let conversation, conversation.deletedAt == nil else { continue }
            let newest = try newestMessage(
                in: HistoryReach(conversation: conversation, participant: participant))
            bytes += newest?.contentBytes ?? 0
            if bytes > bytesMax, let last = all.last {
                return .conversations(all, next: last.conversation.conversation)
            }
            all.append(
                UserConversation(
                    conversation: conversation, participant: participant, newest: newest))
        }
        return .conversations(all, next: last?.conversation)
    }

    /// Messages looked at for one that the user is shown: many that were deleted on the own devices
    /// alone must not hold up the list.
    private static let newestLookedAt = 16

    private func newestMessage(in reach: HistoryReach) throws(StoreError) -> MessageRecord? {
        var through = reach.through
        // Nearly always it is the first.
        for limit in [1, Self.newestLookedAt - 1] {
            guard reach.above < through, !reach.participant.isGone else { return nil }
            let rows = try messages(
                of: reach, above: reach.above, through: through, ascending: false, limit: limit)
            for (message, isShown) in zip(rows, try shown(rows, in: reach)) where isShown {
                if try readableEntry(of: message, in: reach) != nil { return message }
            }
            guard rows.count == limit, let last = rows.last else { return nil }
            through = last.position - 1
        }
        return nil
    }
}

// What a user has set.
extension PageReader {
    /// Whether there is such a user, and not on the way out.
    func isThere(_ user: UserID, _ app: AppID) throws(StoreError) -> Bool {
        let known = try snapshot.record(UserRecord.self, [.app(app), .user(user)])
        return known.map { $0.deletingSince == nil } ?? false
    }

    /// A block that has ended is a row, too, and passed over.
    private func blocks(
        of user: UserID, _ app: AppID, after: UserID?, _ limit: Int
    ) throws(StoreError) -> BackendReading? {
        guard try isThere(user, app) else { return nil }
        let (rows, last) = cut(
            try snapshot.records(
                BlockRecord.self,
                Scan(
                    prefix: [.app(app), .user(user)], after: after.map { [.user($0)] },
                    limit: limit + 1)),
            to: limit)
        return .blocks(rows.filter(\.isBlocked), next: last?.other)
    }

    private func mutes(
        of user: UserID, _ app: AppID, after: ConversationID?, _ limit: Int
    ) throws(StoreError) -> BackendReading? {
        guard try isThere(user, app) else { return nil }
        let (rows, last) = cut(
            try snapshot.records(
                SettingsRecord.self,
                Scan(
                    prefix: [.app(app), .user(user)], after: after.map { [.identifier($0)] },
                    limit: limit + 1)),
            to: limit)
        var muted: [SettingsRecord] = []
        for settings in rows where settings.isMuted(now: now) {
            let key: [ColumnValue] = [.app(app), .identifier(settings.conversation)]
            let membership = try snapshot.record(ParticipantRecord.self, key + [.user(user)])
            guard let membership, membership.leftRevision == nil,
                try conversation(app, settings.conversation) != nil
            else { continue }
            muted.append(settings)
        }
        return .mutes(muted, next: last?.conversation)
    }
}

extension MessageRecord {
    var contentBytes: Int {
        parts.count + pushTitle.utf8.count + pushBody.utf8.count
    }
}

import Feed
import Model
import Wake
import Wire

/// What is in the store for the kinds to be driven on.
struct BenchStock {
    var pairs: [BenchPair] = []
    /// `second` has a push token and no session.
    var sleepers: [BenchPair] = []
    /// Large apps, one for each run.
    var appsToSuspend: [AppID] = []
    var appsToRemove: [AppID] = []
    /// Large conversations of the crowd: one for each run, and one for when all sleep.
    var groups: [BenchGroup] = []
    /// A feed of many entries, and the conversation they are of.
    var reader: BenchPair?
    var hasStarted = false
    var hasExpired = false
}

struct BenchGroup {
    let conversation: ConversationID
    let members: [UserID]
    var message: MessageID?
}

// Few rows are made by the rules themselves; the many are copies of these under other names, put
// through the same contract by which the rules write.
extension StoreBench {
    static let crowd = AppID("crowd")
    static let author = UserID("author")
    private static let batch = 2_000

    func fill() throws {
        let kinds = Set(options.kinds)
        let runs = max(1, options.runs)
        try world.ask(.start(boot: world.nextBoot(), epochHalf: 77))
        try world.makeApp(BenchWorld.app)
        let grouped: Set<BenchKind> = [
            .groupPublish, .groupEdit, .groupRemove, .groupEnd, .groupAsleep,
        ]
        if !kinds.isDisjoint(with: grouped.union([.start, .expire, .campaign])) {
            let elsewhere = 2 * runs * scale.devicesOfApp
            let rest = max(scale.participants, scale.sessions - elsewhere)
            try fillApp(Self.crowd, devices: rest)
            if !kinds.isDisjoint(with: grouped) {
                for _ in 0...runs { stock.groups.append(try fillGroup()) }
            }
        }
        let isStarted = !kinds.isDisjoint(with: [.start, .expire])
        for run in 0..<runs {
            if isStarted || kinds.contains(.suspendApp) {
                stock.appsToSuspend.append(AppID("suspended-\(run)"))
            }
            if isStarted || kinds.contains(.removeApp) {
                stock.appsToRemove.append(AppID("removed-\(run)"))
            }
        }
        for app in stock.appsToSuspend + stock.appsToRemove {
            try fillApp(app, devices: scale.devicesOfApp)
        }
        if kinds.contains(.deleteUser) { try fillAuthor() }
        let far: Set<BenchKind> = [
            .acknowledgeRanges, .readRanges, .pageThousand, .pageTenThousand,
        ]
        if !kinds.isDisjoint(with: far) { try fillReader() }
        stock.pairs = try pairs("pair")
        if !kinds.isDisjoint(with: [.publishAsleep, .pushes]) {
            stock.sleepers = try pairs("sleeper")
            for pair in stock.sleepers {
                try world.ask(
                    .endSession(
                        EndSession(session: pair.second.session, applied: 0, expectedWithin: 0)))
            }
            try settle("sessions")
        }
        try settle("fan-out")
    }

    // MARK: Devices

    private static func user(_ number: Int) -> UserID {
        let digits = String(number)
        return UserID("u" + String(repeating: "0", count: max(0, 7 - digits.count)) + digits)
    }

    /// Users with one device each, which has a session and a push token.
    private func fillApp(_ app: AppID, devices: Int) throws {
        try world.makeApp(app)
        let phone = try world.login(app, Self.user(0).name)
        let key: [ColumnValue] = [.app(app), .user(phone.user)]
        let deviceKey = key + [.identifier(phone.session.device)]
        let (user, device, token, session) = try writer.read { snapshot throws(StoreError) in
            (
                try snapshot.record(UserRecord.self, key),
                try snapshot.record(DeviceRecord.self, deviceKey),
                try snapshot.record(
                    SessionTokenRecord.self, [.app(app), .blob(phone.tokenHash)]),
                try snapshot.record(
                    SessionRecord.self, deviceKey + [.unsigned(RoleKind.app.rawValue)])
            )
        }
        guard var user, var device, var token, var session else {
            throw BenchError("a login that left no rows")
        }
        for first in stride(from: 1, to: devices, by: Self.batch) {
            options.progress("fill: \(app) \(first) of \(devices) devices")
            try world.stayAlive()
            try writer.fill { transaction throws(StoreError) in
                for number in first..<min(first + Self.batch, devices) {
                    user.user = Self.user(number)
                    device.user = user.user
                    device.device = world.fresh()
                    device.pushToken = world.bytes(32)
                    token.user = user.user
                    token.device = device.device
                    token.hash = world.bytes(32)
                    session.user = user.user
                    session.device = device.device
                    try transaction.put(user)
                    try transaction.put(device)
                    try transaction.put(token)
                    try transaction.put(session)
                }
            }
        }
    }

    /// Pairs who are logged in and have a conversation.
    private func pairs(_ name: String) throws -> [BenchPair] {
        var pairs: [BenchPair] = []
        for first in stride(from: 0, to: scale.pairs, by: 50) {
            options.progress("fill: \(name) \(first) of \(scale.pairs)")
            let numbers = first..<min(first + 50, scale.pairs)
            let firsts = try world.login(BenchWorld.app, numbers.map { "\(name)-\($0)-a" })
            let seconds = try world.login(BenchWorld.app, numbers.map { "\(name)-\($0)-b" })
            for (one, other) in zip(firsts, seconds) {
                let conversation = try world.converse(BenchWorld.app, [one.user, other.user])
                pairs.append(
                    BenchPair(first: one, second: other, conversation: conversation))
            }
        }
        return pairs
    }

    // MARK: Messages

    /// Two users, one of whom has a long history to read.
    private func fillReader() throws {
        let first = try world.login(BenchWorld.app, "writer")
        let second = try world.login(BenchWorld.app, "reader")
        let conversation = try world.converse(BenchWorld.app, [first.user, second.user])
        let pair = BenchPair(first: first, second: second, conversation: conversation)
        try world.ask(world.publishing(in: pair))
        try extend(conversation, [first.user, second.user], by: scale.entries - 1)
        stock.reader = pair
    }

    /// A user who wrote all messages of many conversations.
    private func fillAuthor() throws {
        _ = try world.login(BenchWorld.app, Self.author.name)
        let each = scale.messagesOfConversation
        for number in 0..<(scale.messages / each) {
            options.progress("fill: \(number * each) of \(scale.messages) messages of one user")
            let partner = UserID("partner-\(number)")
            let conversation = try world.converse(BenchWorld.app, [Self.author, partner])
            try world.ask(
                world.publishing(
                    world.message(to: conversation), from: Self.author.name))
            try extend(conversation, [Self.author, partner], by: each - 1)
        }
    }

    /// Adds copies of the newest message, with their entries in the members' feeds.
    private func extend(_ id: ConversationID, _ members: [UserID], by count: Int) throws {
        for first in stride(from: 0, to: count, by: Self.batch) {
            try world.stayAlive()
            if count > Self.batch { options.progress("fill: \(first) of \(count) messages") }
            let part = UInt64(min(Self.batch, count - first))
            try writer.fill { transaction throws(StoreError) in
                let key: [ColumnValue] = [.app(BenchWorld.app), .identifier(id)]
                guard var conversation = try transaction.record(ConversationRecord.self, key),
                    let newest = try transaction.records(
                        MessageRecord.self,
                        Scan(
                            index: "message_by_position", prefix: key, descending: true,
                            limit: 1)
                    ).first
                else { throw .corrupt("no message to copy") }
                var made: [MessageID] = []
                for step in 1...part {
                    var message = newest
                    message.message = world.fresh()
                    message.position += step
                    message.revision += step
                    try transaction.put(message)
                    made.append(message.message)
                }
                conversation.position += part
                conversation.revision += part
                try transaction.put(conversation)
                for member in members {
                    try copy(newest, as: made, into: member, transaction)
                }
            }
        }
    }

    private func copy(
        _ newest: MessageRecord, as made: [MessageID], into member: UserID,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let own: [ColumnValue] = [.app(newest.app), .user(member)]
        let conversation = ColumnValue.identifier(newest.conversation)
        // The newest entry is that of the newest message.
        let like = Scan(prefix: own, descending: true, limit: 1)
        guard var user = try transaction.record(UserRecord.self, own),
            let template = try transaction.records(EntryRecord.self, like).first
        else { throw .corrupt("no entry to copy") }
        let awaitsReceipts = user.receiptHead == user.head
        for (offset, message) in made.enumerated() {
            let step = UInt64(offset) + 1
            var entry = template
            entry.object = message.bytes
            entry.seq = user.head + step
            entry.firstSeq = entry.seq
            entry.position += step
            entry.unreadPosition = template.unreadPosition.map { $0 + step }
            try transaction.put(entry)
        }
        user.head += UInt64(made.count)
        if template.isVisible { user.visibleHead = user.head }
        if awaitsReceipts { user.receiptHead = user.head }
        try transaction.put(user)
        let membership: [ColumnValue] = [.app(newest.app), conversation, .user(member)]
        if var known = try transaction.record(ParticipantRecord.self, membership),
            known.unread > 0
        {
            known.unread += UInt64(made.count)
            try transaction.put(known)
        }
    }
}

import Model
import Wake

/// A row that is due, and what it may be sent with.
struct DueRow {
    var wake: WakeRecord
    var credential: CredentialKey
}

/// The queues of a claim: one for each class, app, environment, topic and turn that has pushes.
///
/// What is urgent is served first, then the classes, best first, apps in turns: each gets an equal
/// share of what is left, so that the backlog of one app or class never takes all of a claim.
///
/// What was due before the end of an outage of ours leaves at a limited rate, of which each class
/// has an equal share; what is urgent does not wait for it.
struct PushQueues {
    /// Queues looked at in one claim. Of more, the next claim begins behind them.
    private static let queuesMax = 4_096
    /// How long the others wait for it.
    private static let restDelay: Milliseconds = 100
    /// When a queue that nothing can send is looked at again. Resuming its app or giving it a
    /// credential has it looked at sooner; this is for what nobody tells.
    private static let heldDelay: Milliseconds = 300_000

    private let request: ClaimPushes
    private let transaction: any StoreTransaction
    private let now: Timestamp
    private(set) var rooms: [CredentialKey: PushRoom] = [:]
    private var credentials: [CredentialScope: [PushCredentialRecord]] = [:]
    private(set) var isMore = false
    private(set) var blocked: [PushLane] = []
    private(set) var nextDue: Timestamp?
    private var due: [Queue] = []
    /// When we were last back from an outage.
    private var outageEnd: Timestamp?
    /// Whether an app was suspended then.
    private var suspensions: [AppID: Bool] = [:]
    /// Rows that are due and cannot be read: they are to be put off.
    private(set) var unreadable: [[ColumnValue]] = []
    /// What else could not be read.
    private(set) var effects = WakeEffects()

    private struct CredentialScope: Hashable {
        let app: AppID
        let environment: UInt64
    }

    /// One queue, named by its first row.
    private struct Queue {
        let first: WakeRecord
        let oldest: Timestamp
        let credential: CredentialKey
        /// The last rows that were taken: of those that an outage held up, and of the others.
        var takenOverdue: WakeRecord?
        var taken: WakeRecord?
        /// There may be more that could be sent.
        var isCut = false

        var lane: PushClass { first.lane }
        var turn: PushTurn { first.turn }
        var prefix: [ColumnValue] { Self.prefix(of: first.row) }

        /// As the row stands in the index, be it readable or not.
        static func prefix(of row: [ColumnValue]) -> [ColumnValue] {
            ["lane", "app", "environment", "topic", "turn"].map {
                WakeRecord.table.value(of: $0, in: row)
            }
        }

        /// The place of a row of the index.
        static func place(of row: [ColumnValue]) -> [ColumnValue] {
            prefix(of: row)
                + ["due", "user", "device"].map { WakeRecord.table.value(of: $0, in: row) }
        }
    }

    init(_ request: ClaimPushes, in transaction: any StoreTransaction, now: Timestamp) {
        self.request = request
        self.transaction = transaction
        self.now = now
        for room in request.rooms { rooms[room.credential] = room }
    }

    /// Rows that are due and can be sent, or must be put off. `isMore`, `blocked` and `nextDue`
    /// tell of the others afterwards.
    mutating func dueRows(atMost most: Int) throws(StoreError) -> [DueRow] {
        let ready = try findQueues()
        outageEnd = try WakeRules.outageEnd(in: transaction, now: now)
        var meter = OverdueMeter(
            try transaction.record(MetaRecord.self, [.text(OverdueMeter.name)]), now: now)
        let before = meter
        var rows: [DueRow] = []
        let urgent = ready.filter { $0.turn == .urgent }
        let plain = PushClass.allCases.map { lane in
            ready.filter { $0.lane == lane && $0.turn == .plain }
        }
        let lanes = ([urgent] + plain).filter { !$0.isEmpty }
        var cut: [Queue] = []
        for (index, queues) in lanes.enumerated() {
            let kept = ClaimPushes.reserve * (lanes.count - index - 1)
            let overdue = Self.part(meter.left, of: lanes.count - index)
            let metered = meter.count
            // The first to be served is another one each time.
            let start = Int(truncatingIfNeeded: (request.ids.first?.low ?? 0) >> 1) % queues.count
            for offset in queues.indices {
                var queue = queues[(start + offset) % queues.count]
                let left = most - rows.count
                let share = max(left - kept, min(ClaimPushes.reserve, left))
                rows += try take(
                    from: &queue, share: Self.part(share, of: queues.count - offset),
                    overdue: Self.part(
                        overdue - Int(meter.count - metered), of: queues.count - offset), &meter)
                if queue.isCut { cut.append(queue) }
            }
        }
        // What some left of their shares goes to those that have more.
        for round in 0..<2 {
            for index in cut.indices where cut[index].isCut && rows.count < most {
                let share = round == 0 ? Self.part(most - rows.count, of: cut.count - index) : most
                rows += try take(
                    from: &cut[index], share: min(share, most - rows.count), overdue: meter.left,
                    &meter)
            }
        }
        isMore = cut.contains(where: \.isCut)
        if meter != before { try write(meter, after: before) }
        return rows
    }

    private func write(
        _ meter: OverdueMeter, after before: OverdueMeter
    ) throws(StoreError) {
        try transaction.savepoint { () throws(StoreError) in
            let known = try transaction.record(
                MetaRecord.self, [.text(OverdueMeter.name)], lock: .wait)
            guard OverdueMeter(known, now: now) == before else {
                throw .conflict("others have taken of the same second")
            }
            try transaction.put(meter.record)
        }
    }

    /// The part of each of so many, rounded up.
    private static func part(_ whole: Int, of count: Int) -> Int {
        whole <= 0 ? 0 : (whole - 1) / max(1, count) + 1
    }

    private mutating func take(
        from queue: inout Queue, share: Int, overdue: Int, _ meter: inout OverdueMeter
    ) throws(StoreError) -> [DueRow] {
        let credential = queue.credential
        let free = rooms[credential]?.free(queue.lane, queue.first.topic)
        let most = min(share, free ?? share)
        var rows: [WakeRecord] = []
        var isHeldBack = false
        let old = try heldUp(queue)
        if let old {
            let limit = max(0, min(most, overdue))
            rows = try scan(queue, after: queue.takenOverdue, through: old, limit: limit)
            meter.take(rows.count)
            queue.takenOverdue = rows.last ?? queue.takenOverdue
            isHeldBack = rows.count == limit && limit < most && meter.left > 0
        }
        let fresh = try scan(
            queue, after: queue.taken, past: old, through: now, limit: most - rows.count)
        queue.taken = fresh.last ?? queue.taken
        rows += fresh
        if let free {
            rooms[credential]?.take(rows.count, queue.lane, queue.first.topic)
            // No stream is left: it goes on when one is free.
            if free == rows.count, rooms[credential]?.isOpen(queue.first.topic) ?? true {
                blocked.append(PushLane(credential, queue.lane))
            }
        }
        queue.isCut = (rows.count == most || isHeldBack) && free != rows.count
        return rows.map { DueRow(wake: $0, credential: credential) }
    }

    /// Rows up to here have waited for us: neither for their moment, nor for their app, which was
    /// suspended then.
    private mutating func heldUp(_ queue: Queue) throws(StoreError) -> Timestamp? {
        guard queue.turn != .urgent, let outageEnd, queue.oldest <= outageEnd else { return nil }
        let app = queue.first.app
        if suspensions[app] == nil {
            suspensions[app] = false
            do throws(StoreError) {
                suspensions[app] =
                    try transaction.record(MetaRecord.self, AppSuspension.key(of: app))
                    .map { AppSuspension($0).includes(outageEnd) } ?? false
            } catch {
                // The app's pushes keep the rate then: nobody else's are held up.
                guard case .corrupt(let detail) = error else { throw error }
                effects.passedOver(app, UserID(""), detail)
            }
        }
        return suspensions[app] == true ? nil : outageEnd
    }

    /// Rows of the queue in order: after one of them, else past a moment, else from the first.
    private mutating func scan(
        _ queue: Queue, after row: WakeRecord?, past moment: Timestamp? = nil,
        through last: Timestamp, limit: Int
    ) throws(StoreError) -> [WakeRecord] {
        var after = moment.map { [ColumnValue.timestamp($0)] }
        if let row, let due = row.due {
            after = [.timestamp(due), .user(row.user), .identifier(row.device)]
        }
        let found = try transaction.readable(
            WakeRecord.self,
            Scan(
                index: "wake_by_lane", prefix: queue.prefix, after: after,
                through: [.timestamp(last)], limit: limit))
        for other in found.others { passOver(other) }
        return found.records
    }

    /// What each queue's rows have in common in the index, due or not.
    static func prefixes(in snapshot: any StoreSnapshot) throws(StoreError) -> [[ColumnValue]] {
        var all: [[ColumnValue]] = []
        for _ in 0..<queuesMax {
            let found = try snapshot.rows(
                WakeRecord.table, Scan(index: "wake_by_lane", after: all.last, limit: 1))
            guard let first = found.first else { break }
            all.append(Queue.prefix(of: first))
        }
        return all
    }

    private mutating func passOver(_ found: (row: [ColumnValue], detail: String)) {
        // A look at its queue may have found it before.
        guard !unreadable.contains(found.row) else { return }
        unreadable.append(found.row)
        effects.passedOver(AppID(found.row[0].words), UserID(found.row[1].words), found.detail)
    }

    private static func due(of row: [ColumnValue]) -> Timestamp? {
        guard case .integer(let due) = WakeRecord.table.value(of: "due", in: row) else {
            return nil
        }
        return Timestamp(milliseconds: UInt64(max(0, due)))
    }

    /// The queues with something due that may be taken, in the order of the index.
    private mutating func findQueues() throws(StoreError) -> [Queue] {
        var ready: [Queue] = []
        let before = try transaction.record(MetaRecord.self, [.text(QueuePlace.name)])
        let start = before.flatMap { QueuePlace(bytes: $0.bytes) }?.prefix
        var last = start
        var hasTurned = start == nil
        for _ in 0..<Self.queuesMax {
            var found = try transaction.rows(
                WakeRecord.table,
                Scan(
                    index: "wake_by_lane", after: last, through: hasTurned ? start : nil, limit: 1))
            if found.isEmpty, !hasTurned {
                hasTurned = true
                found = try transaction.rows(
                    WakeRecord.table, Scan(index: "wake_by_lane", through: start, limit: 1))
            }
            guard let row = found.first, let oldest = Self.due(of: row) else {
                if before != nil { try forgetPlace() }
                return ready
            }
            last = Queue.prefix(of: row)
            guard oldest <= now else {
                nextDue = min(nextDue ?? oldest, oldest)
                continue
            }
            let first: WakeRecord
            do throws(StoreError) {
                first = try WakeRecord(row: row)
            } catch {
                // The queue goes on behind it.
                passOver((row, error.words))
                last = Queue.place(of: row)
                continue
            }
            let candidates = try credentials(of: first)
            func free(_ credential: CredentialKey) -> Int {
                rooms[credential]?.free(first.lane, first.topic) ?? .max
            }
            // No credential names the topic, or the app is suspended, be it for good: its rows stay
            // as they are, for each one written would be written again and again until then.
            guard let credential = candidates.first(where: { free($0) > 0 }) ?? candidates.first
            else {
                let again = now + Self.heldDelay
                nextDue = min(nextDue ?? again, again)
                continue
            }
            let queue = Queue(first: first, oldest: oldest, credential: credential)
            due.append(queue)
            if let room = rooms[credential], free(credential) == 0 {
                // What rests until a moment waits for no stream.
                if room.isOpen(first.topic) { blocked.append(PushLane(credential, first.lane)) }
            } else {
                ready.append(queue)
                try noteNextDue(of: queue)
            }
        }
        if let last, let place = QueuePlace(prefix: Array(last.prefix(5))) {
            try transaction.keepHint(place.record)
            let rest = now + Self.restDelay
            nextDue = min(nextDue ?? rest, rest)
        }
        return ready
    }

    private func forgetPlace() throws(StoreError) {
        let key: [ColumnValue] = [.text(QueuePlace.name)]
        guard try transaction.record(MetaRecord.self, key, lock: .skip) != nil else { return }
        try transaction.delete(MetaRecord.self, key)
    }

    /// When the queue has its next one after those that are due.
    private mutating func noteNextDue(of queue: Queue) throws(StoreError) {
        let next = try transaction.rows(
            WakeRecord.table,
            Scan(
                index: "wake_by_lane", prefix: queue.prefix, after: [.timestamp(now)], limit: 1)
        ).first.flatMap { Self.due(of: $0) }
        if let next { nextDue = min(nextDue ?? next, next) }
    }

    /// Those that name the row's topic, by name.
    private mutating func credentials(
        of row: WakeRecord
    ) throws(StoreError) -> [CredentialKey] {
        let scope = CredentialScope(app: row.app, environment: row.environment)
        let all: [PushCredentialRecord]
        if let known = credentials[scope] {
            all = known
        } else {
            all = try isOpen(row.app) ? readableCredentials(scope) : []
            credentials[scope] = all
        }
        return all.filter { $0.hasTopic(row.topic) }.map { CredentialKey($0) }
    }

    /// An app on its way out keeps its credentials for a moment, a suspended one for good. One
    /// whose row cannot be read is sent nothing.
    private mutating func isOpen(_ app: AppID) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try transaction.record(AppRecord.self, [.app(app)]).map { !$0.isSuspended }
                ?? false
        } catch {
            guard case .corrupt(let detail) = error else { throw error }
            effects.passedOver(app, UserID(""), detail)
            return false
        }
    }

    private mutating func readableCredentials(
        _ scope: CredentialScope
    ) throws(StoreError) -> [PushCredentialRecord] {
        let found = try transaction.pushCredentials(of: scope.app, scope.environment)
        if let problem = found.problem { effects.passedOver(scope.app, UserID(""), problem) }
        return found.readable
    }

    /// What is due in each class, counted up to a bound: before the claim it belongs to.
    func depths() throws(StoreError) -> [PushQueueDepth] {
        var depths: [PushQueueDepth] = []
        for lane in PushClass.allCases {
            let queues = due.filter { $0.lane == lane }
            guard let oldest = queues.map(\.oldest).min() else { continue }
            var count = 0
            for queue in queues where count < ClaimedPushes.depthMax {
                count += try transaction.rows(
                    WakeRecord.table,
                    Scan(
                        index: "wake_by_lane", prefix: queue.prefix, through: [.timestamp(now)],
                        limit: ClaimedPushes.depthMax - count)
                ).count
            }
            depths.append(PushQueueDepth(lane: lane, count: count, oldest: oldest))
        }
        return depths
    }
}

/// The last queue that a claim looked at, of more than one claim looks at.
private struct QueuePlace {
    static let name = "push_queue"
    let prefix: [ColumnValue]

    init?(prefix: [ColumnValue]) {
        guard prefix.count == 5 else { return nil }
        self.prefix = prefix
    }

    /// As written by `record`; `nil`: something else.
    init?(bytes: [UInt8]) {
        guard bytes.count >= 4, bytes.count >= 4 + Int(bytes[3]) else { return nil }
        let app = String(decoding: bytes[4..<4 + Int(bytes[3])], as: UTF8.self)
        let topic = String(decoding: bytes[(4 + Int(bytes[3]))...], as: UTF8.self)
        prefix = [
            .unsigned(UInt64(bytes[0])), .text(app), .unsigned(UInt64(bytes[1])), .text(topic),
            .unsigned(UInt64(bytes[2])),
        ]
    }

    var record: MetaRecord {
        var numbers: [UInt8] = []
        var texts: [[UInt8]] = []
        for value in prefix {
            switch value {
            case .integer(let number): numbers.append(UInt8(clamping: number))
            case .text(let text): texts.append(Array(text.utf8))
            default: break
            }
        }
        let app = texts.first ?? []
        return MetaRecord(
            name: Self.name, number: 0,
            bytes: numbers + [UInt8(clamping: app.count)] + app + (texts.last ?? []))
    }
}

/// How many overdue pushes left in the present second.
private struct OverdueMeter: Equatable {
    static let name = "overdue_pushes"
    private let second: UInt64
    private(set) var count: UInt64

    init(_ record: MetaRecord?, now: Timestamp) {
        second = now.milliseconds / 1_000
        count = 0
        if let record, record.number == second, let pair = Identifier<Never>(record.bytes) {
            count = pair.low
        }
    }

    var left: Int {
        Int(WakeRules.overduePerSecond - min(count, WakeRules.overduePerSecond))
    }
    mutating func take(_ more: Int) { count += UInt64(more) }

    var record: MetaRecord {
        MetaRecord(
            name: Self.name, number: second, bytes: Identifier<Never>(high: 0, low: count).bytes)
    }
}

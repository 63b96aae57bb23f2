public import Model
public import Wire

/// A `LocalStore` on any engine of the `Store` contract: on a phone and in the tools one SQLite
/// file, in tests the store in memory. It holds the rules, the engine only rows.
///
/// A row is stale if its `round` is not the newest: marking everything stale is one number.
public final class TableLocalStore: LocalStore {
    /// Results kept.
    static let resultsMax: UInt64 = 1_024
    /// Rows looked at in one step of a sweep or a deletion.
    static let step = 512

    let store: any Store
    /// As they are durable, once read: every change asks for them. `nil`: not known.
    var course: Course?
    /// What the server has taken and the feed, perhaps, not told of yet.
    var answered = AnsweredChanges()
    /// Whether messages may wait for the return of their conversation; `false`: none do.
    var mayAwait = true

    /// Whether what is applied is kept as owed to the user until it is settled.
    let keepsOwed: Bool

    /// `store` was opened with `LocalSchema.tables` and belongs to this object alone.
    ///
    /// - Parameter keepsOwed: for an app that tells its user of what comes; it asks for `owed` and
    ///   says what it has told with `settle`.
    public init(store: any Store, keepsOwed: Bool = false) {
        self.store = store
        self.keepsOwed = keepsOwed
    }

    public func close() { store.close() }

    enum Fact {
        static let cursor = "cursor"
        static let round = "round"
        static let resetting = "resetting"
        static let history = "history_through"
        static let token = "session_token"
        static let user = "user"
        static let lastMutation = "last_mutation"
        /// Up to which number mutations may have left.
        static let sent = "sent_through"
        static let snapshot = "snapshot"
        static let continuation = "continuation"
        static let push = "push"
        static let leaving = "leaving"
        static let owed = "owed"
        static let formerScreen = "former_screen"
        static let device = "device"
    }

    /// Which reset rows are compared with.
    struct Course {
        var round: UInt64 = 0
        var isResetting = false

        init() {}

        init(_ snapshot: any StoreSnapshot) throws(StoreError) {
            round = try TableLocalStore.fact(Fact.round, snapshot)?.number ?? 0
            isResetting = try TableLocalStore.fact(Fact.resetting, snapshot)?.number ?? 0 != 0
        }
    }

    // MARK: - LocalStore

    public func load() throws(LocalStoreError) -> LocalState {
        try read { snapshot throws(StoreError) in
            var state = LocalState()
            if let row = try Self.fact(Fact.cursor, snapshot), let epoch = Epoch(row.bytes) {
                state.cursor = Cursor(epoch: epoch, seq: row.number)
            }
            state.snapshot = try Self.snapshot(in: snapshot)
            state.isResetting = try Self.fact(Fact.resetting, snapshot)?.number ?? 0 != 0
            state.historyThrough = try Self.fact(Fact.history, snapshot)?.number ?? 0
            state.sessionToken = try Self.fact(Fact.token, snapshot)?.bytes ?? []
            state.user = String(
                decoding: try Self.fact(Fact.user, snapshot)?.bytes ?? [], as: UTF8.self)
            if let row = try Self.fact(Fact.push, snapshot) {
                state.push = try Self.decoded(row.bytes) as PushRegistration
            }
            state.lastMutation = try Self.fact(Fact.lastMutation, snapshot)?.number ?? 0
            state.firstUnanswered =
                try snapshot.records(LocalMutationRecord.self, Scan(limit: 1)).first?.number
            state.hasSentLogout = try Self.hasSentLogout(snapshot)
            state.isLeaving = try Self.fact(Fact.leaving, snapshot) != nil
            for row in try snapshot.records(LocalReadRecord.self, Scan(limit: .max)) {
                state.pendingReads.append(try Self.decoded(row.receipt))
            }
            return state
        }
    }

    public func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry] {
        let known = course
        // Not known again until this is committed.
        course = nil
        let (applied, next) = try write {
            transaction throws(StoreError) -> (applied: [Entry], course: Course) in
            var course = Course()
            if let known { course = known } else { course = try Course(transaction) }
            var round = course.round
            let wasResetting = course.isResetting
            if change.marksStale {
                try Self.dropReads(unlessOf: change.to.epoch, transaction)
                round += 1
                try transaction.put(LocalStateRecord(name: Fact.round, number: round))
            }
            let told = keepsOwed ? try Self.told(change.entries, transaction) : []
            let applied = try Self.keep(change.entries, round, transaction)
            if keepsOwed {
                try Self.owe(applied, told: told, above: change.historyThrough, transaction)
            }
            if change.sweeps {
                try Self.sweep(before: round, transaction)
                try Self.dropSent(transaction)
            }
            let isResetting = (change.marksStale || wasResetting) && !change.sweeps
            if isResetting != wasResetting {
                try transaction.put(
                    LocalStateRecord(name: Fact.resetting, number: isResetting ? 1 : 0))
            }
            if let history = change.historyThrough {
                try transaction.put(LocalStateRecord(name: Fact.history, number: history))
            }
            try transaction.put(
                LocalStateRecord(
                    name: Fact.cursor, number: change.to.seq, bytes: change.to.epoch.bytes))
            course.round = round
            course.isResetting = isResetting
            return (applied, course)
        }
        course = next
        if change.marksStale { answered = AnsweredChanges() }
        answered.told(applied)
        return applied
    }

    public func saveSession(token: [UInt8], user: String) throws(LocalStoreError) {
        course = nil
        try write { transaction throws(StoreError) in
            let former = try Self.fact(Fact.user, transaction)?.bytes ?? []
            if !former.isEmpty && former != Array(user.utf8) {
                answered = AnsweredChanges()
                try erase(transaction)
            }
            try transaction.put(LocalStateRecord(name: Fact.user, bytes: Array(user.utf8)))
            try transaction.put(LocalStateRecord(name: Fact.token, bytes: token))
        }
    }

    public func erase(keepsLogout: Bool) throws(LocalStoreError) {
        course = nil
        answered = AnsweredChanges()
        try write { transaction throws(StoreError) in
            let token = try Self.fact(Fact.token, transaction)?.bytes ?? []
            let logout = keepsLogout ? try Self.logout(transaction) : nil
            try erase(transaction)
            if let logout, !token.isEmpty {
                try transaction.put(logout)
                try transaction.put(LocalStateRecord(name: Fact.leaving))
            } else {
                try transaction.delete(LocalStateRecord.self, [.text(Fact.user)])
                try transaction.delete(LocalStateRecord.self, [.text(Fact.token)])
            }
        }
    }

    /// From here on its rows are this device's. What another device has kept, as in a backup that
    /// came to this one, is erased: its credential is that device's, and what waits in its outbox
    /// has left by now.
    public func belong(to device: DeviceID) throws(LocalStoreError) {
        let known = try read { snapshot throws(StoreError) in
            try Self.fact(Fact.device, snapshot)?.bytes
        }
        guard known != device.bytes else { return }
        if known != nil { try erase() }
        try write { transaction throws(StoreError) in
            try transaction.put(LocalStateRecord(name: Fact.device, bytes: device.bytes))
        }
    }

    private func erase(_ transaction: any StoreTransaction) throws(StoreError) {
        for table in LocalSchema.tables where table != LocalStateRecord.table {
            try Self.clear(table, Scan(limit: Self.step), transaction)
        }
        for name in [
            Fact.cursor, Fact.resetting, Fact.history, Fact.snapshot, Fact.continuation, Fact.owed,
            Fact.push, Fact.leaving,
        ] { try transaction.delete(LocalStateRecord.self, [.text(name)]) }
        if keepsOwed { try transaction.put(LocalStateRecord(name: Fact.formerScreen)) }
    }

    public func forgetSession() throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            try transaction.delete(LocalStateRecord.self, [.text(Fact.token)])
        }
    }

    public func savePush(_ push: PushRegistration?) throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            guard let push else {
                return try transaction.delete(LocalStateRecord.self, [.text(Fact.push)])
            }
            try transaction.put(LocalStateRecord(name: Fact.push, bytes: push.encoded))
        }
    }

    public func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp, leaves: Bool
    ) throws(LocalStoreError) -> UInt64 {
        let number = try write { transaction throws(StoreError) in
            try Self.dropRefused(before: operation, transaction)
            let number = try Self.enqueue(operation, at: time, transaction)
            // Without a fact: an older program may have sent all that is here.
            let isKnown = try Self.fact(Fact.sent, transaction) != nil
            if leaves || !isKnown {
                try Self.noteSent(leaves ? number : number - 1, transaction)
            }
            return number
        }
        answered.queued(operation)
        return number
    }

    public func mutations(
        after number: UInt64, limit: Int, now: Timestamp
    ) throws(LocalStoreError) -> [Mutation] {
        try read { snapshot throws(StoreError) in
            var mutations: [Mutation] = []
            for row in try snapshot.records(
                LocalMutationRecord.self, Scan(after: [.unsigned(number)], limit: limit))
            {
                var mutation: Mutation = try Self.decoded(row.mutation)
                mutation.delayMs = UInt32(clamping: now.since(row.queuedAt))
                mutations.append(mutation)
            }
            return mutations
        }
    }

    public func saveResults(_ results: [MutationResult]) throws(LocalStoreError) {
        var taken = answered
        taken.makeRoom(for: Self.sentMax)
        try write { transaction throws(StoreError) in
            for result in results {
                let key = [ColumnValue.unsigned(result.number)]
                guard let row = try transaction.record(LocalMutationRecord.self, key) else {
                    continue
                }
                let mutation: Mutation = try Self.decoded(row.mutation)
                if result.code == 0 { taken.answered(mutation.operation) }
                try Self.noteAnswer(result, to: row, mutation, transaction)
                try transaction.delete(LocalMutationRecord.self, key)
                try transaction.put(
                    LocalResultRecord(number: result.number, result: result.encoded))
            }
            let newest =
                try transaction.records(
                    LocalResultRecord.self, Scan(descending: true, limit: 1)
                ).first?.number ?? 0
            guard newest > Self.resultsMax else { return }
            let old = try transaction.records(
                LocalResultRecord.self,
                Scan(through: [.unsigned(newest - Self.resultsMax)], limit: Self.step))
            for row in old {
                try transaction.delete(LocalResultRecord.self, [.unsigned(row.number)])
            }
        }
        answered = taken
    }

    public func result(of number: UInt64) throws(LocalStoreError) -> MutationResult? {
        try read { snapshot throws(StoreError) in
            guard
                let row = try snapshot.record(LocalResultRecord.self, [.unsigned(number)])
            else { return nil }
            return try Self.decoded(row.result)
        }
    }

    public func raiseMutationNumbers(above floor: UInt64) throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            try Self.raiseNumbers(above: floor, transaction)
        }
    }

    public func renumberMutations(
        from first: UInt64, above floor: UInt64
    ) throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            try Self.raiseNumbers(above: floor, transaction)
            let waiting = try Self.takeMutations(above: first > 0 ? first - 1 : 0, transaction)
            try Self.enqueue(waiting, transaction)
        }
    }

    /// SYN-32: positions of another epoch may be other messages' in this one.
    static func dropReads(
        unlessOf epoch: Epoch, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let cursor = try fact(Fact.cursor, transaction)
        let begun = try fact(Fact.snapshot, transaction)
        guard let held = cursor ?? begun, held.bytes != epoch.bytes else { return }
        for row in try transaction.records(LocalReadRecord.self, Scan(limit: .max)) {
            let receipt: ReadReceipt = try decoded(row.receipt)
            guard receipt.conversation != nil else { continue }
            try transaction.delete(LocalReadRecord.self, [.blob(receipt.subject)])
        }
    }

    // MARK: - What an app shows

    /// The messages of a conversation above a position, ascending; tombstones of those deleted
    /// among them.
    public func messages(
        of conversation: ConversationID, after position: UInt64 = 0, limit: Int
    ) throws(LocalStoreError) -> [Entry] {
        var scan = Scan(messagesOf: conversation.bytes, limit: limit)
        scan.after = [.unsigned(position)]
        return try entries(scan)
    }

    /// The entries of all conversations this device knows, by id, without deleted ones.
    public func conversations() throws(LocalStoreError) -> [Entry] {
        try entries(Scan(.conversation)).filter {
            if case .tombstone = $0.body { false } else { true }
        }
    }

    /// How far the user has read the conversation.
    public func readMark(
        of conversation: ConversationID
    ) throws(LocalStoreError) -> ReadMarkState? {
        let found = try entries(Scan(.readMark, of: conversation.bytes)).first
        guard case .readMark(let mark) = found?.body else { return nil }
        return mark
    }

    func entries(_ scan: Scan) throws(LocalStoreError) -> [Entry] {
        try read { snapshot throws(StoreError) in try snapshot.entries(scan) }
    }
}

extension TableLocalStore {
    // MARK: - Rows

    @discardableResult
    static func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp, wasSent: Bool? = false,
        _ transaction: any StoreTransaction
    ) throws(StoreError) -> UInt64 {
        let number = (try fact(Fact.lastMutation, transaction)?.number ?? 0) + 1
        let mutation = Mutation(number: number, operation: operation)
        try transaction.put(
            LocalMutationRecord(
                number: number, queuedAt: time, mutation: mutation.encoded, wasSent: wasSent))
        try transaction.put(LocalStateRecord(name: Fact.lastMutation, number: number))
        return number
    }

    static func raiseNumbers(
        above floor: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let last = try fact(Fact.lastMutation, transaction)?.number ?? 0
        guard floor > last else { return }
        try transaction.put(LocalStateRecord(name: Fact.lastMutation, number: floor))
    }

    /// Takes what waits above `number` out of the outbox, in order.
    static func takeMutations(
        above number: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) -> [LocalMutationRecord] {
        let rows = try transaction.records(
            LocalMutationRecord.self, Scan(after: [.unsigned(number)], limit: .max))
        for row in rows {
            try transaction.delete(LocalMutationRecord.self, [.unsigned(row.number)])
        }
        return rows
    }

    /// Puts what was taken out at the end, under new numbers.
    static func enqueue(
        _ rows: [LocalMutationRecord], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        for row in rows {
            let mutation: Mutation = try decoded(row.mutation)
            guard let operation = mutation.operation else { continue }
            try enqueue(operation, at: row.queuedAt, wasSent: row.wasSent, transaction)
        }
        // Under their former numbers they may have left.
        try noteSent(try fact(Fact.lastMutation, transaction)?.number ?? 0, transaction)
    }

    private static func snapshot(
        in snapshot: any StoreSnapshot
    ) throws(StoreError) -> LocalSnapshot? {
        guard let start = try fact(Fact.snapshot, snapshot), let epoch = Epoch(start.bytes),
            let next = try fact(Fact.continuation, snapshot)
        else { return nil }
        return LocalSnapshot(
            start: Cursor(epoch: epoch, seq: start.number), continuation: next.bytes,
            resendSince: next.number > 0 ? Timestamp(milliseconds: next.number) : nil)
    }

    /// Stores entries; gives those that are news.
    static func keep(
        _ entries: [Entry], _ round: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) -> [Entry] {
        var applied: [Entry] = []
        var parents: Set<[UInt8]> = []
        var messages: [[UInt8]] = []
        var cleared = ClearedPositions(round: round)
        for entry in entries {
            guard let row = LocalEntryRecord(entry, round: round),
                try !cleared.covers(row, transaction)
            else { continue }
            if case .conversationState(let state) = entry.body, state.participants > 0 {
                try removeOthers(of: row.conversation, transaction)
            }
            let (isNews, isNewer) = try keep(row, round, transaction)
            // Also what was here in this form: it may have been taken for lost.
            if row.kind == .message { messages.append(row.object) }
            if isNews, case .conversationState = entry.body {
                try cleared.forgetEnd(of: row.conversation, transaction)
            }
            var hasCleared = false
            if case .tombstone(let state) = entry.body, state.conversation {
                // Its position counts also behind the entry of the conversation that came back.
                hasCleared = try cleared.isNews(state, row, transaction)
                if isNews || hasCleared {
                    try remove(state, row.conversation, isNewer: isNewer, transaction)
                    try cleared.note(state, row.conversation, transaction)
                }
            }
            if isNews || hasCleared { applied.append(entry) }
            if row.kind == .conversation || parents.insert(row.conversation).inserted {
                try noteParent(of: row, transaction)
            }
            if case .readMark(let mark) = entry.body {
                try settle(row.conversation, mark, transaction)
            } else if let id = entry.announcementDone {
                try transaction.delete(
                    LocalReadRecord.self, [.blob(ReadReceipt(announcement: id).subject)])
            }
        }
        try confirm(messages, transaction)
        return applied
    }

    /// Stores the row if it is news; whether it was, and whether by its version.
    private static func keep(
        _ row: LocalEntryRecord, _ round: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) -> (isNews: Bool, isNewer: Bool) {
        guard let known = try transaction.record(LocalEntryRecord.self, row.key) else {
            try transaction.put(row)
            return (true, true)
        }
        let isStale = known.round != round
        let isNewer = row.version > known.version
        guard isNewer || isStale else { return (false, false) }
        try transaction.put(row)
        if isNewer { return (true, true) }
        return (try !isSame(row, known), false)
    }

    /// Whether a stale row says what the server's does. A restored server gives versions and
    /// positions again that it had given to what it lost.
    private static func isSame(
        _ row: LocalEntryRecord, _ stale: LocalEntryRecord
    ) throws(StoreError) -> Bool {
        guard row.version == stale.version, row.position == stale.position else { return false }
        let (present, known): (Entry, Entry) = (try decoded(row.entry), try decoded(stale.entry))
        return present.body == known.body
    }

    /// MSG-38: of a large conversation's participants only the user is told of; others are those
    /// of before it was large, or of an earlier FETCH.
    private static func removeOthers(
        of conversation: [UInt8], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let user = try fact(Fact.user, transaction)?.bytes ?? []
        let participants = Scan(.participant, of: conversation)
        for row in try transaction.records(LocalEntryRecord.self, participants)
        where row.object != user {
            try transaction.delete(LocalEntryRecord.self, row.key)
        }
    }

    /// What a deleted conversation takes with it. A tombstone that is not newer than its row comes
    /// late, or once more: a text that was refused may be of what came back since.
    private static func remove(
        _ tombstone: TombstoneState, _ conversation: [UInt8], isNewer: Bool,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        var messages = Scan(messagesOf: conversation, limit: step)
        messages.through = tombstone.forEveryone ? nil : [.unsigned(tombstone.position)]
        try clear(LocalEntryRecord.table, messages, transaction)
        try dropSent(
            of: conversation, through: tombstone.forEveryone ? .max : tombstone.position,
            keepsRefused: tombstone.forEveryone || !isNewer, transaction)
        guard tombstone.forEveryone else { return }
        for kind in LocalKind.all where kind != .conversation && kind != .message {
            try clear(
                LocalEntryRecord.table, Scan(kind, of: conversation, limit: step), transaction)
        }
        try transaction.delete(LocalReadRecord.self, [.blob(conversation)])
    }

    /// An entry may come before its conversation (SYN-4): it is kept, and the conversation
    /// fetched.
    private static func noteParent(
        of row: LocalEntryRecord, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard !row.conversation.isEmpty else { return }
        let key = [ColumnValue.blob(row.conversation)]
        if row.kind == .conversation {
            try transaction.delete(LocalOrphanRecord.self, key)
        } else if try transaction.record(
            LocalEntryRecord.self, LocalEntryRecord.key(.conversation, row.conversation)) == nil
        {
            try transaction.put(LocalOrphanRecord(conversation: row.conversation))
        }
    }

    private static func settle(
        _ conversation: [UInt8], _ mark: ReadMarkState, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let key = [ColumnValue.blob(conversation)]
        guard let row = try transaction.record(LocalReadRecord.self, key) else { return }
        let receipt: ReadReceipt = try decoded(row.receipt)
        if receipt.isCovered(by: mark) { try transaction.delete(LocalReadRecord.self, key) }
    }

    private static func sweep(
        before round: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard round > 0 else { return }
        while true {
            let stale = try transaction.records(
                LocalEntryRecord.self,
                Scan(
                    index: "local_entry_by_round", through: [.unsigned(round - 1)],
                    limit: step))
            for row in stale { try transaction.delete(LocalEntryRecord.self, row.key) }
            if stale.count < step { return }
        }
    }

    /// Deletes what the scan takes, `step` rows at a time.
    private static func clear(
        _ table: Table, _ scan: Scan, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        while true {
            let rows = try transaction.rows(table, scan)
            for row in rows {
                try transaction.delete(table, key: Array(row.prefix(table.keyCount)))
            }
            if rows.count < scan.limit { return }
        }
    }

    static func fact(
        _ name: String, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> LocalStateRecord? {
        try snapshot.record(LocalStateRecord.self, [.text(name)])
    }

    private static let stored = FrameLimits(bodyBytes: .max, elements: .max)

    static func decoded<Body: WireMessage>(
        _ bytes: [UInt8]
    ) throws(StoreError) -> Body {
        do throws(WireError) {
            // What an app queued may have more than a server takes: it is refused, and not lost.
            return try Body(encoded: bytes, limits: Self.stored)
        } catch {
            throw .corrupt("a stored body does not decode: \(error)")
        }
    }
}

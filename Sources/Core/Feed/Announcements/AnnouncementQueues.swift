import Model
import Wake
import Wire

/// Users for whom something of an announcement is on its way: they get it, or are told that it was
/// taken back.
protocol AnnouncementQueueRow: Record {
    /// The name under which the app is kept whose row was served last.
    static var turn: String { get }
    /// The order in which an app's rows are served.
    static var index: String? { get }

    var app: AppID { get }
    var announcement: MessageID { get }
    /// Their names in rising order, one a line.
    var users: String { get set }
    /// Where it stands in that order.
    var place: [ColumnValue] { get }
    /// Which row of the table it is, for whoever reads the log.
    var word: String { get }

    /// What the user gets.
    func serve(
        _ announcement: AnnouncementRecord, to user: UserID, _ work: Work
    ) throws(RuleFailure)
    /// None of the users gets anything any more.
    func isOver(_ announcement: AnnouncementRecord) -> Bool
}

extension AnnouncementQueueRow {
    fileprivate var listed: [UserID] {
        users.split(separator: "\n").map { UserID(String($0)) }
    }
}

extension AnnouncementBatchRecord: AnnouncementQueueRow {
    static let turn = Work.announcementTurn
    static let index: String? = nil
    var place: [ColumnValue] { rowKey }
    var word: String { "\(number)" }

    func serve(
        _ announcement: AnnouncementRecord, to user: UserID, _ work: Work
    ) throws(RuleFailure) { try work.tell(announcement, to: user) }

    /// Who did not get it before it was taken back gets nothing.
    func isOver(_ announcement: AnnouncementRecord) -> Bool { announcement.deletedAt != nil }
}

extension AnnouncementAudienceRecord: AnnouncementQueueRow {
    static let turn = Work.takingBackTurn
    static let index: String? = "announcement_audience_by_turn"
    var place: [ColumnValue] {
        [
            .app(app), .timestamp(takenBackAt ?? Timestamp(milliseconds: 0)),
            .identifier(announcement), .unsigned(part),
        ]
    }
    var word: String { "\(announcement) \(part)" }

    func serve(
        _ announcement: AnnouncementRecord, to user: UserID, _ work: Work
    ) throws(RuleFailure) { try work.takeBack(announcement, from: user) }

    func isOver(_ announcement: AnnouncementRecord) -> Bool { false }
}

extension Work {
    static let announcementTurn = "announcement_turn"
    static let takingBackTurn = "taking_back_turn"

    /// What is taken back has a quarter of a turn, and what is told what is left of half of it: the
    /// rest is for what happens in conversations.
    private func isSpent<Row: AnnouncementQueueRow>(for type: Row.Type) -> Bool {
        transaction.hasSpent(1, of: type == AnnouncementAudienceRecord.self ? 4 : 2)
    }

    /// Serves batches, each in a step of its own, until `budget` users are served or their share of
    /// the turn is spent: apps take turns. Neither of the two queues waits for all of the other.
    /// Every call serves one user of each at least, if there is one.
    ///
    /// - Returns: how many steps it took.
    func continueAnnouncements(_ budget: inout Int) throws(RuleFailure) -> Int {
        var share = (budget + 1) / 2
        let granted = share
        var steps = try continueQueue(of: AnnouncementAudienceRecord.self, &share)
        budget = max(1, budget - (granted - share))
        steps += try continueQueue(of: AnnouncementBatchRecord.self, &budget)
        return steps
    }

    func hasAnnouncements() throws(RuleFailure) -> Bool {
        if try next(AnnouncementAudienceRecord.self, besides: []) != nil { return true }
        return try next(AnnouncementBatchRecord.self, besides: []) != nil
    }

    private func continueQueue<Row: AnnouncementQueueRow>(
        of type: Row.Type, _ budget: inout Int
    ) throws(RuleFailure) -> Int {
        var steps = 0
        var held: Set<SortKey> = []
        while budget > 0, steps == 0 || !isSpent(for: type), held.count < Self.heldMax,
            let batch = try next(type, besides: held)
        {
            guard let work = try advance(batch) else {
                held.insert(SortKey(batch.rowKey))
                continue
            }
            budget -= work
            steps += 1
        }
        return steps
    }

    /// The most batches that one turn passes over because other transactions hold all that is left
    /// of them.
    private static let heldMax = 64

    /// One batch. If something of it cannot be read, or another transaction holds something of it,
    /// its users are served one by one, and whom that concerns is passed over.
    ///
    /// - Returns: how much was done; `nil`: nothing, because of what others hold.
    private func advance(_ batch: some AnnouncementQueueRow) throws(RuleFailure) -> Int? {
        do throws(RuleFailure) {
            return try step { () throws(RuleFailure) in try self.serve(batch) }
        } catch {
            if case .store(.conflict) = error { return try serveFree(batch) }
            guard case .store(.corrupt(let detail)) = error else { throw error }
            return try step { () throws(RuleFailure) in
                try self.serveReadable(batch, detail)
            }
        }
    }

    /// The announcement, locked, for another node may serve the same batch, and the batch as it is
    /// then. One of which nothing comes any more goes: it was taken back, or the app is on its way
    /// out, and this row a little behind.
    ///
    /// - Parameter known: the announcement, read and locked; `nil`: there is none.
    private func taken<Row: AnnouncementQueueRow>(
        _ next: Row, _ known: AnnouncementRecord?
    ) throws(RuleFailure) -> (AnnouncementRecord, Row)? {
        guard let batch = try record(Row.self, next.rowKey) else { return nil }
        try noteTurn(Row.turn, of: next.app)
        guard let known, !batch.isOver(known) else {
            try keep([], of: batch)
            return nil
        }
        return (known, batch)
    }

    private func announcement(
        of next: some AnnouncementQueueRow
    ) throws(RuleFailure) -> AnnouncementRecord? {
        try record(
            AnnouncementRecord.self, [.app(next.app), .identifier(next.announcement)], lock: .wait)
    }

    /// - Returns: how many users were served, at least 1.
    private func serve<Row: AnnouncementQueueRow>(_ next: Row) throws(RuleFailure) -> Int {
        guard let (announcement, batch) = try taken(next, try announcement(of: next)) else {
            return 1
        }
        let users = batch.listed
        var rest = users[...]
        while let user = rest.popFirst() {
            try batch.serve(announcement, to: user, self)
            if isSpent(for: Row.self) { break }
        }
        try keep(rest, of: batch)
        return max(1, users.count - rest.count)
    }

    /// Users whom others hold stay in the batch.
    private func serveFree<Row: AnnouncementQueueRow>(_ next: Row) throws(RuleFailure) -> Int? {
        let served = try stepPassingOver { () throws(RuleFailure) -> Int in
            // An app that is being removed brings nobody anything new (`openFeed`).
            let isThere = try self.app(next.app) != nil
            let known = isThere ? try self.announcement(of: next) : nil
            guard let (announcement, batch) = try self.taken(next, known) else { return 1 }
            let users = batch.listed
            var held: [UserID] = []
            var rest = users[...]
            while let user = rest.popFirst() {
                do throws(RuleFailure) {
                    try self.savepoint { () throws(RuleFailure) in
                        try batch.serve(announcement, to: user, self)
                    }
                } catch {
                    guard case .store(.conflict) = error else { throw error }
                    held.append(user)
                }
                if self.isSpent(for: Row.self) { break }
            }
            try self.keep((held + rest)[...], of: batch)
            return users.count - rest.count - held.count
        }
        return served.flatMap { $0 > 0 ? $0 : nil }
    }

    private func serveReadable(
        _ next: some AnnouncementQueueRow, _ detail: String
    ) throws(RuleFailure) -> Int {
        let found = try readable { () throws(RuleFailure) in try self.announcement(of: next) }
        if found == nil { noteUnreadable(next, UserID(""), detail) }
        guard let (announcement, batch) = try taken(next, found ?? nil) else { return 1 }
        let users = batch.listed
        var rest = users[...]
        while let user = rest.popFirst() {
            let served: Void? = try readable { () throws(RuleFailure) in
                try self.savepoint { () throws(RuleFailure) in
                    try batch.serve(announcement, to: user, self)
                }
            }
            if served == nil { noteUnreadable(batch, user, detail) }
            if isSpent { break }
        }
        try keep(rest, of: batch)
        return max(1, 2 * (users.count - rest.count))
    }

    /// Those who are left of a batch keep its place: it goes when all are served.
    private func keep<Row: AnnouncementQueueRow>(
        _ users: ArraySlice<UserID>, of batch: Row
    ) throws(RuleFailure) {
        guard !users.isEmpty else { return try delete(Row.self, batch.rowKey) }
        var batch = batch
        batch.users = users.map(\.name).joined(separator: "\n")
        try put(batch)
    }

    /// `nil`: something of it cannot be read.
    private func readable<Value>(
        _ body: () throws(RuleFailure) -> Value
    ) throws(RuleFailure) -> Value? {
        do throws(RuleFailure) {
            return try body()
        } catch {
            guard case .store(.corrupt) = error else { throw error }
            return nil
        }
    }

    private func noteUnreadable<Row: AnnouncementQueueRow>(
        _ batch: Row, _ user: UserID, _ detail: String
    ) {
        effects.unreadable.append(
            UnreadableRow(
                app: batch.app, user: user, conversation: .none,
                detail: "\(Row.table.name) \(batch.word): \(detail)"))
    }

    private func next<Row: AnnouncementQueueRow>(
        _ type: Row.Type, besides held: Set<SortKey>
    ) throws(RuleFailure) -> Row? {
        let last = try record(MetaRecord.self, [.text(Row.turn)])
        let name = String(decoding: last?.bytes ?? [], as: UTF8.self)
        var next = try records(type, Scan(index: Row.index, after: [.text(name)], limit: 1))
        if next.isEmpty { next = try records(type, Scan(index: Row.index, limit: 1)) }
        guard let first = next.first, held.contains(SortKey(first.rowKey)) else {
            return next.first
        }
        // Behind it, and from the start once more.
        for after in [first.place, nil] {
            let others = try records(
                type, Scan(index: Row.index, after: after, limit: Self.heldMax + 1))
            if let free = others.first(where: { !held.contains(SortKey($0.rowKey)) }) {
                return free
            }
        }
        return nil
    }
}

import MemoryStore
import Model

@testable import Feed

/// Which condition of loss-free paging is broken on purpose.
enum Break: CaseIterable {
    /// Entries from one snapshot, `to` from a later one.
    case headReadAfterEntries
    /// A full page says it ends at the head.
    case fullPageEndsAtHead
    /// A number is given in one transaction, its entry inserted in the next.
    case entriesCommittedLater
    /// A new version takes the number of the entry it supersedes.
    case supersedeInPlace
    /// A change does not wait for the jobs of its conversation.
    case jobsDoNotQueue
    /// Of a conversation's jobs the newest is served first.
    case newestJobFirst
    /// A job's recipients are those of the moment, not of its revision.
    case recipientsOfTheMoment
    /// A job is served to those who left before its change, too.
    case leaversAreServed
    /// Who left is added again while changes from before are on their way.
    case comingBackDoesNotWait
    /// An entry shows its object's present state to whoever has the entry.
    case presentStateForAll
    /// A newer state of a message does not take the older entry away.
    case olderEntryStays
}

/// Puts a broken engine, or what amounts to a broken rule, before the store.
final class BrokenStore: FrontedStore {
    private let base: MemoryStore
    var fronted: any Store { base }
    private let fault: Break?
    /// What happens between the two halves of a transaction torn apart.
    var between: () throws -> Void = {}
    /// Set while a request other than fan-out is carried out.
    var isPublishing = false

    init(_ base: MemoryStore, _ fault: Break?) {
        self.base = base
        self.fault = fault
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        var late: [[ColumnValue]] = []
        try base.arrange { transaction throws(StoreError) in
            let wrapped = Transaction(transaction, self.fault, isPublishing: self.isPublishing)
            try body(wrapped)
            late = wrapped.late
        }
        guard !late.isEmpty else { return }
        do { try between() } catch { throw .unavailable("\(error)") }
        try base.arrange { transaction throws(StoreError) in
            for row in late { try transaction.put(EntryRecord.table, row) }
        }
    }

    private final class Transaction: StoreTransaction {
        let base: any StoreTransaction
        let fault: Break?
        let isPublishing: Bool
        var late: [[ColumnValue]] = []
        var superseded: EntryRecord?

        init(_ base: any StoreTransaction, _ fault: Break?, isPublishing: Bool) {
            self.base = base
            self.fault = fault
            self.isPublishing = isPublishing
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        {
            try base.row(table, key: key, lock: lock)
        }

        func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
            if fault == .jobsDoNotQueue, isPublishing, table == FanOutRecord.table { return [] }
            var scan = scan
            if fault == .newestJobFirst, !isPublishing, table == FanOutRecord.table,
                scan.prefix.count == 2
            {
                scan.descending = true
            }
            if fault == .leaversAreServed, scan.index == "participant_by_presence" {
                scan.index = nil
            }
            var rows = try base.rows(table, scan)
            if fault == .recipientsOfTheMoment, !isPublishing, table == ParticipantRecord.table {
                for position in rows.indices {
                    var participant = try ParticipantRecord(row: rows[position])
                    if participant.joinedRevision > 1 { participant.joinedRevision = 0 }
                    rows[position] = participant.row
                }
            }
            if fault == .leaversAreServed, !isPublishing, table == ParticipantRecord.table {
                for position in rows.indices {
                    var participant = try ParticipantRecord(row: rows[position])
                    participant.leftRevision = nil
                    rows[position] = participant.row
                }
            }
            if fault == .comingBackDoesNotWait, isPublishing, table == FanOutRecord.table {
                for position in rows.indices {
                    var job = try FanOutRecord(row: rows[position])
                    let key: [ColumnValue] = [.app(job.app), .identifier(job.conversation)]
                    job.revision =
                        try base.record(ConversationRecord.self, key)?.revision ?? job.revision
                    rows[position] = job.row
                }
            }
            return rows
        }

        func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            guard table == EntryRecord.table else { return try base.put(table, row) }
            var entry = try EntryRecord(row: row)
            if fault == .entriesCommittedLater { return late.append(row) }
            if let old = superseded, old.user == entry.user, old.object == entry.object {
                entry.seq = old.seq
                superseded = nil
            }
            try base.put(table, entry.row)
        }

        func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            if fault == .olderEntryStays, table == EntryRecord.table,
                let row = try base.row(table, key: key, lock: .none),
                try EntryRecord(row: row).kind == .message
            {
                return
            }
            if fault == .supersedeInPlace, table == EntryRecord.table,
                let row = try base.row(table, key: key, lock: .none)
            {
                superseded = try EntryRecord(row: row)
            }
            try base.delete(table, key: key)
        }

        func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.lockSequence(body)
        }

        func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.savepoint(body)
        }
    }
}

/// A view in which every user took part in everything from the start to now: what a page reader
/// sees that does not ask who may see an object's present state.
final class ForgivingSnapshot: StoreSnapshot {
    private let base: any StoreSnapshot

    init(_ base: any StoreSnapshot) { self.base = base }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        guard let row = try base.row(table, key: key, lock: lock),
            table == ParticipantRecord.table
        else { return try base.row(table, key: key, lock: lock) }
        var participant = try ParticipantRecord(row: row)
        participant.leftRevision = nil
        participant.joinedRevision = 0
        participant.joinedPosition = 0
        return participant.row
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        try base.rows(table, scan)
    }
}

public import Model
public import Wire

/// A change that its person made and the server does not carry out: an edit, a deletion, a new
/// name, a conversation that was not made. What was shown of it is shown no more.
public struct RefusedChange: Equatable, Sendable, Identifiable {
    /// Of its mutation.
    public var number: UInt64
    /// By this device's clock.
    public var madeAt: Timestamp
    /// What was to be done, with the text of an edit in it.
    public var operation: Mutation.Operation
    public var refusal: Refusal

    public var id: UInt64 { number }

    /// The message that it was to change; `nil`: none.
    var message: MessageID? {
        switch operation {
        case .editMessage(let edit): edit.message
        case .deleteMessage(let deletion): deletion.message
        default: nil
        }
    }
}

// Changes that the server has refused: a person is told, and learns why.
extension TableLocalStore {
    /// Kept at a time; of more the oldest go.
    static let refusedMax = 256

    /// The changes that the server refused, oldest first, until they are discarded or the same is
    /// changed anew. Messages that it did not take are `refusedMessages`.
    public func refusedChanges() throws(LocalStoreError) -> [RefusedChange] {
        try read { snapshot throws(StoreError) in try Self.refused(in: snapshot) }
    }

    /// Forgets a change that was refused; whether it was there.
    public func discard(_ change: RefusedChange) throws(LocalStoreError) -> Bool {
        try write { transaction throws(StoreError) in
            let key = [ColumnValue.unsigned(change.number)]
            guard try transaction.record(LocalRefusedRecord.self, key) != nil else { return false }
            try transaction.delete(LocalRefusedRecord.self, key)
            return true
        }
    }

    static func refused(
        in snapshot: any StoreSnapshot
    ) throws(StoreError) -> [RefusedChange] {
        var changes: [RefusedChange] = []
        for row in try snapshot.records(LocalRefusedRecord.self, Scan(limit: refusedMax)) {
            let mutation: Mutation = try decoded(row.mutation)
            guard let operation = mutation.operation else { continue }
            changes.append(
                RefusedChange(
                    number: row.number, madeAt: row.queuedAt, operation: operation,
                    refusal: Refusal(code: UInt32(clamping: row.code))))
        }
        return changes
    }

    static func noteRefusal(
        _ result: MutationResult, of row: LocalMutationRecord, _ operation: Mutation.Operation?,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard result.code != 0, let operation, operation.isMissed(after: result.code)
        else { return }
        try transaction.put(
            LocalRefusedRecord(
                number: row.number, queuedAt: row.queuedAt, mutation: row.mutation,
                code: UInt64(result.code)))
        let kept = try transaction.records(LocalRefusedRecord.self, Scan(limit: refusedMax + 1))
        guard kept.count > refusedMax, let oldest = kept.first else { return }
        try transaction.delete(LocalRefusedRecord.self, [.unsigned(oldest.number)])
    }

    /// The person has changed the same anew.
    static func dropRefused(
        before operation: Mutation.Operation, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        for change in try refused(in: transaction)
        where change.operation.isReplaced(by: operation) {
            try transaction.delete(LocalRefusedRecord.self, [.unsigned(change.number)])
        }
    }
}

extension Mutation.Operation {
    /// Whether its person is to hear that it was refused.
    fileprivate func isMissed(after code: UInt32) -> Bool {
        switch self {
        // A message that was sent is kept with its text; a logout is over in any case.
        case .sendMessage, .forgetDevice: false
        // Another device was earlier (HIS-21), or this one under another number (MSG-12).
        case .createConversation: Code(rawValue: code) != .idInUse
        // It is gone all the same.
        case .deleteMessage, .deleteConversation: Code(rawValue: code) != .gone
        default: true
        }
    }

    fileprivate func isReplaced(by other: Mutation.Operation) -> Bool {
        switch (self, other) {
        case (.editMessage(let old), .editMessage(let new)): old.message == new.message
        case (.editMessage(let old), .deleteMessage(let new)): old.message == new.message
        case (.deleteMessage(let old), .deleteMessage(let new)): old.message == new.message
        case (.changeMetadata(let old), .changeMetadata(let new)):
            old.conversation == new.conversation
                && Set(old.changes.map(\.path)).isSubset(of: new.changes.map(\.path))
        case (.muteConversation(let old), .muteConversation(let new)):
            old.conversation == new.conversation
        case (.blockUser(let old), .blockUser(let new)): old.user.isExactly(new.user)
        default: self == other
        }
    }
}

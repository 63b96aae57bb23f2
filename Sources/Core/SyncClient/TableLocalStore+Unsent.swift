public import Model
public import Wire

// What has never left this device, and can be taken back on it alone.
extension TableLocalStore {
    public func markSent(through number: UInt64) throws(LocalStoreError) {
        try write { transaction throws(StoreError) in try Self.noteSent(number, transaction) }
    }

    public func withdraw(_ message: MessageID) throws(LocalStoreError) -> [MutationResult]? {
        try write { transaction throws(StoreError) in
            // Of what an older program queued it is not known.
            guard let sent = try Self.fact(Fact.sent, transaction)?.number else { return nil }
            var numbers: [UInt64] = []
            for row in try transaction.records(
                LocalMutationRecord.self, Scan(after: [.unsigned(sent)], limit: .max))
            {
                let mutation: Mutation = try Self.decoded(row.mutation)
                switch mutation.operation {
                case .sendMessage(let send) where send.message == message:
                    guard try !Self.isTold(send, transaction) else { return nil }
                case .editMessage(let edit) where edit.message == message && !numbers.isEmpty:
                    break
                default: continue
                }
                numbers.append(row.number)
            }
            guard !numbers.isEmpty else { return nil }
            var results = numbers.map {
                MutationResult(
                    number: $0, code: Code.gone.rawValue, retry: Code.gone.retryClass)
            }
            let last = try Self.fact(Fact.lastMutation, transaction)?.number ?? 0
            try Self.raiseNumbers(above: last + 1, transaction)
            results.append(MutationResult(number: last + 1))
            for number in numbers {
                try transaction.delete(LocalMutationRecord.self, [.unsigned(number)])
            }
            for result in results {
                try transaction.put(
                    LocalResultRecord(number: result.number, result: result.encoded))
            }
            return results
        }
    }

    /// Another device, or another life of this one, has sent it.
    private static func isTold(
        _ send: SendMessage, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard let conversation = send.conversation, let message = send.message else { return false }
        let key = LocalEntryRecord.key(.message, conversation.bytes, message.bytes)
        return try snapshot.record(LocalEntryRecord.self, key) != nil
    }

    static func noteSent(
        _ number: UInt64, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let known = try fact(Fact.sent, transaction)
        guard known == nil || number > known?.number ?? 0 else { return }
        try transaction.put(LocalStateRecord(name: Fact.sent, number: number))
    }
}

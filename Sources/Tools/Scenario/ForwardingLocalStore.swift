public import Model
public import SyncClient
public import Wire

/// A `LocalStore` before another one: what it does not do itself, the other does. For counting,
/// and for faults put in on purpose.
public protocol ForwardingLocalStore: LocalStore {
    /// Who does the work.
    var forwarded: any LocalStore { get }
}

extension ForwardingLocalStore {
    public func load() throws(LocalStoreError) -> LocalState { try forwarded.load() }

    public func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry] {
        try forwarded.apply(change)
    }

    public func applyHistory(_ change: HistoryChange) throws(LocalStoreError) -> [Entry] {
        try forwarded.applyHistory(change)
    }

    public func applySnapshot(
        _ change: SnapshotChange, at time: Timestamp
    ) throws(LocalStoreError) -> (applied: [Entry], lastMutation: UInt64) {
        try forwarded.applySnapshot(change, at: time)
    }

    public func sendAwaited(at time: Timestamp) throws(LocalStoreError) -> UInt64? {
        try forwarded.sendAwaited(at: time)
    }

    public func orphans(limit: Int) throws(LocalStoreError) -> [ConversationID] {
        try forwarded.orphans(limit: limit)
    }

    public func digest() throws(LocalStoreError) -> LocalDigest { try forwarded.digest() }

    public func saveSession(token: [UInt8], user: String) throws(LocalStoreError) {
        try forwarded.saveSession(token: token, user: user)
    }

    public func erase(keepsLogout: Bool) throws(LocalStoreError) {
        try forwarded.erase(keepsLogout: keepsLogout)
    }

    public func forgetSession() throws(LocalStoreError) { try forwarded.forgetSession() }

    public func savePush(_ push: PushRegistration?) throws(LocalStoreError) {
        try forwarded.savePush(push)
    }

    public func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp, leaves: Bool
    ) throws(LocalStoreError) -> UInt64 {
        try forwarded.enqueue(operation, at: time, leaves: leaves)
    }

    public func markSent(through number: UInt64) throws(LocalStoreError) {
        try forwarded.markSent(through: number)
    }

    public func withdraw(_ message: MessageID) throws(LocalStoreError) -> [MutationResult]? {
        try forwarded.withdraw(message)
    }

    public func mutations(
        after number: UInt64, limit: Int, now: Timestamp
    ) throws(LocalStoreError) -> [Mutation] {
        try forwarded.mutations(after: number, limit: limit, now: now)
    }

    public func markLogoutSent(_ number: UInt64) throws(LocalStoreError) {
        try forwarded.markLogoutSent(number)
    }

    public func saveResults(_ results: [MutationResult]) throws(LocalStoreError) {
        try forwarded.saveResults(results)
    }

    public func result(of number: UInt64) throws(LocalStoreError) -> MutationResult? {
        try forwarded.result(of: number)
    }

    public func raiseMutationNumbers(above floor: UInt64) throws(LocalStoreError) {
        try forwarded.raiseMutationNumbers(above: floor)
    }

    public func renumberMutations(
        from first: UInt64, above floor: UInt64
    ) throws(LocalStoreError) {
        try forwarded.renumberMutations(from: first, above: floor)
    }

    public func addRead(_ receipt: ReadReceipt) throws(LocalStoreError) -> Bool {
        try forwarded.addRead(receipt)
    }

    public func endReads(
        _ answered: [ReadReceipt]
    ) throws(LocalStoreError) -> [ReadReceipt] {
        try forwarded.endReads(answered)
    }
}

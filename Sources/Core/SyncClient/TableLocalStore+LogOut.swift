import Model
import Wire

// What of a user's logout outlives the process that sends it (MSG-7).
extension TableLocalStore {
    public func markLogoutSent(_ number: UInt64) throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            guard
                var row = try transaction.record(LocalMutationRecord.self, [.unsigned(number)])
            else { return }
            row.wasSent = true
            try transaction.put(row)
        }
    }

    /// Whether a logout waits for its answer.
    public func hasLogout() throws(LocalStoreError) -> Bool {
        try read { snapshot throws(StoreError) in try Self.logout(snapshot) != nil }
    }

    static func logout(
        _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> LocalMutationRecord? {
        for row in try snapshot.records(LocalMutationRecord.self, Scan(limit: .max)) {
            let mutation: Mutation = try decoded(row.mutation)
            if mutation.isLogout { return row }
        }
        return nil
    }

    static func hasSentLogout(_ snapshot: any StoreSnapshot) throws(StoreError) -> Bool {
        for row in try snapshot.records(LocalMutationRecord.self, Scan(limit: .max))
        where row.wasSent != false {
            let mutation: Mutation = try decoded(row.mutation)
            if mutation.isLogout { return true }
        }
        return false
    }
}

import Model

// Transactions of a `TableLocalStore`, and what went wrong with them in its own words.
extension TableLocalStore {
    func read<Value>(
        _ body: (any StoreSnapshot) throws(StoreError) -> Value
    ) throws(LocalStoreError) -> Value {
        try translated { () throws(StoreError) in
            var value: Value?
            try store.read { snapshot throws(StoreError) in value = try body(snapshot) }
            return value
        }
    }

    func write<Value>(
        _ body: (any StoreTransaction) throws(StoreError) -> Value
    ) throws(LocalStoreError) -> Value {
        try translated { () throws(StoreError) in
            var value: Value?
            try store.write { transaction throws(StoreError) in
                value = try body(transaction)
            }
            return value
        }
    }

    private func translated<Value>(
        _ body: () throws(StoreError) -> Value?
    ) throws(LocalStoreError) -> Value {
        do throws(StoreError) {
            guard let value = try body() else {
                throw .unavailable("the store ran no transaction")
            }
            return value
        } catch {
            throw LocalStoreError(error, isDamage: store.isDamaged)
        }
    }
}

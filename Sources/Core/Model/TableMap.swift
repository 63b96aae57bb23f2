/// Values by table. Tables of one name are one table; that an object was asked for before is found
/// out without a look at its name.
///
/// Inlinable, so that it is made for the values of the module that uses it.
public struct TableMap<Value> {
    @usableFromInline
    struct Known {
        /// Held, so that no other table comes to have its identity.
        @usableFromInline let table: Table
        @usableFromInline let value: Value

        @inlinable
        init(_ table: Table, _ value: Value) {
            self.table = table
            self.value = value
        }
    }

    @usableFromInline var byName: [ExactText: Value] = [:]
    /// A program has a handful of tables: looking at each is quicker than finding one by a hash.
    @usableFromInline var byIdentity: [Known] = []
    /// A caller that makes a new object for each call could fill the list: beyond this number all
    /// are found by their names again.
    @usableFromInline static var identitiesMax: Int { 128 }

    @inlinable
    public init() {}

    /// The value of a table whose object was asked for before; `nil`: ask by the subscript.
    @inlinable
    public func known(_ table: Table) -> Value? {
        for known in byIdentity where known.table === table { return known.value }
        return nil
    }

    /// The value of the table; `nil`: it has none yet.
    @inlinable
    public subscript(table: Table) -> Value? {
        mutating get {
            if let known = known(table) { return known }
            guard let value = byName[ExactText(table.name)] else { return nil }
            remember(value, of: table)
            return value
        }
        set {
            byName[ExactText(table.name)] = newValue
            byIdentity = []
            if let newValue { remember(newValue, of: table) }
        }
    }

    @inlinable
    mutating func remember(_ value: Value, of table: Table) {
        if byIdentity.count >= Self.identitiesMax { byIdentity = [] }
        byIdentity.append(Known(table, value))
    }
}

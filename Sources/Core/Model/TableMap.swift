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
    @usableFromInline var byIdentity: [ObjectIdentifier: Known] = [:]
    /// A program has a handful of tables. A caller that makes a new object for each call could fill
    /// the map: beyond this number all are found by their names again.
    @usableFromInline static var identitiesMax: Int { 1_024 }

    @inlinable
    public init() {}

    /// The value of the table; `nil`: it has none yet.
    @inlinable
    public subscript(table: Table) -> Value? {
        mutating get {
            if let known = byIdentity[ObjectIdentifier(table)] { return known.value }
            guard let value = byName[ExactText(table.name)] else { return nil }
            remember(value, of: table)
            return value
        }
        set {
            byName[ExactText(table.name)] = newValue
            byIdentity = [:]
            if let newValue { remember(newValue, of: table) }
        }
    }

    @inlinable
    mutating func remember(_ value: Value, of table: Table) {
        if byIdentity.count >= Self.identitiesMax { byIdentity = [:] }
        byIdentity[ObjectIdentifier(table)] = Known(table, value)
    }
}

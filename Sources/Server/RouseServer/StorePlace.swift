import Feed
public import Model
import PostgresStore
import SQLiteStore

/// Where a store is kept. The only place that names its engines.
public enum StorePlace: Equatable, Sendable {
    /// A file of SQLite, for one process.
    case file(String)
    /// A schema in a database of PostgreSQL, for any number of nodes.
    case postgres(address: String, schema: String, migrates: Bool)

    /// Several processes may have it open.
    var isShared: Bool {
        switch self {
        case .file: false
        case .postgres: true
        }
    }

    /// Without making its tables: a schema that has none is no store.
    var asItIs: StorePlace {
        guard case .postgres(let address, let schema, _) = self else { return self }
        return .postgres(address: address, schema: schema, migrates: false)
    }

    /// How another writer of the same server opens it; `nil`: it takes one.
    func openLane(beside witness: PostgresWitness) -> (@Sendable () throws -> any Store)? {
        guard isShared else { return nil }
        let place = asItIs
        return { try place.open(witness: witness, isLed: true) }
    }

    /// For people; without a password.
    public var name: String {
        switch self {
        case .file(let path): path
        case .postgres(_, let schema, _): "PostgreSQL, schema \(schema)"
        }
    }

    /// Why this process may not use what is there; `nil`: nothing is known against it.
    var accessProblem: String? {
        guard case .file(let path) = self else { return nil }
        return SQLiteStore.accessProblem(at: path)
    }

    /// - Parameters:
    ///   - isPatient: A transaction may take as long as it takes.
    ///   - witness: By which all connections of the process know the database again.
    ///   - isLed: Another store of the process leads.
    ///   - upgrades: What is done about an older schema.
    func open(
        isPatient: Bool = false, witness: PostgresWitness = PostgresWitness(),
        isLed: Bool = false, upgrades: StoreUpgrades = StoreUpgrades()
    ) throws(StoreError) -> any Store {
        var options = PostgresOptions(address: "")
        if case .postgres = self { options = postgresOptions }
        (options.witness, options.isLed) = (witness, isLed)
        if isPatient {
            (options.idleTransactionTimeout, options.statementTimeout) = (0, 0)
        }
        switch self {
        case .file(let path):
            return try SQLiteStore(path: path, tables: Schema.tables) {
                upgrade throws(StoreError) in try upgrades.meet(upgrade, in: self)
            }
        case .postgres:
            return try PostgresStore(
                tables: Schema.tables, lockRanks: Schema.lockRanks, options: options
            ) { upgrade throws(StoreError) in try upgrades.meet(upgrade, in: self) }
        }
    }

    /// Reads what is committed, whether or not a server has it open.
    ///
    /// - Parameter upgrades: What is done about a file of an older schema, which stays as it is.
    func read(
        upgrades: StoreUpgrades = StoreUpgrades(refuses: true),
        _ body: (any StoreSnapshot) throws(StoreError) -> Void
    ) throws(StoreError) {
        switch self {
        case .file(let path):
            try SQLiteStore.read(
                path: path, tables: Schema.tables,
                before: { upgrade throws(StoreError) in try upgrades.meet(upgrade, in: self) },
                body)
        case .postgres:
            var options = postgresOptions
            options.migrates = false
            let store = try PostgresStore(tables: Schema.tables, options: options)
            defer { store.close() }
            try store.read(body)
        }
    }

    /// How its nodes reach it.
    var postgresOptions: PostgresOptions {
        guard case .postgres(let address, let schema, let migrates) = self else {
            preconditionFailure("\(self) is no database")
        }
        var options = PostgresOptions(address: address)
        options.schema = schema
        options.migrates = migrates
        return options
    }
}

extension Configuration {
    /// Where the store is by this configuration.
    public var storePlace: StorePlace {
        postgres.isEmpty
            ? .file(storePath)
            : .postgres(address: postgres, schema: postgresSchema, migrates: postgresMigrates)
    }
}

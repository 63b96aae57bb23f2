import Foundation
import Model
import PostgresPeer
import PostgresStore
import SQLiteStore
import Testing

@testable import Feed

/// P6 rests on it that a device is one user's, and a push token one device's: the engines refuse
/// anything else, whatever a rule forgets.
@Suite struct DeviceOwnerTests {
    private static let app = AppID("chess")
    private static let phone = DeviceID(high: 1, low: 1)
    private static let tablet = DeviceID(high: 1, low: 2)

    private static func device(
        _ user: String, _ device: DeviceID = phone, seenAt: UInt64 = 1, token: [UInt8]? = nil,
        confirmedAt: UInt64? = nil, _ environment: PushEnvironmentKind = .production,
        app: AppID = app
    ) -> DeviceRecord {
        var row = DeviceRecord(
            app: app, user: UserID(user), device: device, createdAt: Timestamp(milliseconds: 1),
            lastSeenAt: Timestamp(milliseconds: seenAt))
        row.pushToken = token
        row.pushEnvironment = environment
        row.tokenConfirmedAt = confirmedAt.map { Timestamp(milliseconds: $0) }
        return row
    }

    private static func put(_ rows: [any Record], in store: any Store) throws(StoreError) {
        try store.write { (transaction: any StoreTransaction) throws(StoreError) in
            let devices = rows.compactMap { $0 as? DeviceRecord }
            let users = Set(devices.map { [.app($0.app), .user($0.user)] as [ColumnValue] })
            for user in users.sorted(by: { SortKey($0) < SortKey($1) }) {
                _ = try transaction.row(UserRecord.table, key: user, lock: .wait)
            }
            for device in devices {
                _ = try transaction.row(DeviceRecord.table, key: device.rowKey, lock: .none)
            }
            for row in rows {
                try transaction.put(row)
            }
        }
    }

    private static func isRefused(_ rows: [any Record], by store: any Store) -> Bool {
        do throws(StoreError) {
            try put(rows, in: store)
            return false
        } catch {
            if case .conflict = error { return true }
            return false
        }
    }

    @Test(
        "a second user on a device is refused, unless the first was forgotten", arguments: engines)
    func owner(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Schema.tables, lockRanks: Schema.lockRanks) { store throws in
            try Self.put([Self.device("anna")], in: store)
            #expect(Self.isRefused([Self.device("ben")], by: store))
            // Of another app, or another device, it is none.
            try Self.put(
                [Self.device("ben", app: AppID("mail")), Self.device("ben", Self.tablet)],
                in: store)
            var forgotten = Self.device("anna")
            forgotten.expiresAt = Timestamp(milliseconds: 9)
            // In whatever order.
            try Self.put([forgotten, Self.device("ben")], in: store)
            #expect(Self.isRefused([Self.device("carl")], by: store))
            #expect(try store.rows(DeviceRecord.table).count == 4)
        }
    }

    @Test("a second device with a push token of the environment is refused", arguments: engines)
    func token(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Schema.tables, lockRanks: Schema.lockRanks) { store throws in
            try Self.put([Self.device("anna", token: [7])], in: store)
            #expect(Self.isRefused([Self.device("ben", Self.tablet, token: [7])], by: store))
            try Self.put(
                [
                    Self.device("ben", Self.tablet, token: [7], .development),
                    Self.device("ben", token: [7], app: AppID("mail")),
                ], in: store)
            // It moves.
            try Self.put(
                [
                    Self.device("anna", token: nil),
                    Self.device("carl", DeviceID(high: 2, low: 2), token: [7]),
                ],
                in: store)
            #expect(Self.isRefused([Self.device("anna", token: [7])], by: store))
        }
    }

    enum Engine: CaseIterable {
        case sqlite
        case postgres
    }

    /// A store as the program before this schema made it.
    private static func open(
        _ engine: Engine, _ tables: [Table], _ folder: String
    ) throws -> any Store {
        switch engine {
        case .sqlite: return try SQLiteStore(path: "\(folder)/store.db", tables: tables)
        case .postgres:
            var options = PostgresOptions(address: try PostgresPeer.shared().address)
            options.schema = "owners_before"
            return try PostgresStore(
                tables: tables, lockRanks: Schema.lockRanks, options: options)
        }
    }

    @Test("of what an older store holds twice the newest stays", arguments: Engine.allCases)
    func migrated(_ engine: Engine) throws {
        guard engine == .sqlite || PostgresPeer.isInstalled else {
            try Test.cancel("PostgreSQL is not installed")
        }
        try withFolder { folder throws in
            let earlier = Schema.tables.filter { $0.since <= 8 }.map { $0.asOf(schema: 8) }
            let old = try Self.open(engine, earlier, folder)
            let token = { (user: String, hash: UInt8) in
                SessionTokenRecord(
                    app: Self.app, hash: [hash], user: UserID(user), device: Self.phone,
                    issuedAt: Timestamp(milliseconds: 1), expiresAt: Timestamp(milliseconds: 99),
                    role: .app)
            }
            try Self.put(
                [
                    Self.device("anna", seenAt: 5, token: [7], confirmedAt: 5),
                    Self.device("ben", seenAt: 9), Self.device("carl", seenAt: 5),
                    Self.device("dora", Self.tablet, token: [7], confirmedAt: 4),
                    Self.device("emil", DeviceID(high: 3, low: 3), token: [7]),
                    Self.device("emil", DeviceID(high: 3, low: 4), token: [8]),
                    token("anna", 1), token("ben", 2),
                ], in: old)
            old.close()
            let store = try Self.open(engine, Schema.tables, folder)
            defer { store.close() }
            let rows = try store.rows(DeviceRecord.table).map { try DeviceRecord(row: $0) }
            let loggedIn = rows.filter { $0.expiresAt == nil }.map(\.user.name)
            #expect(loggedIn == ["ben", "dora", "emil", "emil"])
            let forgotten = rows.filter { $0.expiresAt != nil }
            #expect(forgotten.map(\.user.name) == ["anna", "carl"])
            #expect(forgotten.allSatisfy { $0.expiresAt?.milliseconds == 9 + 90 * 86_400_000 })
            #expect(forgotten.allSatisfy { $0.pushToken == nil && $0.tokenGeneration == 1 })
            // Anna's went with her device.
            let holders = rows.filter { $0.pushToken != nil }
            #expect(holders.map(\.user.name) == ["dora", "emil"])
            #expect(holders.map(\.pushToken) == [[7], [8]])
            let tokens = try store.rows(SessionTokenRecord.table)
            #expect(try tokens.map { try SessionTokenRecord(row: $0).user.name } == ["ben"])
            #expect(Self.isRefused([Self.device("zoe")], by: store))
        }
    }
}

import Foundation
import MemoryStore
import Model
import PostgresPeer
import Synchronization
import Testing
import Wake
import Wire

@testable import Feed

/// A schema is brought in while a node of the version before it still runs: nothing that this node
/// does is refused for good, and everything it does is what it was.
@Suite(.serialized, .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct RollingUpgradeTests {
    private static let app = World.app
    private static let boot = BootID(high: 9, low: 9)

    /// Two nodes, one of each version, on tables that the newer one has changed under the older.
    private final class Upgrade {
        private var chance: SeededGenerator
        let earlier: EarlierNode
        private let earlierStore: MirrorStore
        /// `nil`: there is none yet, and the tables are of schema 8.
        private(set) var newer: MirrorStore?
        private let schema: String
        /// Carries out the same, one by one.
        let oracle = MemoryStore(tables: Schema.tables, lockRanks: Schema.lockRanks)
        private(set) var sessions: [DeviceID: SessionKey] = [:]
        private var hashes: UInt64 = 0
        private(set) var opened = 0
        /// Groups that were undone, and carried out in halves.
        private(set) var halved = 0
        private(set) var refused: [String] = []
        private var clock = Timestamp(milliseconds: 1_000_000)

        init(seed: UInt64) throws {
            chance = SeededGenerator(seed: seed)
            schema = "rolling_\(seed)"
            earlierStore = try MirrorStore(
                schema: schema,
                tables: Schema.tables.filter { $0.since <= 8 }.map { $0.asOf(schema: 8) })
            earlier = EarlierNode(earlierStore)
            try Self.prepare(earlierStore, clock)
            try Self.prepare(oracle, clock)
        }

        /// The first node of the new version changes the tables.
        func bringUp() throws { newer = try MirrorStore(schema: schema) }

        func close() {
            earlierStore.close()
            newer?.close()
        }

        private static func prepare(_ store: any Store, _ now: Timestamp) throws {
            (store as? MirrorStore)?.clock = now
            (store as? MemoryStore)?.clock = now
            for request in [
                .start(boot: boot, epochHalf: 77),
                .administer(.putApp(World.classic(createdAt: now))),
                .administer(
                    .putPushCredential(
                        PushCredentialRecord(
                            app: app, environment: .development, keyID: "K", team: "T",
                            privateKeyPEM: "", topics: "org.example", host: "h", port: 1,
                            changedAt: now))),
            ] as [StoreRequest] {
                _ = try store.commit([request]).first?.get()
            }
        }

        func run(groups: Int) throws {
            for number in 0..<groups {
                clock = clock + 1_000
                let count = Int.random(in: 1...8, using: &chance)
                let group = (0..<count).map { _ in request() }
                // The newer one takes its share meanwhile.
                let takes = number % 4 == 3 ? newer : nil
                try commit(group, on: takes ?? earlier as any Store)
            }
        }

        private func request() -> StoreRequest {
            guard Int.random(in: 0..<3, using: &chance) == 0,
                let session = sessions.values.sorted(by: { $0.device < $1.device })
                    .randomElement(using: &chance)
            else { return open() }
            return .endSession(EndSession(session: session, applied: 0, expectedWithin: 10))
        }

        /// Few users, devices and tokens, in any combination: devices change hands, tokens devices.
        private func open() -> StoreRequest {
            hashes += 1
            let device = DeviceID(high: 1, low: UInt64.random(in: 0..<4, using: &chance))
            let user = "user-\(Int.random(in: 0..<4, using: &chance))"
            let token = Array(repeating: UInt8.random(in: 0..<4, using: &chance), count: 32)
            let push = PushRegistration(
                token: token, environment: .development, topic: "org.example")
            return .openSession(
                OpenSession(
                    app: RollingUpgradeTests.app, device: device, role: .app,
                    credential: .identity(UserID(user)),
                    newTokenHash: MessageID(high: 7, low: hashes).bytes, freshEpochHalf: hashes,
                    boot: RollingUpgradeTests.boot,
                    push: Bool.random(using: &chance) ? push : nil))
        }

        /// As a node does: what met others is tried again in halves.
        private func commit(_ requests: [StoreRequest], on store: any Store) throws {
            earlierStore.clock = clock
            (store as? MirrorStore)?.clock = clock
            do throws(StoreError) {
                try compare(try store.commit(requests), requests)
            } catch {
                guard case .conflict = error else { throw error }
                guard requests.count > 1 else {
                    refused.append("\(requests): \(error)")
                    return
                }
                halved += 1
                let middle = requests.count / 2
                try commit(Array(requests[..<middle]), on: store)
                try commit(Array(requests[middle...]), on: store)
            }
        }

        private func compare(
            _ results: [Result<StoreOutcome, StoreError>], _ requests: [StoreRequest]
        ) throws(StoreError) {
            oracle.clock = clock
            for (result, request) in zip(results, requests) {
                let expected = try oracle.commit([request])
                #expect([result.map(\.answer)] == expected.map { $0.map(\.answer) })
                if case .success(let outcome) = result,
                    case .opened(let session) = outcome.answer
                {
                    opened += 1
                    sessions[session.session.device] = session.session
                }
            }
        }
    }

    @Test("devices and push tokens change hands under schema 9", arguments: [1, 2] as [UInt64])
    func devices(_ seed: UInt64) throws {
        let upgrade = try Upgrade(seed: seed)
        defer { upgrade.close() }
        try upgrade.run(groups: 40)
        #expect(upgrade.halved == 0)
        try upgrade.bringUp()
        try upgrade.run(groups: 120)
        let newer = try #require(upgrade.newer)
        #expect(upgrade.refused == [])
        #expect(upgrade.opened > 300)
        // It was another order than today's, and the indexes noticed.
        #expect(upgrade.earlier.delays > 50)
        #expect(upgrade.halved > 0)
        for table in Schema.tables {
            let isSame = try newer.allRows(table) == upgrade.oracle.allRows(table)
            #expect(isSame, "\(table.name)")
        }
        print("seed \(seed): \(upgrade.opened) opened, \(upgrade.halved) groups halved")
    }

    /// A thread of its own.
    ///
    /// - Returns: waits for its end.
    private func thread(_ body: @escaping @Sendable () throws -> Void) -> () throws -> Void {
        let end = DispatchSemaphore(value: 0)
        let result = Mutex<Result<Void, any Error>?>(nil)
        let thread = Thread {
            let ended = Result { try body() }
            result.withLock { $0 = ended }
            end.signal()
        }
        thread.stackSize = 8 << 20
        thread.start()
        return {
            end.wait()
            try result.withLock { $0 }?.get()
        }
    }

    private static func putDevice(of user: String, in store: any Store) throws(StoreError) {
        try store.write { transaction throws(StoreError) in
            try putDevice(of: user, in: transaction)
        }
    }

    private static func putDevice(
        of user: String, in transaction: any StoreTransaction
    ) throws(StoreError) {
        let now = Timestamp(milliseconds: 1)
        // Carl's is Anna's.
        let device = DeviceID(high: 1, low: user == "ben" ? 2 : 1)
        try transaction.put(
            DeviceRecord(
                app: app, user: UserID(user), device: device, createdAt: now, lastSeenAt: now))
    }

    /// Whether the migration waits for the older node's transaction.
    private static func isWaiting(for schema: String) throws -> Bool {
        try PostgresPeer.shared().psql(
            """
            DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '\(schema)'
            AND NOT l.granted AND l.mode = 'ShareRowExclusiveLock')
            THEN RAISE EXCEPTION 'not yet'; END IF; END $$
            """) == ""
    }

    @Test("an open transaction of the older node is waited for, and its next goes well")
    func openTransaction() throws {
        let schema = "rolling_open"
        let earlier = Schema.tables.filter { $0.since <= 8 }.map { $0.asOf(schema: 8) }
        try MirrorStore(schema: schema, tables: earlier).close()
        let isOpen = DispatchSemaphore(value: 0)
        let isWaiting = DispatchSemaphore(value: 0)
        let older = thread {
            let store = try MirrorStore(schema: schema, tables: earlier)
            defer { store.close() }
            try store.write { transaction throws(StoreError) in
                try Self.putDevice(of: "anna", in: transaction)
                _ = try transaction.rows(DeviceRecord.table, Scan(limit: 1))
                isOpen.signal()
                for _ in 0..<100 where !((try? Self.isWaiting(for: schema)) ?? false) {
                    usleep(10_000)
                }
                isWaiting.signal()
                // Another of its writers comes meanwhile.
                usleep(300_000)
            }
        }
        // It is connected before the tables change, as a node that runs is.
        let other = try MirrorStore(schema: schema, tables: earlier)
        defer { other.close() }
        #expect(isOpen.wait(timeout: .now() + 10) == .success)
        let newer = thread { try MirrorStore(schema: schema).close() }
        #expect(isWaiting.wait(timeout: .now() + 10) == .success)
        // It waits behind the migration, 2 s at most, and may be refused for now.
        for attempt in 1... {
            do throws(StoreError) {
                try Self.putDevice(of: "ben", in: other)
                break
            } catch {
                guard case .conflict = error, attempt < 10 else { throw error }
            }
        }
        try older()
        try newer()
        #expect(try other.allRows(DeviceRecord.table).count == 2)
        #expect(throws: StoreError.self) {
            try MirrorStore(schema: schema, tables: earlier).close()
        }
        // The index is there, for both.
        let refused = #expect(throws: StoreError.self) {
            try other.write { transaction throws(StoreError) in
                try Self.putDevice(of: "carl", in: transaction)
            }
        }
        guard case .conflict? = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
    }
}

import Feed
import FoundationEssentials
import Model
import SQLiteStore
import Wake

/// What a dead server left on disk: read from its file while no server holds it.
struct ServerFacts {
    var wakesInFlight = 0
    var graceRows = 0
    var unreachable = 0
    var outcomes: [WakeOutcome: Int] = [:]

    var objects = ReplayReport.Held()

    /// Every missed grace is one demotion; one whose app came after all is counted late.
    var demotions: Int { outcomes[.noShow, default: 0] + outcomes[.late, default: 0] }
    /// Each demotion but those that still hold was taken back by a sync of the app.
    var recoveries: Int { max(0, demotions - unreachable) }

    /// `path`: the store of a server that has ended.
    init(path: String) throws {
        let store = try SQLiteStore(path: path, tables: Schema.tables)
        defer { store.close() }
        try store.read { snapshot throws(StoreError) in
            for wake in try snapshot.records(WakeRecord.self, Scan(limit: .max)) {
                if wake.phase == .sending || wake.owner != nil { wakesInFlight += 1 }
                if wake.phase == .waiting { graceRows += 1 }
            }
            for device in try snapshot.records(DeviceRecord.self, Scan(limit: .max)) {
                objects.devices += 1
                if device.isUnreachable { unreachable += 1 }
            }
            objects.users = try snapshot.records(UserRecord.self, Scan(limit: .max)).count
            objects.conversations =
                try snapshot.records(ConversationRecord.self, Scan(limit: .max)).count
            objects.messages = try snapshot.records(MessageRecord.self, Scan(limit: .max)).count
            objects.entries = try snapshot.records(EntryRecord.self, Scan(limit: .max)).count
            for wake in try snapshot.records(WakeHistoryRecord.self, Scan(limit: .max)) {
                outcomes[wake.outcome, default: 0] += 1
            }
        }
    }
}

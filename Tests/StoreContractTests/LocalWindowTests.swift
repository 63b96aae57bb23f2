import Model
import Testing
import Wire

@testable import SyncClient

/// From where on a conversation is whole on a device, on both engines.
@Suite struct LocalWindowTests {
    private let one = LocalHistoryTests()
    private let room = LocalHistoryTests.room
    private let time = Timestamp(milliseconds: 5_000)

    @Test("a range that leaves a gap makes nothing whole", arguments: engines)
    func gap(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            let page = one.snapshot([one.state(), one.member("anna"), one.message(50)], from: 50)
            _ = try local.applySnapshot(page, at: time)
            func fetched(_ first: UInt64, _ last: UInt64) throws -> UInt64 {
                _ = try local.applyHistory(
                    HistoryChange(
                        entries: [one.message(first)],
                        complete: CompleteRange(
                            conversation: room, first: first, last: last)))
                return try local.wholeFrom(room)
            }
            #expect(try fetched(5, 20) == 50, "21 to 49 may be missing")
            #expect(try fetched(30, 49) == 30)
            #expect(try fetched(21, 29) == 21)
        }
    }

    @Test(
        "HIS-36: of a conversation whose whole part has no message nothing is summed up",
        arguments: engines)
    func onlyTombstones(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            try one.feed([one.state(), one.member("anna"), one.message(3)], local)
            let deleted = Entry(
                conversation: room, object: MessageID(high: 1, low: 6).bytes, version: 2,
                body: .tombstone(TombstoneState(position: 6, forEveryone: true)))
            let page = one.snapshot([one.state(), one.member("anna"), deleted], from: 5)
            _ = try local.applySnapshot(page, at: time)
            #expect(try one.positions(local).contains(3), "it is older than what is whole")
            #expect(try local.digest().positions == 0)
        }
    }
}

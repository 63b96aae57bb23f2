import Feed
import MemoryStore
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct JoinedTests {
    @Test(
        "HIS-20, HIS-23: phones that take snapshots hold what the server holds",
        arguments: 100..<112 as Range<UInt64>)
    func snapshotsWhateverHappens(_ seed: UInt64) throws {
        let world = try Joined(seed: seed, snapshots: true)
        for index in 0..<5 as Range<UInt64> {
            _ = try world.commit(
                .createConversation(
                    app: Joined.app,
                    CreateConversation(
                        conversation: ConversationID(high: 3, low: index),
                        participants: [Joined.user.name, "bob"]), idempotency: nil))
        }
        for _ in 0..<1_500 { try world.step(isCalm: false) }
        world.mayFail = false
        world.store.faults = []
        for device in world.devices {
            device.local.fault = nil
            world.run(device) {
                $0.appStateChanged(AppState(phase: .foreground), now: $1)
            }
            world.run(device) { $0.userRefresh(now: $1) }
        }
        for device in world.devices {
            // A device that never lost anything proves less; what it wrote is another test's.
            for _ in 0..<5_000 where !device.local.outbox.isEmpty {
                try world.step(isCalm: true)
            }
            try world.forget(device)
            world.run(device) { $0.userRefresh(now: $1) }
        }
        var steps = 0
        while steps < 30_000 {
            try world.step(isCalm: true)
            steps += 1
            guard world.isSettled, steps % 50 == 0 else { continue }
            let untold = world.devices.filter { $0.digest?.isEqualDigest != true }
            if untold.isEmpty { break }
            for device in untold { world.run(device) { $0.checkDigest(now: $1) } }
        }
        let page = try world.feed()
        let messages = page.entries.count { if case .message = $0.body { true } else { false } }
        for device in world.devices {
            #expect(device.client.cursor?.seq == page.head)
            #expect(device.local.snapshots > 0)
            guard case .digest(true, true, let objects) = device.digest else {
                Issue.record("\(String(describing: device.digest))")
                continue
            }
            // The conversations, and what of the messages is whole.
            #expect(objects >= 6 + UInt64(min(messages, 6)))
        }
        #expect(world.amnesias >= 2 && world.cuts > 3)
    }

    @Test(arguments: 0..<24 as Range<UInt64>)
    func whateverHappensEveryPhoneHasEverything(_ seed: UInt64) throws {
        let world = try Joined(seed: seed)
        for _ in 0..<1_500 { try world.step(isCalm: false) }
        world.mayFail = false
        world.store.faults = []
        for device in world.devices {
            device.local.fault = nil
            world.run(device) {
                $0.appStateChanged(AppState(phase: .foreground), now: $1)
            }
            world.run(device) { $0.userRefresh(now: $1) }
        }
        var steps = 0
        while steps < 20_000 {
            try world.step(isCalm: true)
            steps += 1
            if world.isSettled, try isComplete(world) { break }
        }
        #expect(world.isSettled)
        let page = try world.feed()
        for device in world.devices {
            #expect(device.client.cursor?.seq == page.head)
            let rows = device.local.rows.values.map(\.entry.seq).sorted()
            #expect(rows == page.entries.map(\.seq))
            #expect(device.local.outbox.isEmpty)
            #expect(device.local.results.values.allSatisfy { $0.code == 0 })
            // One reset only: the first login has no cursor and nothing to mark.
            #expect(device.local.resets == 0)
        }
        // Every message sent on a phone exists exactly once.
        let ids = page.entries.compactMap { entry -> MessageID? in
            guard case .message = entry.body else { return nil }
            return MessageID(entry.object)
        }
        #expect(Set(ids).count == ids.count)
        #expect(world.sentTexts.allSatisfy { ids.contains($0) })
        #expect(world.cuts > 5 && world.crashes > 3)
    }

    private func isComplete(_ world: Joined) throws -> Bool {
        let head = try world.feed().head
        return world.devices.allSatisfy { $0.client.cursor?.seq == head }
    }
}

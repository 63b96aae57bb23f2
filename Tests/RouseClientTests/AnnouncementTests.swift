import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// Announcements as an app lists and reads them.
@Suite struct AnnouncementTests {
    private static let sale = MessageID(high: 0, low: 77)

    private static func announcement(
        _ id: MessageID, _ text: String, seq: UInt64, isRead: Bool = false
    ) -> Entry {
        Entry(
            seq: seq, object: id.bytes, version: seq,
            body: .announcement(
                AnnouncementState(
                    sentMs: 1_000 * seq, parts: [Part(text)],
                    push: PushText(title: "Shop", body: text), read: isRead)))
    }

    @Test("they are listed, also after a restart; one that is read leaves the screen, offline too")
    func listedAndRead() async throws {
        let stage = try Stage()
        let first = stage.process()
        var lists = await first.announcements().makeAsyncIterator()
        try await LiveTests.synced(first) { await first.scene(.active) }
        #expect(await lists.next()?.isEmpty == true)
        await first.scene(.background(remaining: 20_000))
        stage.server.publish(Self.announcement(Self.sale, "half", seq: 11), unread: 0)
        let other = MessageID(high: 0, low: 5)
        stage.server.publish(Self.announcement(other, "closed", seq: 12), unread: 0)
        try await LiveTests.synced(first) { stage.server.ring() }
        #expect(await lists.next()?.map(\.text) == ["closed", "half"])
        #expect(stage.phone.screen == [77, 5])
        await first.scene(.suspending)

        let second = stage.process()
        lists = await second.announcements().makeAsyncIterator()
        stage.server.feed.withLock { $0.isSilent = true }
        await second.scene(.active)
        #expect(await lists.next()?.map(\.isRead) == [false, false])
        try await second.read(announcement: Self.sale)
        #expect(await lists.next()?.map(\.isRead) == [false, true])
        // Before the server has heard of it.
        await second.scene(.suspending)
        #expect(stage.phone.screen == [5])
        #expect(stage.server.feed.withLock { $0.reads }.isEmpty)

        stage.server.feed.withLock { $0.isSilent = false }
        try await LiveTests.synced(second) { await second.scene(.active) }
        #expect(stage.server.feed.withLock { $0.reads.map(\.announcement) } == [Self.sale])
        // Another device has read the other.
        stage.server.publish(
            Self.announcement(other, "closed", seq: 13, isRead: true), unread: 0)
        try await LiveTests.synced(second) { stage.server.ring() }
        #expect(await lists.next()?.map(\.isRead) == [true, true])
        #expect(stage.phone.screen.isEmpty)
    }

    @Test("one that its backend took back leaves the list and the screen (MSG-57)")
    func takenBack() async throws {
        let stage = try Stage()
        let phone = stage.process()
        var lists = await phone.announcements().makeAsyncIterator()
        try await LiveTests.synced(phone) { await phone.scene(.active) }
        #expect(await lists.next()?.isEmpty == true)
        await phone.scene(.background(remaining: 20_000))
        let other = MessageID(high: 0, low: 5)
        stage.server.publish(Self.announcement(Self.sale, "half", seq: 11), unread: 0)
        stage.server.publish(Self.announcement(other, "closed", seq: 12), unread: 0)
        try await LiveTests.synced(phone) { stage.server.ring() }
        #expect(await lists.next()?.map(\.text) == ["closed", "half"])
        #expect(stage.phone.screen == [77, 5])
        stage.server.publish(Self.tombstone(Self.sale, seq: 13), unread: 0)
        try await LiveTests.synced(phone) { stage.server.ring() }
        #expect(await lists.next()?.map(\.text) == ["closed"])
        #expect(stage.phone.screen == [5])
        // One that comes with its end at once is never shown.
        stage.server.publish(
            Self.tombstone(MessageID(high: 0, low: 78), seq: 14), unread: 0)
        try await LiveTests.synced(phone) { stage.server.ring() }
        #expect(stage.phone.screen == [5])
    }

    private static func tombstone(_ id: MessageID, seq: UInt64) -> Entry {
        Entry(
            seq: seq, object: id.bytes, version: seq,
            body: .tombstone(TombstoneState(forEveryone: true, deletedMs: 1_000 * seq)))
    }
}

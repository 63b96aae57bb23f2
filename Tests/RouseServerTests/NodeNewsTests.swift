import Foundation
import Model
import PostgresStore
import SyncService
import Testing
import Wire

@testable import Feed
@testable import RouseServer

/// What nodes tell each other.
@Suite struct NodeNewsTests {
    private func signal(_ sender: String, _ kind: SignalKind = .typing, room: UInt64 = 1)
        -> NodeSignal
    {
        NodeSignal(
            app: AppID("chat"), conversation: ConversationID(high: 7, low: room),
            sender: UserID(sender), kind: kind, ttlMs: 6_000, users: [UserID("bob")])
    }

    private func told(_ news: [NodeNews]) throws -> NodeTold {
        let data = try JSONEncoder().encode(NodeText(from: "here", news: news))
        return NodeTold(try JSONDecoder().decode(NodeText.self, from: data).news)
    }

    @Test("signals, changes of audiences and lost push tokens arrive as they were told")
    func arrives() throws {
        let changes: [AudienceChange] = [
            .conversation(AppID("chat"), ConversationID(high: 1, low: 2)),
            .sender(AppID("chat"), UserID("anna")),
        ]
        let gone = DetachedDevice(
            app: AppID("chat"), user: UserID("anna"), device: DeviceID(high: 1, low: .max))
        let heard = try told(
            changes.map { .audience(.init($0)) }
                + [.signal(.init(signal("anna"))), .detached(.init(gone))])
        #expect(heard.effects.detached == [gone])
        #expect(heard.effects.audiences == changes)
        #expect(heard.signals == [signal("anna")])
        #expect(!heard.haveAudiencesChanged)
        #expect(try told([.audiences]).haveAudiencesChanged)
    }

    @Test("a signal to many names nobody, so that its hint stays small")
    func isSmall() throws {
        let many = NodeSignal(
            app: AppID("chat"), conversation: ConversationID(high: 7, low: 1),
            sender: UserID("anna"), kind: .typing, ttlMs: 1,
            users: (0...NodeSignal.usersMax).map { UserID("user \($0)") })
        #expect(many.users.isEmpty)
        #expect(try JSONEncoder().encode(NodeNews.signal(.init(many))).count < 200)
    }

    @Test("a node tells the others, unless its beat found none and it has heard of none lately")
    func others() throws {
        var others = OtherNodes()
        func instant(_ seconds: UInt64) -> Instant { Instant(milliseconds: seconds * 1_000) }
        // Nothing is known before the first beat.
        #expect(others.mayBeThere(now: instant(1)))
        others.take(NodeStanding(isAlone: true))
        #expect(!others.mayBeThere(now: instant(2)))
        // One has come that has no row yet.
        others.heard(now: instant(3))
        others.take(NodeStanding(isAlone: true))
        #expect(others.mayBeThere(now: instant(12)))
        #expect(!others.mayBeThere(now: instant(13)))
        others.take(NodeStanding(hasOthers: false, isAlone: false))
        #expect(others.mayBeThere(now: instant(14)))

        let text = NodeText.announcement(from: "there")
        let read = try JSONDecoder().decode(NodeText.self, from: Data(text.utf8))
        #expect(read.from == "there" && read.news.isEmpty && read.unread == 0)
    }

    private func moved(_ user: String, _ head: UInt64) -> NodeNews {
        .moved(
            .init(
                FeedChange(
                    app: AppID("chat"), user: UserID(user), head: head, kinds: 1,
                    isUrgent: false)))
    }

    @Test("of what a newer node tells the rest is read where one item is of an unknown kind")
    func lenient() throws {
        let known = try JSONEncoder().encode([moved("anna", 7), .deliveries])
        var items = String(decoding: known, as: UTF8.self)
        items = "[{\"later\":{}},{\"moved\":{\"_0\":{\"app\":1}}},7," + items.dropFirst()
        let text = try JSONDecoder().decode(
            NodeText.self, from: Data("{\"from\":\"there\",\"more\":1,\"news\":\(items)}".utf8))
        #expect(text.from == "there" && text.unread == 3)
        let told = NodeTold(text.news)
        #expect(told.effects.changes.all.map(\.head) == [7] && told.effects.hasDeliveries)
        let odd = NodeNews.ended(
            .init(
                SessionKey(
                    app: AppID("chat"), user: UserID("anna"), device: DeviceID(high: 1, low: 1),
                    role: .app, generation: 1)), code: 9_999)
        #expect(NodeTold([odd]).unread == 1)
    }

    @Test("no text is longer than PostgreSQL takes, and what is too long for any is counted")
    func fits() throws {
        // What takes most bytes in JSON.
        let name = String(repeating: "\u{1}\"/", count: 60)
        let news = (0..<500).map { moved("\($0)\(name)", UInt64($0)) }
        let tooLong = moved(String(repeating: "\u{1}", count: 2_000), 1)
        let (texts, leftOut) = NodeText.texts(
            from: "here", Array(news[..<250]) + [tooLong] + Array(news[250...]),
            bytesMax: PostgresHints.bytesMax)
        #expect(leftOut == 1)
        #expect(texts.allSatisfy { $0.utf8.count <= PostgresHints.bytesMax })
        #expect(texts.count > 20 && texts.dropLast().allSatisfy { $0.utf8.count > 7_000 })
        let heard = try texts.flatMap {
            try JSONDecoder().decode(NodeText.self, from: Data($0.utf8)).news
        }
        var told = NodeTold(heard)
        told.effects.changes.finish()
        #expect(told.effects.changes.all.map(\.head).sorted() == (0..<500).map { UInt64($0) })
        // One that just fits, alone and behind others.
        let one = NodeText.texts(from: "here", [news[0]], bytesMax: 8_000).texts[0].utf8.count
        #expect(NodeText.texts(from: "here", [news[0]], bytesMax: one).leftOut == 0)
        #expect(NodeText.texts(from: "here", [news[0]], bytesMax: one - 1).leftOut == 1)
        let two = NodeText.texts(from: "here", [.deliveries, news[0]], bytesMax: one)
        #expect(two.texts.count == 2 && two.leftOut == 0)
    }

    @Test("of each user in a conversation the newest signal waits, not for long, and not too many")
    func waits() {
        let start = Instant(milliseconds: 50_000)
        var waiting = WaitingSignals()
        func add(_ signal: NodeSignal, _ now: Instant) -> Bool { waiting.add(signal, now: now) }
        #expect(add(signal("old"), start))
        let later = start + WaitingSignals.freshFor
        #expect(add(signal("anna"), later))
        #expect(add(signal("anna", .typingEnded), later))
        #expect(add(signal("anna", .present, room: 2), later))
        let fresh = waiting.fresh(now: later + 1)
        #expect(fresh.count == 2)
        #expect(fresh.contains(signal("anna", .typingEnded)))
        #expect(fresh.contains(signal("anna", .present, room: 2)))
        for number in 3..<WaitingSignals.max {
            #expect(add(signal("user \(number)"), later))
        }
        #expect(!add(signal("one more"), later))
        #expect(add(signal("anna"), later))
    }
}

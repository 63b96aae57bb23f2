import Foundation
import Model
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

    @Test("signals and changes of audiences arrive as they were told")
    func arrives() throws {
        let changes: [AudienceChange] = [
            .conversation(AppID("chat"), ConversationID(high: 1, low: 2)),
            .sender(AppID("chat"), UserID("anna")),
        ]
        let heard = try told(
            changes.map { .audience(.init($0)) } + [.signal(.init(signal("anna")))])
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

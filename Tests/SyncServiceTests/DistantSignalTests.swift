import Feed
import Model
import Testing
import Wire

@testable import SyncService

/// Signals of other nodes on their way to a loop's sessions.
@Suite struct DistantSignalTests {
    private func signal(_ sender: String, _ kind: SignalKind = .typing) -> NodeSignal {
        NodeSignal(
            app: AppID("chat"), conversation: ConversationID(high: 7, low: 1),
            sender: UserID(sender), kind: kind, ttlMs: 6_000, users: [UserID("bob")])
    }

    @Test("one read serves what a user signals meanwhile, and the newest is handed on")
    func newest() {
        var signals = DistantSignals()
        var asked: [StoreQuery] = []
        func take(_ signal: NodeSignal, mark: UInt64) {
            signals.take(signal, mark: mark) { query in
                asked.append(query)
                return UInt64(asked.count)
            }
        }
        take(signal("anna"), mark: 3)
        // The mark is that of before the read: what changed after it shows.
        take(signal("anna", .typingEnded), mark: 4)
        #expect(
            asked == [
                .audience(AppID("chat"), UserID("anna"), ConversationID(high: 7, low: 1))
            ])
        let none = signals.answered(9)
        #expect(none == nil)
        let answered = signals.answered(1)
        #expect(answered?.signal == signal("anna", .typingEnded) && answered?.mark == 3)
        #expect(signals.count == 0)
    }

    @Test("what is above the reads at one time is dropped")
    func dropped() {
        var signals = DistantSignals()
        var ticket: UInt64 = 0
        for number in 0..<(2 * DistantSignals.readingMax) {
            signals.take(signal("user \(number)"), mark: 0) { _ in
                ticket += 1
                return ticket
            }
        }
        #expect(ticket == UInt64(DistantSignals.readingMax))
        _ = signals.answered(1)
        signals.take(signal("one more"), mark: 0) { _ in 1_000 }
        let late = signals.answered(1_000)
        #expect(late?.signal == signal("one more"))
    }
}

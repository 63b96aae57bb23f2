import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// Which alerts a notification service extension gives other words.
@Suite(.timeLimit(.minutes(60))) struct WordsTests {
    private func peek(
        _ number: UInt64, _ stage: Stage, shown body: String
    ) async -> Peek {
        await ExtensionTests.Peeker(stage).peeker.peek(
            MessageID(high: 0, low: number), in: Stage.room,
            shown: AlertWords(title: "Ben", body: body), within: 30_000)
    }

    @Test("an alert that stands for several goes on to say so")
    func summary() async throws {
        let stage = try Stage()
        for number in 1...3 as ClosedRange<UInt64> {
            stage.server.publish(Stage.message(number), unread: UInt32(number))
        }
        let peek = await peek(3, stage, shown: "3 (and 2 more)")
        #expect(peek.notice == nil)
        #expect(peek.badge == 3)
    }

    @Test("one whose message was edited since says what it says now, and no more of what it said")
    func edited() async throws {
        let stage = try Stage()
        var entry = Stage.message(1, body: "the code")
        guard case .message(var state) = entry.body else { return }
        state.editedMs = 5
        entry.body = .message(state)
        stage.server.publish(entry, unread: 1)
        #expect(await peek(1, stage, shown: "the code is 1234").notice?.body == "the code")
        #expect(await peek(1, stage, shown: "the code").notice == nil)
    }
}

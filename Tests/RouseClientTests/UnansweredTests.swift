import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What a person has changed while nobody answers: the screen shows it, and the server gets it.
@Suite(.timeLimit(.minutes(60))) struct UnansweredTests {
    private static func own(_ position: UInt64, _ text: String, seq: UInt64) -> Entry {
        Entry(
            seq: seq, conversation: Stage.room, object: MessageID(high: 0, low: position).bytes,
            version: seq,
            body: .message(
                MessageState(
                    position: position, sender: "anna", sentMs: 2_000 + position,
                    parts: [Part(text)], push: PushText(title: "Anna", body: text))))
    }

    /// A room with two messages of anna's, and no connection.
    private static func offline(_ stage: Stage) async throws -> Rouse {
        let rouse = try await LiveTests.room(stage)
        stage.server.publish(own(1, "first", seq: 14), unread: 0)
        stage.server.publish(own(2, "second", seq: 15), unread: 0)
        try await LiveTests.synced(rouse) { stage.server.ring() }
        await LiveTests.hungUp(rouse, stage)
        return rouse
    }

    private func window(_ rouse: Rouse) async -> [MessageRow] {
        for await window in await rouse.messages(in: Stage.room, newest: 9) { return window.rows }
        return []
    }

    @Test("edits are shown at once, and the second one goes behind the first")
    func edited() async throws {
        let stage = try Stage()
        let rouse = try await Self.offline(stage)
        var lists = await rouse.conversations().makeAsyncIterator()
        #expect(await lists.next()?.first?.last?.text == "second")
        let row = try #require(await window(rouse).last)
        #expect(row.version == 15)
        try await rouse.edit(row, text: "better")
        let better = try #require(await window(rouse).last)
        #expect(better.text == "better" && better.push?.body == "better" && better.isEditQueued)
        #expect(await lists.next()?.first?.last?.text == "better")
        try await rouse.edit(better, text: "best")
        #expect(await lists.next()?.first?.last?.text == "best")
        // Also to the next process.
        let next = stage.process(over: FaultyStore(stage.disk))
        await next.scene(.inactive)
        #expect(await window(next).map(\.text) == ["first", "best"])
        // The server has them in their order; the second one must not be refused for the first.
        try await LiveTests.synced(rouse) { await rouse.refresh() }
        let edits = stage.server.feed.withLock { $0.edits }
        #expect(edits.map(\.parts) == [[Part("better")], [Part("best")]])
        #expect(edits.map(\.baseVersion) == [15, 0])
        // Between the answer and the feed's word the old text does not come back.
        let answered = try #require(await window(rouse).last)
        #expect(answered.text == "best" && !answered.isEditQueued && answered.version == 0)
        // Each of the two has raised the version by 1 (MSG-33).
        stage.server.publish(Self.own(2, "best", seq: 17), unread: 0)
        try await LiveTests.synced(rouse) { stage.server.ring() }
        let last = try #require(await window(rouse).last)
        #expect(last.text == "best" && !last.isEditQueued && last.version == 17)
        // What another device makes of it is newer.
        stage.server.publish(Self.own(2, "worse", seq: 18), unread: 0)
        try await LiveTests.synced(rouse) { stage.server.ring() }
        #expect(await window(rouse).last?.text == "worse")
    }

    @Test("an edit that the server refuses is shown no longer")
    func refused() async throws {
        let stage = try Stage()
        let rouse = try await Self.offline(stage)
        stage.server.feed.withLock { $0.refusal = .versionConflict }
        let row = try #require(await window(rouse).last)
        let lists = await rouse.conversations()
        try await rouse.edit(row, text: "better")
        try await LiveTests.synced(rouse) { await rouse.refresh() }
        #expect(await window(rouse).map(\.text) == ["first", "second"])
        for await rows in lists where rows.first?.last?.text == "second" { break }
    }

    @Test("a change that is refused stands beside its message until it is put aside")
    func refusalShown() async throws {
        let stage = try Stage()
        let rouse = try await Self.offline(stage)
        stage.server.feed.withLock { $0.refusal = .versionConflict }
        let row = try #require(await window(rouse).last)
        let number = try await rouse.edit(row, text: "better")
        #expect(try await rouse.result(of: number) == nil)
        let lists = await rouse.conversations()
        try await LiveTests.synced(rouse) { await rouse.refresh() }
        let refusal = Refusal(code: Code.versionConflict.rawValue)
        #expect(try await rouse.result(of: number)?.code == refusal.code)
        for await rows in lists where rows.first?.last?.refusedChange != nil { break }
        // A later process knows it, too.
        let next = stage.process(over: FaultyStore(stage.disk))
        await next.scene(.inactive)
        let shown = try #require(await window(next).last)
        let change = try #require(shown.refusedChange)
        #expect(shown.text == "second" && change.refusal == refusal)
        guard case .editMessage(let edit) = change.operation else {
            Issue.record("it is no edit")
            return
        }
        #expect(edit.parts == [Part("better")])
        #expect(try await next.refusedChanges() == [change])
        #expect(try await next.discard(change))
        #expect(await window(next).last?.refusedChange == nil)
        #expect(try await !next.discard(change))
    }

    @Test("what was deleted is seen no more, and what stands below it is the newest")
    func deleted() async throws {
        let stage = try Stage()
        let rouse = try await Self.offline(stage)
        var lists = await rouse.conversations().makeAsyncIterator()
        #expect(await lists.next()?.first?.last?.text == "second")
        let row = try #require(await window(rouse).last)
        try await rouse.delete(row.id, forEveryone: true)
        #expect(await window(rouse).map(\.text) == ["first"])
        #expect(await lists.next()?.first?.last?.text == "first")
    }

    @Test("a message that is deleted before it has left is never sent, nor by a later process")
    func deletedUnsent() async throws {
        for isKilled in [false, true] {
            let stage = try Stage()
            var rouse = try await Self.offline(stage)
            let kept = try await rouse.send("kept", to: Stage.room)
            let sent = try await rouse.send("oops", to: Stage.room)
            let row = try #require(await window(rouse).last)
            try await rouse.edit(row, text: "oops!")
            if isKilled {
                rouse = stage.process(over: FaultyStore(stage.disk))
                await rouse.scene(.inactive)
            }
            let life = await rouse.delivery(of: sent)
            let changes = await rouse.changes()
            let number = try await rouse.delete(sent.message, forEveryone: true)
            #expect(await window(rouse).map(\.text) == ["first", "second", "kept"])
            // It is gone, and its deletion is done.
            for await _ in life {}
            for await case .results(let results) in changes {
                #expect(results.last == MutationResult(number: number))
                break
            }
            try await LiveTests.synced(rouse) {
                await rouse.scene(.active)
                await rouse.refresh()
            }
            #expect(stage.server.feed.withLock { $0.sent.map(\.message) } == [kept.message])
            #expect(stage.server.feed.withLock { $0.edits }.isEmpty)
            #expect(try TableLocalStore(store: stage.disk).load().firstUnanswered == nil)
        }
    }

    @Test("one that may have left is deleted at the server, also by a later process")
    func deletedUnanswered() async throws {
        for isKilled in [false, true] {
            let stage = try Stage()
            var rouse = try await Self.offline(stage)
            stage.server.feed.withLock { $0.isMute = true }
            let sent = try await rouse.send("oops", to: Stage.room)
            // It leaves with the next HELLO, and nobody answers.
            try await LiveTests.synced(rouse) { await rouse.refresh() }
            await LiveTests.hungUp(rouse, stage)
            if isKilled {
                rouse = stage.process(over: FaultyStore(stage.disk))
                await rouse.scene(.inactive)
            }
            let number = try await rouse.delete(sent.message, forEveryone: true)
            #expect(await window(rouse).map(\.text) == ["first", "second"])
            stage.server.feed.withLock { $0.isMute = false }
            let changes = await rouse.changes()
            await rouse.scene(.active)
            await rouse.refresh()
            for await case .results(let results) in changes {
                #expect(results.map(\.number).last == number)
                break
            }
            #expect(stage.server.feed.withLock { $0.sent.map(\.message) } == [sent.message])
        }
    }

    @Test("a message that waits is edited and deleted like any other")
    func waiting() async throws {
        let stage = try Stage()
        let rouse = try await Self.offline(stage)
        let sent = try await rouse.send("thrid", to: Stage.room)
        let row = try #require(await window(rouse).last)
        try await rouse.edit(row, text: "third")
        var lists = await rouse.conversations().makeAsyncIterator()
        #expect(await lists.next()?.first?.last?.text == "third")
        #expect(await window(rouse).map(\.text) == ["first", "second", "third"])
        try await rouse.delete(sent.message, forEveryone: true)
        #expect(await window(rouse).map(\.text) == ["first", "second"])
        #expect(await lists.next()?.first?.last?.text == "second")
    }
}

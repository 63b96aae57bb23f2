import Feed
import MemoryStore
import Model
import Testing

/// Which provider token of a key is the one that everybody sends.
@Suite struct ProviderTokenTests {
    private let world: World

    init() throws { world = try World() }

    private func ask(
        _ token: String, refused: String? = nil, replacesYoung: Bool = false,
        key: [UInt8] = [1], keyID: String = "KEY"
    ) throws -> KeptProviderToken {
        let request = KeepProviderToken(
            team: "TEAM", keyID: keyID, fingerprint: key, token: token, refused: refused,
            replacesYoung: replacesYoung)
        let answer = try world.ask(.keepProviderToken(request))
        guard case .providerToken(let kept) = answer else { throw Unexpected(answer: answer) }
        return kept
    }

    private func pass(minutes: UInt64) { world.pass(minutes * 60_000) }

    @Test("whoever comes later gets the token of who came first, for 50 minutes")
    func shared() throws {
        #expect(try ask("a") == KeptProviderToken(token: "a", age: 0))
        pass(minutes: 49)
        #expect(try ask("b") == KeptProviderToken(token: "a", age: 49 * 60_000))
        pass(minutes: 1)
        #expect(try ask("c") == KeptProviderToken(token: "c", age: 0))
        #expect(try ask("d").token == "c")
        #expect(try ask("e", key: [2]).token == "e", "another key of the same name")
        #expect(try ask("f", keyID: "OTHER").token == "f")
    }

    @Test("one that APNs refused is replaced once, and not within 20 minutes")
    func refused() throws {
        _ = try ask("a")
        pass(minutes: 19)
        #expect(try ask("b", refused: "a").token == "a")
        pass(minutes: 1)
        #expect(try ask("c", refused: "a").token == "c")
        // Another node was told so too: it gets the new one.
        #expect(try ask("d", refused: "a").token == "c")
    }

    @Test("one that APNs never took is replaced at once, and by one token for all")
    func neverTaken() throws {
        _ = try ask("a")
        #expect(try ask("b", refused: "a", replacesYoung: true).token == "b")
        #expect(try ask("c", refused: "a", replacesYoung: true).token == "b")
    }

    @Test("it is gone after an hour; one far in the future is of a clock that was set back")
    func times() throws {
        _ = try ask("a")
        pass(minutes: 59)
        try world.ask(.enforceRetention(rows: 100))
        #expect(try world.all(ProviderTokenRecord.self).map(\.token) == ["a"])
        pass(minutes: 1)
        try world.ask(.enforceRetention(rows: 100))
        #expect(try world.all(ProviderTokenRecord.self).isEmpty)
        _ = try ask("b")
        world.store.clock = Timestamp(milliseconds: world.now.milliseconds - 60_000)
        #expect(try ask("c") == KeptProviderToken(token: "b", age: 0))
        world.store.clock = Timestamp(milliseconds: world.now.milliseconds - 20 * 60_000)
        #expect(try ask("d").token == "d")
    }
}

import Feed
import Model
import Testing

@testable import BackendAPI

/// When tokens of logins are looked up, by a clock of the test's own.
@Suite struct TokenLookupTests {
    /// The store and the timer of a lookup.
    private final class Stage {
        var now = Instant(milliseconds: 1_000)
        var readings: [(TokenLookup.Tokens) -> Void] = []
        var waits: [Milliseconds] = []
        var found: [Result<Bool, StoreError>] = []
        private(set) lazy var lookup = TokenLookup(
            now: now, read: { [unowned self] in readings.append($0) },
            later: { [unowned self] in waits.append($0) })

        func find(_ hash: UInt8) {
            lookup.find(hash: [hash], now: now) { [unowned self] in
                found.append($0.map { $0 != nil })
            }
        }

        func answer(_ tokens: TokenLookup.Tokens) { readings.removeFirst()(tokens) }

        func pass(_ milliseconds: Milliseconds) {
            now = Instant(milliseconds: now.milliseconds + milliseconds)
        }

        /// The timer fires.
        func fire() {
            pass(waits.removeFirst())
            lookup.go(now: now)
        }
    }

    private let stage = Stage()

    private let one = ConsoleTokenRecord(
        tokenID: "ct_1", hash: [1], label: "", role: .admin,
        createdAt: Timestamp(milliseconds: 0), expiresAt: Timestamp(milliseconds: 9_000))

    @Test("who comes while one is looked up waits for a reading that begins later")
    func shares() {
        stage.find(9)
        #expect(stage.readings.count == 1)
        for _ in 0..<50 { stage.find(9) }
        // Its token is made only now: the reading under way does not have it.
        stage.find(1)
        #expect(stage.readings.count == 1 && stage.lookup.count == 51)
        stage.answer(.success([]))
        #expect(stage.found == [.success(false)] && stage.waits == [0])
        stage.fire()
        #expect(stage.readings.count == 1 && stage.lookup.count == 0)
        stage.answer(.success([one]))
        #expect(stage.found.count == 52 && stage.found.last == .success(true))
        #expect(stage.found.dropLast().allSatisfy { $0 == .success(false) })
        #expect(stage.waits.isEmpty)
    }

    @Test("one after the other they cost as many readings as the limit has, and the next waits")
    func paces() {
        for _ in 0..<TokenLookup.limit.burst {
            stage.find(9)
            stage.answer(.success([one]))
        }
        stage.find(1)
        #expect(stage.readings.isEmpty && stage.waits == [100])
        // Whoever comes meanwhile sets no other time.
        stage.pass(50)
        stage.find(9)
        #expect(stage.readings.isEmpty && stage.waits == [100])
        stage.pass(0)
        stage.waits = [50]
        stage.fire()
        stage.answer(.success([one]))
        #expect(stage.found.suffix(2) == [.success(true), .success(false)])
    }

    @Test("a store that fails is told to all who asked, and the next ask anew")
    func fails() {
        stage.find(1)
        stage.find(1)
        stage.answer(.failure(.unavailable("test")))
        stage.fire()
        stage.answer(.failure(.unavailable("test")))
        #expect(
            stage.found == [.failure(.unavailable("test")), .failure(.unavailable("test"))])
        stage.find(1)
        stage.answer(.success([one]))
        #expect(stage.found.last == .success(true))
    }

    @Test("nobody is answered after the end")
    func closes() {
        stage.find(1)
        stage.find(1)
        stage.lookup.close()
        stage.answer(.success([one]))
        stage.find(1)
        #expect(stage.found.count == 1 && stage.readings.isEmpty)
    }
}

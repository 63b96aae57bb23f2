import EventLoop
import Testing

/// An object on a loop of its own that others ring.
@Suite struct RungThreadTests {
    /// Counts its rings; ends when it is asked to, or never. Loop-confined.
    private final class Resident {
        let told: Told
        let loop: Loop

        init(_ loop: Loop, _ told: Told) {
            self.loop = loop
            self.told = told
        }

        /// After so many turns of the loop.
        func turns(_ count: Int, _ then: @escaping () -> Void) {
            guard count > 0 else { return then() }
            loop.nextTurn { self.turns(count - 1, then) }
        }
    }

    private final class Told: @unchecked Sendable {
        // @unchecked: under `lock`.
        private let lock = Lock()
        private var rings = 0
        private var ends = 0
        let rung = Latch()

        func ring() {
            lock.withLock { rings += 1 }
            rung.arrive()
        }

        func end() { lock.withLock { ends += 1 } }
        var counts: [Int] { lock.withLock { [rings, ends] } }
    }

    private func start(
        _ doorbell: Doorbell, _ told: Told, stopSeconds: Int
    ) throws -> RungThread<Resident> {
        try RungThread(
            name: "resident", doorbell: doorbell, stopSeconds: stopSeconds,
            make: { Resident($0, told) }, ring: { $0.told.ring() })
    }

    @Test("a ring comes to the object; before the start and after the end it is nothing")
    func rings() throws {
        let (doorbell, told) = (Doorbell(), Told())
        doorbell.ring()
        let thread = try start(doorbell, told, stopSeconds: 60)
        doorbell.ring()
        #expect(told.rung.wait(seconds: 60))
        thread.stop { resident, done in
            // Whoever is about to end is not rung.
            doorbell.ring()
            // Not at once: stop() waits for it.
            resident.turns(3) {
                resident.told.end()
                done()
            }
        }
        #expect(told.counts == [1, 1])
        doorbell.ring()
        thread.stop { resident, _ in resident.told.end() }
        #expect(told.counts == [1, 1])
    }

    @Test("an object that does not end is not waited for for ever")
    func stuck() throws {
        let told = Told()
        let thread = try start(Doorbell(), told, stopSeconds: 0)
        thread.stop { resident, _ in resident.told.end() }
        #expect(told.counts[0] == 0)
    }

    @Test("what cannot be made is thrown, and no bell is left")
    func failure() {
        struct Broken: Error {}
        let doorbell = Doorbell()
        #expect(throws: Broken.self) {
            try RungThread<Int>(
                name: "broken", doorbell: doorbell, stopSeconds: 1,
                make: { _ in throw Broken() }, ring: { _ in })
        }
        doorbell.ring()
    }
}

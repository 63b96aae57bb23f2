import Model

/// SplitMix64: the same seed gives the same run on every machine.
struct Chance: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// Once in `times`.
    mutating func once(in times: Int) -> Bool { Int.random(in: 0..<times, using: &self) == 0 }

    mutating func upTo(_ most: Milliseconds) -> Milliseconds {
        UInt64.random(in: 0...most, using: &self)
    }

    mutating func one<Element>(of all: [Element]) -> Element? { all.randomElement(using: &self) }
}

/// Virtual time: events run in order of their moment, and of their making where that is the same.
final class Clockwork {
    private struct Event {
        let at: Instant
        let number: UInt64
        let run: () throws -> Void

        func isBefore(_ other: Event) -> Bool {
            (at.milliseconds, number) < (other.at.milliseconds, other.number)
        }
    }

    private(set) var now = Instant(milliseconds: 1_000_000)
    private(set) var steps = 0
    private var heap: [Event] = []
    private var made: UInt64 = 0

    /// The wall clock of everyone.
    var wall: Timestamp { Timestamp(milliseconds: 1_700_000_000_000 + now.milliseconds) }

    func after(_ delay: Milliseconds, _ run: @escaping () throws -> Void) {
        at(now + delay, run)
    }

    func at(_ moment: Instant, _ run: @escaping () throws -> Void) {
        made += 1
        heap.append(Event(at: max(moment, now), number: made, run: run))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Runs the next event that is due before `end`; `false`: none is, and it is `end` now.
    func step(until end: Instant) throws -> Bool {
        guard let first = heap.first, first.at <= end else {
            now = max(now, end)
            return false
        }
        pop()
        now = first.at
        steps += 1
        try first.run()
        return true
    }

    private func pop() {
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].isBefore(heap[least]) {
                least = child
            }
            if least == parent { return }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}

import Model

/// The next deadlines of many connections, for one timer. A connection's newer deadline replaces
/// its older one; replaced ones are dropped when they surface, and when they are more than half.
///
/// Invariant: `heap` is a binary min-heap by (deadline, connection).
struct DeadlineQueue {
    private struct Item: Comparable {
        let deadline: Instant
        let connection: UInt64

        static func < (left: Item, right: Item) -> Bool {
            (left.deadline, left.connection) < (right.deadline, right.connection)
        }
    }

    private var heap: [Item] = []
    private var current: [UInt64: Instant] = [:]

    /// The connection's next deadline; `nil`: none.
    mutating func set(_ deadline: Instant?, for connection: UInt64) {
        guard current[connection] != deadline else { return }
        current[connection] = deadline
        guard let deadline else { return }
        push(Item(deadline: deadline, connection: connection))
        if heap.count > 64 && heap.count > 4 * current.count { rebuild() }
    }

    /// The earliest deadline.
    var next: Instant? {
        mutating get {
            dropStale()
            return heap.first?.deadline
        }
    }

    /// Takes one connection whose deadline has come.
    mutating func popDue(now: Instant) -> UInt64? {
        dropStale()
        guard let first = heap.first, first.deadline <= now else { return nil }
        removeFirst()
        current[first.connection] = nil
        return first.connection
    }

    private mutating func dropStale() {
        while let first = heap.first, current[first.connection] != first.deadline {
            removeFirst()
        }
    }

    private mutating func rebuild() {
        heap = current.map { Item(deadline: $0.value, connection: $0.key) }.sorted()
    }

    private mutating func push(_ item: Item) {
        heap.append(item)
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child] < heap[parent] else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func removeFirst() {
        guard let last = heap.popLast() else { return }
        guard !heap.isEmpty else { return }
        heap[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child] < heap[smallest] {
                smallest = child
            }
            if smallest == parent { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

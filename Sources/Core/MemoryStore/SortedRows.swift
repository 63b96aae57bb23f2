import Model

/// Rows sorted by a key: a B+ tree of values. Copies share what neither has changed since, so
/// that a snapshot or a savepoint is a copy.
struct SortedRows {
    private var root = Node()

    subscript(key: SortKey) -> [ColumnValue]? { root.find(key) }

    /// Inserts the row, or replaces the one under this key.
    mutating func insert(_ row: [ColumnValue], at key: SortKey) {
        guard let right = root.insert(row, at: key) else { return }
        root = Node(keys: [root.keys[0], right.keys[0]], children: [root, right])
    }

    mutating func remove(_ key: SortKey) {
        root.remove(key)
        while root.children.count == 1 { root = root.children[0] }
    }

    /// At most `limit` rows with `lower <= key < upper`, in order or against it.
    func rows(
        from lower: SortKey, to upper: SortKey, descending: Bool, limit: Int
    ) -> [[ColumnValue]] {
        var found: [[ColumnValue]] = []
        guard limit > 0, lower < upper else { return found }
        if descending {
            root.collectDown(from: lower, to: upper, limit: limit, into: &found)
        } else {
            root.collectUp(from: lower, to: upper, limit: limit, into: &found)
        }
        return found
    }
}

/// A leaf (no children; a row for each key) or a branch (a child for each key; the key is not
/// above the child's lowest and above everything in the child before).
///
/// Nodes split when they pass `capacity` and vanish when they are empty; they are not merged:
/// the depth never grows by deleting, and data in memory need not be dense.
private struct Node {
    static let capacity = 32

    var keys: [SortKey] = []
    var rows: [[ColumnValue]] = []
    var children: [Node] = []

    private var isLeaf: Bool { children.isEmpty }

    /// The first position whose key is not below `key`.
    private func position(notBelow key: SortKey) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The child that holds `key` if any does.
    private func child(for key: SortKey) -> Int {
        let position = position(notBelow: key)
        if position < keys.count && keys[position] == key { return position }
        return max(0, position - 1)
    }

    func find(_ key: SortKey) -> [ColumnValue]? {
        if !isLeaf { return children[child(for: key)].find(key) }
        let position = position(notBelow: key)
        return position < keys.count && keys[position] == key ? rows[position] : nil
    }

    /// The right half, if the node had to be split.
    mutating func insert(_ row: [ColumnValue], at key: SortKey) -> Node? {
        if isLeaf {
            let position = position(notBelow: key)
            if position < keys.count && keys[position] == key {
                rows[position] = row
                return nil
            }
            keys.insert(key, at: position)
            rows.insert(row, at: position)
        } else {
            let position = child(for: key)
            if key < keys[position] { keys[position] = key }
            guard let right = children[position].insert(row, at: key) else { return nil }
            keys.insert(right.keys[0], at: position + 1)
            children.insert(right, at: position + 1)
        }
        return keys.count > Node.capacity ? split() : nil
    }

    private mutating func split() -> Node {
        let middle = keys.count / 2
        var right = Node()
        right.keys = Array(keys[middle...])
        keys.removeSubrange(middle...)
        if isLeaf {
            right.rows = Array(rows[middle...])
            rows.removeSubrange(middle...)
        } else {
            right.children = Array(children[middle...])
            children.removeSubrange(middle...)
        }
        return right
    }

    mutating func remove(_ key: SortKey) {
        if isLeaf {
            let position = position(notBelow: key)
            guard position < keys.count && keys[position] == key else { return }
            keys.remove(at: position)
            rows.remove(at: position)
        } else {
            let position = child(for: key)
            children[position].remove(key)
            guard children[position].keys.isEmpty else { return }
            children.remove(at: position)
            keys.remove(at: position)
        }
    }

    func collectUp(
        from lower: SortKey, to upper: SortKey, limit: Int, into found: inout [[ColumnValue]]
    ) {
        var position = isLeaf ? position(notBelow: lower) : child(for: lower)
        while position < keys.count, keys[position] < upper, found.count < limit {
            if isLeaf {
                found.append(rows[position])
            } else {
                children[position].collectUp(from: lower, to: upper, limit: limit, into: &found)
            }
            position += 1
        }
    }

    func collectDown(
        from lower: SortKey, to upper: SortKey, limit: Int, into found: inout [[ColumnValue]]
    ) {
        let first = isLeaf ? position(notBelow: lower) : child(for: lower)
        var position = position(notBelow: upper)
        while position > first, found.count < limit {
            position -= 1
            if isLeaf {
                found.append(rows[position])
            } else {
                children[position].collectDown(from: lower, to: upper, limit: limit, into: &found)
            }
        }
    }
}

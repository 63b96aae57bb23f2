/// What connections hold of something there is not enough of (places, bytes), by owner: the
/// network or the user they belong to. It tells who gives way when it runs out.
///
/// Every call costs constant time on average: an attack is made of them.
struct Holdings<Owner: Hashable> {
    private struct Holding {
        let owner: Owner
        let ticket: UInt64
        var amount: Int
    }

    /// Connections in the order in which they began to hold, with gaps: an entry whose ticket is
    /// not that of the connection's holding stands for one that was released.
    private struct Line {
        var entries: [(connection: UInt64, ticket: UInt64)] = []
        var first = 0
        /// Without the gaps.
        var count = 0
        var amount = 0
    }

    private var holdings: [UInt64: Holding] = [:]
    private var lines: [Owner: Line] = [:]
    private var all = Line()
    /// Owners by how many of their connections hold something.
    private var byCount: [Int: Set<Owner>] = [:]
    private var most = 0
    private var lastTicket: UInt64 = 0

    /// Connections that hold something.
    var count: Int { holdings.count }
    /// What all hold together.
    var amount: Int { all.amount }

    func count(of owner: Owner) -> Int { lines[owner]?.count ?? 0 }
    func amount(of owner: Owner) -> Int { lines[owner]?.amount ?? 0 }

    /// The connection holds so much from here on. If it held something it keeps its age and owner.
    mutating func hold(_ amount: Int = 1, connection: UInt64, of owner: Owner) {
        if let held = holdings[connection] {
            holdings[connection]?.amount = amount
            lines[held.owner]?.amount += amount - held.amount
            all.amount += amount - held.amount
            return
        }
        lastTicket += 1
        holdings[connection] = Holding(owner: owner, ticket: lastTicket, amount: amount)
        var line = lines.removeValue(forKey: owner) ?? Line()
        move(owner, from: line.count, to: line.count + 1)
        add((connection, lastTicket), amount, to: &line)
        lines[owner] = line
        add((connection, lastTicket), amount, to: &all)
    }

    /// The connection holds nothing any more.
    mutating func release(_ connection: UInt64) {
        guard let held = holdings.removeValue(forKey: connection),
            var line = lines.removeValue(forKey: held.owner)
        else { return }
        move(held.owner, from: line.count, to: line.count - 1)
        line.count -= 1
        line.amount -= held.amount
        if line.count > 0 {
            compact(&line)
            lines[held.owner] = line
        }
        all.count -= 1
        all.amount -= held.amount
        compact(&all)
    }

    func holds(_ connection: UInt64) -> Bool { holdings[connection] != nil }

    /// Who has held for longest.
    mutating func oldest() -> UInt64? { first(of: &all) }

    /// Who of this owner has held for longest.
    mutating func oldest(of owner: Owner) -> UInt64? {
        guard var line = lines.removeValue(forKey: owner) else { return nil }
        defer { lines[owner] = line }
        return first(of: &line)
    }

    /// Who has held for longest, of an owner with the most connections.
    mutating func oldestOfMost() -> UInt64? {
        // Where nobody has more than one, age alone decides.
        guard most > 1, let owner = byCount[most]?.first else { return oldest() }
        return oldest(of: owner)
    }

    private func add(
        _ entry: (connection: UInt64, ticket: UInt64), _ amount: Int, to line: inout Line
    ) {
        line.entries.append(entry)
        line.count += 1
        line.amount += amount
    }

    private func isHeld(_ entry: (connection: UInt64, ticket: UInt64)) -> Bool {
        holdings[entry.connection]?.ticket == entry.ticket
    }

    private func first(of line: inout Line) -> UInt64? {
        while line.first < line.entries.count {
            let entry = line.entries[line.first]
            if isHeld(entry) { return entry.connection }
            line.first += 1
        }
        return nil
    }

    /// Drops the gaps when there are more of them than of the others.
    private func compact(_ line: inout Line) {
        guard line.entries.count > 16 + 2 * line.count else { return }
        line.entries = line.entries[line.first...].filter { isHeld($0) }
        line.first = 0
    }

    private mutating func move(_ owner: Owner, from old: Int, to new: Int) {
        if old > 0 {
            byCount[old]?.remove(owner)
            if byCount[old]?.isEmpty == true { byCount[old] = nil }
        }
        if new > 0 { byCount[new, default: []].insert(owner) }
        most = max(most, new)
        while most > 0, byCount[most] == nil { most -= 1 }
    }
}

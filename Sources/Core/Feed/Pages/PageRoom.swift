import Model
import Wire

/// What a page may still take.
struct PageRoom {
    var bytes: Int
    var elements: Int

    init(bytes: Int) {
        self.bytes = bytes
        elements = Page.elementsMax
    }

    mutating func take(_ sized: SizedEntry) {
        bytes -= sized.bytes
        elements -= sized.entry.elements
    }

    func fits(_ sized: SizedEntry) -> Bool {
        sized.bytes <= bytes && sized.entry.elements <= elements
    }
}

/// How much one answer may pass over that is not for the user, before it ends and says that there
/// is more: nobody's data hold up everybody's reads.
struct ReadBudget {
    private var left: Int

    init(_ limits: RuleLimits) { left = limits.skippedRows }

    var isSpent: Bool { left <= 0 }

    mutating func passOver() { left -= 1 }
}

/// The users whom the one who asks blocks, or has blocked: what they sent meanwhile is not in the
/// feed. Read when first asked for.
final class BlockList {
    private var known: (app: AppID, user: UserID, names: BlockedNames)?

    func names(
        _ app: AppID, _ user: UserID, in snapshot: any StoreSnapshot
    ) throws(StoreError) -> BlockedNames {
        if let known, known.app == app, known.user == user { return known.names }
        let rows = try snapshot.records(
            BlockRecord.self, Scan(prefix: [.app(app), .user(user)], limit: RuleLimits().blocks))
        let names = BlockedNames(
            now: Set(rows.filter(\.isBlocked).map(\.other)), ever: Set(rows.map(\.other)))
        known = (app, user, names)
        return names
    }
}

struct BlockedNames {
    /// Those who are blocked.
    let now: Set<UserID>
    /// These, and those whose block has ended.
    let ever: Set<UserID>
}

import Feed
import MemoryStore
import Model
import Wake
import Wire

// What must hold after every step, whatever was asked for and in whatever order. All of it is
// looked at for everybody: what cannot have become another since is not read again.
extension PairWorld {
    /// - Parameter plan: what was just asked for; `nil`: anything may have happened.
    func finding(after plan: Plan? = nil) throws -> String? {
        if let row = world.unreadable.first { return "set aside: \(row.detail)" }
        let before = moving
        moving = try oldestJobs()
        var pages: [Int: Page] = [:]
        users = try Self.names.indices.map { try userRow($0) }
        for who in Self.names.indices {
            pages[who] = try catchUp(who)
            if let finding = unjoined(who) { return finding }
        }
        // An entry that could be read can be, as long as what it shows is there.
        if store.hasLostRows() || plan == nil {
            for who in Self.names.indices where isLive(who) {
                _ = try wholeFeed(of: who)
                if let finding = unjoined(who) { return finding }
            }
        }
        if let finding = try miscounted(pages) { return finding }
        var rooms = Set(before.keys).subtracting(moving.keys)
        for (thing, _) in plan?.touches ?? [] {
            if case .conversation(let id) = thing { rooms.insert(id) }
        }
        if let finding = try untold(in: plan == nil ? Set(conversations) : rooms) {
            return finding
        }
        return try readsThoughSuspended(after: plan)
    }

    /// There is such a user, who is not being deleted: of one who is nothing is told any more
    /// (MSG-53).
    func isLive(_ who: Int) -> Bool { users[who].map { $0.deletingSince == nil } ?? false }

    // MARK: each entry of each feed joins

    private func unjoined(_ who: Int) -> String? {
        world.unreadable.first.map { "\(Self.names[who]): \($0.detail) does not join" }
    }

    /// - Returns: the last page that the user's follower read; `nil`: there was nothing new.
    private func catchUp(_ who: Int) throws -> Page? {
        let name = Self.names[who]
        guard let row = users[who], row.deletingSince == nil else {
            followers[who] = Follower(of: name)
            return nil
        }
        let cursor = followers[who].replica.cursor
        if followers[who].epochHalf != row.epochHalf || cursor > row.head {
            followers[who] = Follower(of: name, epochHalf: row.epochHalf)
        }
        var last: Page?
        while followers[who].replica.cursor < row.head {
            let page = try world.page(name, after: followers[who].replica.cursor)
            guard world.unreadable.isEmpty else { return page }
            if let known = followers[who].replica.epoch, known != page.epoch {
                // A restored server has another history.
                followers[who] = Follower(of: name, epochHalf: row.epochHalf)
                continue
            }
            followers[who].apply(page)
            last = page
        }
        return last
    }

    /// A device that takes the feed from its start, in pages of any size.
    func wholeFeed(of who: Int, bytes: Int = 1 << 20) throws -> Replica {
        var replica = Replica(of: Self.names[who])
        while true {
            let page = try world.page(Self.names[who], after: replica.cursor, bytes: bytes)
            if !world.unreadable.isEmpty { return replica }
            replica.apply(page)
            if !page.more { return replica }
        }
    }

    // MARK: unread recomputed

    /// SYN-27: each number is the one that a device counts which followed the feed. Of
    /// conversations with a change on its way nothing is expected.
    private func miscounted(_ pages: [Int: Page]) throws -> String? {
        var counts: [[ConversationID: UInt64]] = Self.names.map { _ in [:] }
        for row in try world.unread() {
            if let who = who(row.user) { counts[who][row.conversation] = row.unread }
        }
        for who in Self.names.indices where counts[who] != followers[who].counts {
            guard isLive(who) else { continue }
            let expected = followers[who].counts
            for id in Set(expected.keys).union(counts[who].keys) where moving[id] == nil {
                let (count, told) = (counts[who][id] ?? 0, expected[id] ?? 0)
                if count != told {
                    return "\(Self.names[who]) in \(id.low): unread \(count), not \(told)"
                }
            }
        }
        for (who, page) in pages {
            let reading = try world.read(.backend(World.app, .user(user(who))))
            guard case .backend(.user(let view)) = reading else { continue }
            if view.unread != page.unread {
                return "\(Self.names[who]): DELTA says \(page.unread), the API \(view.unread)"
            }
            let icon = followers[who].oracle.icon(now: world.now)
            if moving.isEmpty, page.unread != icon {
                return "\(Self.names[who]): the icon shows \(page.unread), not \(icon)"
            }
        }
        return nil
    }

    // MARK: each member removed is told

    /// By conversation with changes on their way the revision of the oldest.
    private func oldestJobs() throws -> [ConversationID: UInt64] {
        let jobs = try world.all(FanOutRecord.self)
        movingKinds = Set(jobs.map(\.change))
        return Dictionary(
            jobs.map { ($0.conversation, $0.revision) }, uniquingKeysWith: min)
    }

    private func untold(in rooms: Set<ConversationID>) throws -> String? {
        for id in rooms {
            for member in members(id) {
                guard let who = who(member.user) else { continue }
                if let finding = untold(member, to: followers[who].replica, who) {
                    return finding
                }
            }
        }
        return nil
    }

    /// MSG-30, MSG-37: who was removed, and who took part at the end, is told so.
    func untold(_ member: ParticipantRecord, to replica: Replica, _ who: Int) -> String? {
        let id = member.conversation
        guard replica.holds(id) else { return nil }
        if let left = member.leftRevision {
            if let waiting = moving[id], waiting <= left { return nil }
            if replica.own(id)?.removed != true {
                return "\(Self.names[who]) was not told of the removal from \(id.low)"
            }
        } else if moving[id] == nil, conversation(id)?.deletedAt != nil {
            return "\(Self.names[who]) was not told that \(id.low) ended"
        }
        return nil
    }

    // MARK: who is suspended reads nothing

    private func readsThoughSuspended(after plan: Plan?) throws -> String? {
        let isOfApp = plan?.touches.contains { $0.thing == .app(World.app) } ?? true
        if isOfApp {
            isAppSuspended =
                try world.record(AppRecord.self, [.app(World.app)])?.isSuspended == true
        }
        for who in Self.names.indices {
            guard isAppSuspended || users[who]?.isSuspended == true else { continue }
            if let finding = try readsThoughSuspended(who) { return finding }
        }
        return nil
    }

    /// SES-24: pages and peeks give nothing to a session that is still open, and no new one
    /// opens.
    private func readsThoughSuspended(_ who: Int) throws -> String? {
        let name = Self.names[who]
        for (device, session) in sessions where session.user == user(who) {
            for isPeek in [false, true] {
                let query = PageQuery(
                    app: World.app, user: user(who), device: device, after: 0, bytes: 1 << 20,
                    newestFirst: isPeek, session: session)
                guard case .page(let page) = try world.read(.page(query)) else { continue }
                if !page.entries.isEmpty || page.standing == .current || page.unread > 0 {
                    return "\(name) is suspended and reads \(page.entries.count) entries"
                }
            }
            guard case .standings(let found) = try world.read(.standings([session])) else {
                continue
            }
            if found[session] == nil { return "\(name) is suspended, and stands as current" }
        }
        guard let device = devices(of: who).first else { return nil }
        let answer = try world.ask(open(device, who))
        let isBeingDeleted = answer.refusal == .unavailable
        return answer.refusal == .suspended || isBeingDeleted
            ? nil : "\(name) is suspended and gets in: \(answer)"
    }
}

import Feed
import MemoryStore
import Model
import Wire

// Devices that come late, and what a damaged store does to them.
extension PairWorld {
    /// Devices that come late, by the feed and by a snapshot, and those that have followed all
    /// the time hold the same.
    func lateFinding() throws -> String? {
        for who in Self.names.indices {
            // Nobody has logged in yet: there is no device that could hold anything.
            guard isLive(who), users[who]?.epochHalf != 0 else { continue }
            if let finding = try lateFinding(who) { return "\(Self.names[who]): \(finding)" }
        }
        return nil
    }

    private func lateFinding(_ who: Int) throws -> String? {
        let late = try wholeFeed(of: who, bytes: pick([500, 2_000, 1 << 20]) ?? 500)
        var own: Set<ConversationID> = []
        for member in memberships(of: who) {
            if let finding = untold(member, to: late, who) { return "late: \(finding)" }
            let isOver = conversation(member.conversation)?.deletedAt != nil
            if member.leftRevision == nil, !member.isGone, !isOver {
                own.insert(member.conversation)
            }
        }
        let expected = late.shown(in: own, now: world.now)
        func difference(_ name: String, _ replica: Replica) -> String? {
            self.difference(expected, replica.shown(in: own, now: world.now))
                .map { "\(name): \($0)" }
        }
        let snapshot = try snapshot(of: who)
        for (id, unread) in snapshot.unread where unread != followers[who].counts[id] ?? 0 {
            return "the snapshot says \(unread) unread in \(id.low)"
        }
        if let finding = difference("by snapshot", snapshot.replica) { return finding }
        if let finding = difference("by following", followers[who].replica) { return finding }
        let blocked = try blocked(by: who)
        for device in devices(of: who) {
            guard var replica = replicas[device] else { continue }
            try follow(&replica, who)
            replicas[device] = replica
            // A snapshot shows what is on its way (HIS-4). If its sender is blocked before it has
            // come, it never comes: DIGEST finds what the device holds more (HIS-34).
            let held = replica.shown(in: own, now: world.now).filter { key, entry in
                guard expected[key] == nil, case .message(let state) = entry.body else {
                    return true
                }
                return !blocked.contains(UserID(state.sender))
            }
            if let finding = self.difference(expected, held) {
                return "\(device.high) \(device.low): \(finding)"
            }
        }
        return nil
    }

    /// Whom the user blocks, or has blocked.
    private func blocked(by who: Int) throws -> Set<UserID> {
        Set(try world.all(BlockRecord.self).filter { $0.user == user(who) }.map(\.other))
    }

    private func difference(
        _ feed: [ReplicaKey: Entry], _ other: [ReplicaKey: Entry]
    ) -> String? {
        for key in Set(feed.keys).union(other.keys) where feed[key] != other[key] {
            // MSG-53: a block of a user who was erased goes untold.
            if key.kind == .block, feed[key] == nil { continue }
            // HIS-17: of many announcements a snapshot has the newest.
            let hasNewer = other.keys.contains { $0.kind == .announcement }
            if key.kind == .announcement, other[key] == nil, hasNewer { continue }
            return "\(key.kind) of \(key.conversation.low): the feed has \(word(feed[key])), "
                + "it has \(word(other[key]))"
        }
        return nil
    }

    private func word(_ entry: Entry?) -> String {
        entry.map { "version \($0.version) \($0.text)" } ?? "nothing"
    }

    private func memberships(of who: Int) -> [ParticipantRecord] {
        var found: [ParticipantRecord] = []
        try? world.store.read { snapshot throws(StoreError) in
            found = try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_user", prefix: [.app(World.app), .user(self.user(who))],
                    limit: 1000))
        }
        return found
    }

    /// The device is new, or begins anew, and goes on by deltas from here.
    func takeSnapshot(on device: DeviceID) throws {
        guard let who = owner[device], isLive(who), users[who]?.epochHalf != 0 else { return }
        replicas[device] = try snapshot(of: who).replica
    }

    /// What a device holds that took a snapshot, and the numbers that this named.
    private func snapshot(
        of who: Int
    ) throws -> (replica: Replica, unread: [ConversationID: UInt64]) {
        var replica = Replica(of: Self.names[who])
        var unread: [ConversationID: UInt64] = [:]
        var frame = SnapshotFrame()
        repeat {
            let reading = try world.history(
                .snapshot(World.app, user(who), frame, bytes: 1 << 14))
            guard case .snapshotPage(let page) = reading else { throw Unexpected(answer: .done) }
            replica.apply(page)
            for told in page.conversations {
                if let id = told.conversation { unread[id] = UInt64(told.unread) }
            }
            frame.continuation = page.continuation
        } while !frame.continuation.isEmpty
        try follow(&replica, who)
        return (replica, unread)
    }

    /// Goes on by deltas; begins anew where the cursor is too old or of another epoch.
    func follow(_ replica: inout Replica, _ who: Int, pages: Int = .max) throws {
        let name = Self.names[who]
        guard let row = try userRow(who), row.deletingSince == nil, row.epochHalf != 0 else {
            replica = Replica(of: name)
            return
        }
        let epoch = try world.page(name, after: row.head).epoch
        let isKnown = replica.epoch == epoch && replica.cursor >= row.compactedThrough
        if !isKnown, replica.epoch != nil || replica.user != ExactText(name) {
            replica = Replica(of: name)
        }
        for _ in 0..<min(pages, 10_000) where replica.cursor < row.head {
            let bytes = pick([200, 400, 4_000]) ?? 400
            replica.apply(try world.page(name, after: replica.cursor, bytes: bytes))
        }
    }

    // MARK: what is damaged

    /// The store has lost what an entry is about, by whatever fault: everything behind it comes
    /// all the same, and the row is told.
    func damageFinding() throws -> String? {
        for who in Self.names.indices where isLive(who) {
            let name = Self.names[who]
            guard let head = try userRow(who)?.head,
                let metadata = try world.rows(name).first(where: { $0.kind == .metadata })
            else { continue }
            try world.tamper { transaction throws(StoreError) in
                try transaction.delete(
                    MetadataRecord.self,
                    [.app(World.app), .identifier(metadata.conversation)])
            }
            do {
                let page = try world.page(name)
                if world.unreadable.isEmpty { return "\(name): what is lost goes untold" }
                return page.to == head ? nil : "\(name): the page ends at what is lost"
            } catch let error as StoreError {
                return "\(name): the feed ends at what is lost: \(error)"
            }
        }
        return nil
    }
}

import Model
import Wake
import Wire

@testable import Feed

// What must hold when it has been calm for a while.
extension Simulation {
    /// P4 and P5: nothing that is owed waits for ever, and who is unreachable was alerted of the
    /// newest he has not seen.
    func checkWakes() throws {
        let now = clock.wall
        for row in try rows(WakeRecord.self) {
            if let due = row.due, due + 60_000 < now {
                throw Violation("P5: a push to \(row.user) is due since \(now.since(due)) ms")
            }
            if row.flight != nil, let lease = row.lease, lease + 60_000 < now {
                throw Violation("P5: a push to \(row.user) is in flight for ever")
            }
        }
        if try !rows(FanOutRecord.self).isEmpty { throw Violation("P5: a fan-out job is stuck") }
        let users = try rows(UserRecord.self)
        for device in try rows(DeviceRecord.self) where device.pushToken != nil {
            guard let user = users.first(where: { $0.user == device.user }),
                let phone = devices.first(where: { $0.id == device.device }),
                phone.app == .forceQuit, user.visibleHead > device.applied
            else { continue }
            guard let newest = try newestUnseen(device) else { continue }
            reached.count("a silent phone judged")
            let alert = try rows(AlertRecord.self).first {
                $0.user == device.user && $0.device == device.device && $0.message == newest
            }
            guard alert?.sentAt != nil else {
                let wake = try rows(WakeRecord.self).first { $0.device == device.device }
                throw Violation(
                    "P4: \(device.user) was not alerted of \(newest): \(alert as Any); "
                        + "unreachable \(device.isUnreachable), \(wake as Any)")
            }
        }
    }

    private func newestUnseen(_ device: DeviceRecord) throws -> MessageID? {
        let truth = try UnreadTruth(self)
        let user = device.user.name
        let muted = Set(
            try rows(SettingsRecord.self).filter { $0.user == device.user && $0.isMuted }
                .map(\.conversation))
        // A woken app takes the newest first, and may have come no further.
        let stored = try device.stored()
        return truth.unread(of: user).filter {
            !muted.contains($0.conversation) && !stored.contains(truth.seq(of: $0, user))
        }.max { truth.seq(of: $0, user) < truth.seq(of: $1, user) }?.message
    }

    /// P1 and P3: everything acknowledged is stored, and every device holds what its user sees.
    func checkConvergence() throws {
        let messages = try rows(MessageRecord.self)
        let stored = Set(messages.map(\.message))
        let conversations = try rows(ConversationRecord.self)
        // The content of a conversation deleted for everyone goes.
        let deleted = Set(conversations.filter { $0.deletedAt != nil }.map(\.conversation))
        for id in acknowledged.sorted() where !stored.contains(id) {
            if let place = sentTo[id], deleted.contains(place) { continue }
            throw Violation("P1: \(id) was acknowledged and is not stored")
        }
        let memberships = try rows(ParticipantRecord.self)
        let hidden = Set(
            try rows(HiddenRecord.self).map { "\($0.user.name) \($0.message)" })
        for device in devices {
            guard device.isInSync else {
                throw Violation(
                    "\(device.user) \(device.id) is not in sync after the calm: \(device.state)")
            }
            let held = try device.held()
            for membership in memberships
            where membership.user.name == device.user && membership.leftRevision == nil {
                let id = membership.conversation
                if deleted.contains(id) { continue }
                let user = device.user
                // What lies below a snapshot is missing, or may be outdated, until it is fetched
                // (HIS-19).
                let wholeFrom = try device.wholeFrom(id)
                let wanted = messages.filter {
                    $0.conversation == id && $0.position > membership.joinedPosition
                        && $0.position >= wholeFrom
                        && $0.position > membership.clearedPosition
                        && !hidden.contains("\(user) \($0.message)")
                        && !blocks.contains("\(user) \($0.sender)")
                        // Its tombstone goes after a while; what it removed must be gone.
                        && $0.deletedAt == nil
                }.sorted { $0.position < $1.position }.map(Self.word)
                let has = Set(held[id] ?? [])
                for word in wanted where !has.contains(word) {
                    throw Violation(
                        "P1: \(device.user) \(device.id) lacks \(word) of \(id); it holds "
                            + "\((held[id] ?? []).suffix(5))")
                }
                for message in messages
                where message.conversation == id && message.position > membership.joinedPosition
                    && message.position >= wholeFrom
                    && !blocks.contains("\(user) \(message.sender)")
                {
                    let isHidden = hidden.contains("\(user) \(message.message)")
                    let isHeld = has.contains { $0.contains(" \(message.message) v") }
                    guard isHeld, isHidden || message.deletedAt != nil else { continue }
                    throw Violation(
                        "\(user) \(device.id) still holds \(message.message), deleted "
                            + (isHidden ? "by him" : "for everyone"))
                }
                reached.count("messages compared", wanted.count)
            }
        }
    }

    /// MSG-30, MSG-37: who was removed, and who took part at the end, is told so by the own feed.
    func checkRemovals() throws {
        let ended = Set(
            try rows(ConversationRecord.self).filter { $0.deletedAt != nil }.map(\.conversation))
        for user in Set(devices.map(\.user)).sorted() {
            let feed = try server.wholeFeed(of: UserID(user))
            for membership in try rows(ParticipantRecord.self) where membership.user.name == user {
                let id = membership.conversation
                let entries = feed.filter { $0.conversation == id }
                let isKnown = entries.contains {
                    if case .conversationState = $0.body { true } else { false }
                }
                let isTold = entries.contains {
                    guard case .participant(let state) = $0.body else { return false }
                    return state.user == user && state.removed
                }
                guard isKnown else { continue }
                if membership.leftRevision != nil {
                    reached.count("a removal told")
                    if !isTold { throw Violation("\(user) was not told of the removal from \(id)") }
                } else if ended.contains(id) {
                    throw Violation("\(user) was not told that \(id) ended")
                }
            }
        }
    }

    /// Every device's digest is that of the server, over more than nothing.
    func checkDigests() throws {
        let deleted = Set(
            try rows(ConversationRecord.self).filter { $0.deletedAt != nil }.map(\.conversation))
        for device in devices {
            guard let digest = device.digest else {
                throw Violation("\(device.user) \(device.id) was not compared")
            }
            // Two who hold nothing prove nothing, unless there is nothing to hold.
            let held = try device.held()
            let isEmpty = try rows(ParticipantRecord.self).allSatisfy {
                $0.user.name != device.user || $0.leftRevision != nil
                    || deleted.contains($0.conversation)
                    // Deleted for oneself, and nothing since.
                    || (held[$0.conversation] ?? []).allSatisfy { $0.hasSuffix(" deleted") }
            }
            guard digest.isEqual, isEmpty || digest.objects > 0 else {
                throw Violation("\(device.user) \(device.id) differs: \(digest)")
            }
        }
    }

    private static func word(_ message: MessageRecord) -> String {
        message.deletedAt == nil
            ? "\(message.position) \(message.message) v\(message.version)"
            : "\(message.position) \(message.message) deleted"
    }
}

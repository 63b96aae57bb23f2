import APNsSimulator
import Feed
import Foundation
import Model
import SQLiteStore
import Wake

@testable import Scenario

/// What must hold at the end, whatever died on the way (README, promises).
extension Story {
    func judge() throws {
        // P2: the same again has the same answer and no second effect.
        for made in published {
            let again = try send(made.text, to: made.conversation, key: made.key)
            guard again.id == made.id, again.position == made.position else {
                throw StoryError("\(made.key) was answered \(made), and then \(again)")
            }
        }
        try publish("last", to: Self.room)
        for device in Self.members {
            try waitHolds(device, "last", in: Self.room)
            try waitServer(device, "online and not behind") {
                $0.reachability == "online" && !$0.feed.isBehind
            }
        }
        try judgeDevices()
        try judgeChanges()
        try judgeLog()
        try judgeEvents()
        server.stop()
        try judgeStore()
    }

    /// P1, P3: everything acknowledged is on each device once and in order.
    private func judgeDevices() throws {
        let expected = published.map(\.text)
        for device in Self.members {
            let held = try messages(device, in: Self.room)
            guard held.map(\.text) == expected,
                held.map(\.position) == published.map(\.position)
            else { throw StoryError("\(device) holds \(held.map(\.text)), not \(expected)") }
            let talked = try messages(device, in: talk).map(\.text)
            let wanted = device == "dora" ? [] : ["from anna 1", "from anna 2"]
            guard talked == wanted else { throw StoryError("\(device) holds \(talked)") }
        }
        let positions = published.map(\.position)
        guard positions == Array(1...UInt64(positions.count)) else {
            throw StoryError("positions with gaps: \(positions)")
        }
    }

    /// No message was new to a device twice, and no device was told to begin anew after its first
    /// login.
    private func judgeLog() throws {
        var request = ControlRequest(.log)
        var next = logStart
        var applied: [String: Int] = [:]
        var resets: [String: Int] = [:]
        while true {
            request.after = next
            request.limit = 1_000
            let answer = try control.call(request)
            for event in answer.events ?? [] {
                guard let device = event.device, device.hasPrefix("\(name)-") else { continue }
                // An edit is a second version, new where the first one was.
                for message in event.messages ?? []
                where message.conversation != Self.changing {
                    applied["\(device) \(message.message)", default: 0] += 1
                }
                if event.kind == .reset { resets[device, default: 0] += 1 }
                if event.kind == .failed {
                    throw StoryError("\(device): \(event.text ?? "") \(event.code ?? 0)")
                }
            }
            guard let following = answer.next, following > next, answer.events?.isEmpty == false
            else { break }
            next = following
        }
        world.sawLog(through: next)
        let doubled = applied.filter { $0.value > 1 && !$0.key.hasPrefix("\(name)-dora") }
        let began = resets.filter { $0.value > 1 && $0.key != "\(name)-dora" }
        guard doubled.isEmpty, began.isEmpty, !applied.isEmpty else {
            throw StoryError("applied twice: \(doubled); began anew: \(began)")
        }
    }

    /// The webhook heard of every message that was published, in order; those that clients sent are
    /// told too.
    private func judgeEvents() throws {
        let path = "/\(name)"
        let expected = published.map(\.id)
        try wait("the webhook was told of \(expected.count) messages") {
            let told = try world.receiver.events(of: path)
                .filter { $0.kind == "message.created" && $0.conversationId == Self.room }
            return told.compactMap(\.messageId) == expected
        }
        let kinds = Set(try world.receiver.events(of: path).map(\.kind))
        let wanted: Set = [
            "message.created", "message.edited", "message.deleted", "message.read",
            "conversation.created", "conversation.deleted", "conversation.participants-changed",
        ]
        guard kinds.isSuperset(of: wanted) else {
            throw StoryError("the webhook was told of \(kinds.sorted()) only")
        }
    }

    /// The file: feeds without gaps, and nothing that waits for ever.
    private func judgeStore() throws {
        let store = try SQLiteStore(path: server.storePath, tables: Schema.tables)
        defer { store.close() }
        var problems: [String] = []
        try store.read { snapshot throws(StoreError) in
            let users = try snapshot.records(UserRecord.self, Scan(limit: .max))
            let entries = try snapshot.records(EntryRecord.self, Scan(limit: .max))
            let messages = try snapshot.records(MessageRecord.self, Scan(limit: .max))
            for user in users {
                let feed = entries.filter { $0.app == user.app && $0.user == user.user }
                problems += Self.problems(of: user, feed, messages)
            }
            problems += try self.leftovers(in: snapshot)
            for device in try snapshot.records(DeviceRecord.self, Scan(limit: .max))
            where device.expiresAt == nil {
                let head = users.first { $0.user == device.user }?.head
                if device.isUnreachable || device.applied != head {
                    problems.append("\(device.user): applied \(device.applied) of \(head ?? 0)")
                }
            }
        }
        guard problems.isEmpty else { throw StoryError(problems.joined(separator: "; ")) }
    }

    /// An entry that was superseded leaves its seq unused; those of messages never are.
    private static func problems(
        of user: UserRecord, _ feed: [EntryRecord], _ messages: [MessageRecord]
    ) -> [String] {
        var problems: [String] = []
        if feed.last?.seq ?? 0 != user.head {
            problems.append("\(user.user): head \(user.head), entry \(feed.last?.seq ?? 0)")
        }
        let rooms = Set(feed.map(\.conversation))
        // What was changed is told in other ways; devices are asked there.
        for room in rooms
        where ![Story.changing, Story.fleeting, Story.doomed].contains(
            room.description)
        {
            let told = feed.filter { $0.kind == .message && $0.conversation == room }
                .map(\.position)
            let there = messages.filter { $0.app == user.app && $0.conversation == room }
                .map(\.position).sorted()
            if told != there {
                problems.append("\(user.user): messages \(told) of \(there) in the feed")
            }
        }
        return problems
    }

    private func leftovers(in snapshot: any StoreSnapshot) throws(StoreError) -> [String] {
        var problems: [String] = []
        for wake in try snapshot.records(WakeRecord.self, Scan(limit: .max))
        where wake.flight != nil || wake.phase != .none || wake.alertsQueued > 0 {
            problems.append("a wake row of \(wake.user) is stuck in \(wake.phase)")
        }
        problems += try campaignLeftovers(in: snapshot)
        let jobs = try snapshot.records(FanOutRecord.self, Scan(limit: .max))
        if !jobs.isEmpty { problems.append("\(jobs.count) fan-out jobs are left") }
        let crowd = try snapshot.records(EntryRecord.self, Scan(limit: .max))
            .filter { $0.user.name.hasPrefix("user") }
        let sizes = Set(Dictionary(grouping: crowd, by: \.user).values.map(\.count))
        if sizes.count > 1 { problems.append("feeds of the crowd differ: \(sizes)") }
        return problems
    }
}

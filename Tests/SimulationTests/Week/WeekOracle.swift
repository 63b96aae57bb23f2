import AppLife
import DeviceModel
import Feed
import Model
import SyncClient
import Synchronization
import Wake

@testable import RouseClient

/// What the owner of one device ought to see, as far as it is certain: pushes that were lost or
/// overtook one another leave some of it open.
struct WeekOracle {
    /// Must stand until it is over.
    fileprivate var must: Set<MessageID> = []
    /// Decided about once.
    fileprivate var decided: Set<MessageID> = []
    /// Alerts that never came.
    fileprivate var lostAlerts: Set<MessageID> = []
    /// A push was lost, or a number came behind a newer one, since the app was last done.
    fileprivate var isDoubtful = false
    /// Pushes on their way.
    fileprivate var flying = 0
    private var newest = Instant(milliseconds: 0)
    private var sentOnce: Set<WakeID> = []
    fileprivate var doubled: Set<MessageID> = []
    var kills = 0

    private static func object(_ request: PushRequest) -> MessageID? {
        request.collapseID.flatMap { MessageID(text: $0) }
    }

    mutating func sent(_ request: PushRequest, hasBadge: Bool, at moment: Instant) {
        flying += 1
        if !sentOnce.insert(request.id).inserted, let object = Self.object(request) {
            doubled.insert(object)
        }
    }

    mutating func lost(_ request: PushRequest, hasBadge: Bool) {
        if let object = Self.object(request) { lostAlerts.insert(object) }
        isDoubtful = true
    }

    /// A push that had reached the phone's own queue, or APNs' slot for it.
    mutating func lostSome(_ object: MessageID?) {
        if let object { lostAlerts.insert(object) }
        isDoubtful = true
    }

    mutating func received(
        _ request: PushRequest, hasBadge: Bool, sentAt: Instant, _ events: [PhoneEvent],
        _ before: [WeekPhone.Shown], isTidySince tidy: Instant?
    ) {
        flying -= 1
        guard hasBadge else { return }
        let isStale = sentAt < newest || tidy.map { sentAt < $0 } ?? false
        newest = max(newest, sentAt)
        if isStale { isDoubtful = true }
        guard isStale, events.contains(.cleared) else { return }
        must.subtract(before.compactMap(\.object))
    }

    mutating func tapped(_ object: MessageID) {
        must.remove(object)
        decided.insert(object)
    }

    /// The app has done all of it: what was doubtful before is so no more.
    fileprivate mutating func tidied() { isDoubtful = false }
}

extension WeekDevice {
    /// What stands on its screen is what its owner ought to see.
    func judge() throws {
        guard isOnline,
            let row = try week.rows(DeviceRecord.self).first(where: { $0.device == id })
        else { return }
        let truth = try UnreadTruth(week)
        let unread = truth.unread(of: week.user)
        let settings = try week.rows(SettingsRecord.self)
        let muted = Set(
            settings.filter { setting in
                setting.user.name == week.user && setting.isMuted
                    && (setting.mutedUntil.map { week.clock.wall < $0 } ?? true)
            }.map(\.conversation))
        let head = try week.head()
        if tidyHead == head, row.applied == head {
            try judgeTidy(unread, muted)
            try judgeLists(truth)
        } else {
            try judgeTold(row, truth, unread, muted)
        }
        try judgeRings()
    }

    private func broken(_ words: String) -> Violation { Violation("\(name): \(words)") }

    // MARK: The app was done with everything

    private func judgeTidy(
        _ unread: [MessageRecord], _ muted: Set<ConversationID>
    ) throws {
        let byID = Dictionary(uniqueKeysWithValues: unread.map { ($0.message, $0) })
        let screen = phone.screen
        var standing: Set<MessageID> = []
        for shown in screen {
            guard let object = shown.object else { continue }
            guard standing.insert(object).inserted else { throw broken("\(object) stands twice") }
            guard let message = byID[object] else {
                throw broken("\(object) stands and is not unread: \(shown)")
            }
            // One that was under way when it was edited says what it said.
            guard shown.text.hasPrefix(message.pushBody) || shown.at >= tidyAt else {
                throw broken("\(object) says \(shown.text), not \(message.pushBody)")
            }
            week.reached.count("a notification judged")
        }
        decide(unread, muted)
        oracle.must.formIntersection(byID.keys)
        for object in oracle.must.sorted() {
            guard let message = byID[object], !muted.contains(message.conversation) else {
                continue
            }
            guard standing.contains(object) else {
                throw broken("\(object) of \(message.sentAt) does not stand; \(screen)")
            }
            week.reached.count("a notification that must stand")
        }
        try judgeIcon()
        week.reached.count("a tidy screen judged, the app \(phone.appState.rawValue)")
    }

    /// What came while its owner did not see the app must stand.
    private func decide(_ unread: [MessageRecord], _ muted: Set<ConversationID>) {
        for message in unread where !oracle.decided.contains(message.message) {
            guard let known = week.published[message.message], known.at < tidyAt else { continue }
            oracle.decided.insert(message.message)
            let hasChanged = week.changed[known.conversation].map { $0 >= known.at } ?? false
            let isSeen = views(since: known.at).contains { $0.sees(known.conversation) }
            // The feed says that it was alerted: the app leaves it to the alert.
            let isLost = oracle.lostAlerts.contains(message.message)
            if !isSeen, !hasChanged, !isLost, !muted.contains(known.conversation) {
                oracle.must.insert(message.message)
            }
        }
    }

    private func judgeIcon() throws {
        if oracle.isDoubtful { return }
        let icon = try week.shown(to: UserID(week.user))
        guard UInt64(phone.icon) == icon else {
            throw broken("the icon shows \(phone.icon), not \(icon)")
        }
        week.reached.count("an icon judged")
    }

    private func judgeLists(_ truth: UnreadTruth) throws {
        guard phone.appState == .foreground, let process else { return }
        let rows = process.told.list.withLock { $0 }
        for member in truth.members
        where member.user.name == week.user && member.leftRevision == nil {
            let unread = truth.unread(of: member).count
            guard let row = rows.first(where: { $0.id == member.conversation }) else {
                throw broken("\(member.conversation) is not listed")
            }
            guard row.unread == unread || row.hasOlderUnread else {
                throw broken("\(row.id) is listed with \(row.unread) unread, not \(unread)")
            }
            week.reached.count("a list judged")
        }
        guard case .conversation(let place) = onScreen,
            let told = process.told.window.withLock({ $0 }), told.0 == place,
            let member = truth.members.first(where: {
                $0.user.name == week.user && $0.conversation == place && $0.leftRevision == nil
            })
        else { return }
        let window = told.1
        let messages = try week.rows(MessageRecord.self).filter {
            $0.conversation == place && $0.deletedAt == nil && $0.position > member.joinedPosition
        }.sorted { $0.position < $1.position }
        let wanted = messages.suffix(window.rows.count { $0.version > 0 }).map {
            "\($0.message) v\($0.version)"
        }
        let has = window.rows.filter { $0.version > 0 }.map { "\($0.id) v\($0.version)" }
        guard has == wanted, window.mayFetchOlder || has.count == messages.count else {
            throw broken("\(place) shows \(has.suffix(5)), not \(wanted.suffix(5))")
        }
        week.reached.count("an open conversation judged")
    }

    // MARK: The app could not look

    private func judgeTold(
        _ row: DeviceRecord, _ truth: UnreadTruth, _ unread: [MessageRecord],
        _ muted: Set<ConversationID>
    ) throws {
        guard oracle.flying == 0, phone.appState != .foreground, row.pushToken == token else {
            return
        }
        let came = unread.filter { message in
            guard let known = week.published[message.message] else { return false }
            return truth.seq(of: message, week.user) > row.applied
                && !muted.contains(message.conversation)
                && !views(since: known.at).contains { $0 != .behind }
                && !(week.changed[known.conversation].map { $0 >= known.at } ?? false)
        }
        let newest = came.max {
            truth.seq(of: $0, week.user) < truth.seq(of: $1, week.user)
        }
        guard let newest, !oracle.lostAlerts.contains(newest.message),
            !oracle.decided.contains(newest.message), !oracle.isDoubtful
        else { return }
        guard phone.screen.contains(where: { $0.object == newest.message }) else {
            throw broken(
                "the app \(phone.appState) could not look, and \(newest.message) does not stand: "
                    + "\(phone.screen)")
        }
        week.reached.count("an alert judged, the app \(phone.appState.rawValue)")
        if row.wasAlerted { try judgeIcon() }
    }

    // MARK: Once

    private func judgeRings() throws {
        guard oracle.kills == 0 else {
            (oracle.kills, oracle.doubled) = (0, [])
            return phone.use { $0.heard = [:] }
        }
        for (object, heard) in phone.use({ $0.heard }) where heard.count > 1 {
            if oracle.doubled.contains(object) { continue }
            let (first, second) = (heard[heard.count - 2], heard[heard.count - 1])
            // It was on its way already.
            if let sentAt = second.sentAt, sentAt <= first.at + 2_000 { continue }
            throw broken("\(object) rang twice: \(heard)")
        }
    }

    /// Its app was just done with everything.
    func oracleIsTidy() { oracle.tidied() }
}

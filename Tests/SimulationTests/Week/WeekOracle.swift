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
    /// Alerts that left for one message.
    private var alerted: Set<MessageID> = []
    /// Told by the alert of another: the feed says that they were alerted, and none of them stands.
    fileprivate var counted: Set<MessageID> = []
    /// A push was lost, or a number came behind a newer one, since the app was last done.
    fileprivate var isDoubtful = false
    /// Pushes on their way.
    fileprivate var flying = 0
    private var newest = Instant(milliseconds: 0)

    private static func object(_ request: PushRequest) -> MessageID? {
        request.collapseID.flatMap { MessageID(text: $0) }
    }

    mutating func sent(_ request: PushRequest, hasBadge: Bool, at moment: Instant) {
        flying += 1
        if let object = Self.object(request) {
            alerted.insert(object)
            counted.remove(object)
        }
    }

    mutating func summed(_ objects: [MessageID]) {
        counted.formUnion(objects.filter { !alerted.contains($0) })
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
        _ before: [WeekPhone.Shown], isTidySince tidy: Instant?, isMuted: (MessageID) -> Bool
    ) {
        flying -= 1
        guard hasBadge else { return }
        let isStale = sentAt < newest || tidy.map { sentAt < $0 } ?? false
        newest = max(newest, sentAt)
        if isStale { isDoubtful = true }
        guard events.contains(.cleared) else { return }
        let gone = before.compactMap(\.object)
        cleared(Set(isStale ? gone : gone.filter(isMuted)))
    }

    mutating func tapped(_ object: MessageID) {
        must.remove(object)
        decided.insert(object)
    }

    /// With the icon's change to 0 the system took all of it off the screen. What is not muted was
    /// counted in that number: if it is unread, it must stand all the same.
    fileprivate mutating func cleared(_ gone: Set<MessageID>) {
        must.subtract(gone)
        decided.formUnion(gone)
    }

    /// The app has done all of it: what was doubtful before is so no more.
    fileprivate mutating func tidied() { isDoubtful = false }
}

extension WeekDevice {
    /// A number that the app sets, or a push brings, was counted so long before at most.
    private static var onItsWay: Milliseconds { 5_000 }

    /// What stands on its screen is what its owner ought to see.
    func judge() throws {
        guard isOnline,
            let row = try week.rows(DeviceRecord.self).first(where: { $0.device == id })
        else { return }
        let truth = try UnreadTruth(week)
        let unread = truth.unread(of: week.user)
        let mutes = try WeekMutes(week)
        let head = try week.head()
        if tidyHead == head, row.applied == head {
            try judgeTidy(unread, mutes)
            try judgeLists(truth)
        } else {
            try judgeTold(row, truth, unread, mutes)
        }
        try judgeRings()
    }

    private func broken(_ words: String) -> Violation { Violation("\(name): \(words)") }

    // MARK: The app was done with everything

    private func judgeTidy(
        _ unread: [MessageRecord], _ mutes: WeekMutes
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
        decide(unread, mutes)
        oracle.must.formIntersection(byID.keys)
        for object in oracle.must.sorted() {
            guard let message = byID[object], !mutes.lasts(in: message.conversation) else {
                continue
            }
            guard standing.contains(object) else {
                throw broken("\(object) of \(message.sentAt) does not stand; \(screen)")
            }
            week.reached.count("a notification that must stand")
        }
        try judgeIcon(mutes)
        week.reached.count("a tidy screen judged, the app \(phone.appState.rawValue)")
    }

    /// What came while its owner did not see the app must stand.
    private func decide(_ unread: [MessageRecord], _ mutes: WeekMutes) {
        for message in unread where !oracle.decided.contains(message.message) {
            guard let known = week.published[message.message], known.at < tidyAt else { continue }
            oracle.decided.insert(message.message)
            let hasChanged = week.changed[known.conversation].map { $0 >= known.at } ?? false
            let isSeen = views(since: known.at).contains { $0.sees(known.conversation) }
            // The feed says that it was alerted: the app leaves it to the alert.
            let isLost =
                oracle.lostAlerts.contains(message.message)
                || oracle.counted.contains(message.message)
            if !isSeen, !hasChanged, !isLost, !cameQuietly(message, mutes) {
                oracle.must.insert(message.message)
            }
        }
    }

    /// A mute with an end ends without an entry: nobody tells the phone before it syncs again, so
    /// that its number may be one that was right while the mute lasted.
    private func judgeIcon(_ mutes: WeekMutes) throws {
        let counted = week.wall(at: phone.use(\.numberAt)) - Self.onItsWay
        if oracle.isDoubtful || mutes.ended(since: counted) { return }
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
        _ mutes: WeekMutes
    ) throws {
        guard oracle.flying == 0, phone.appState != .foreground, row.pushToken == token else {
            return
        }
        let came = unread.filter { message in
            guard let known = week.published[message.message] else { return false }
            return truth.seq(of: message, week.user) > row.applied && known.hasText
                && !cameQuietly(message, mutes)
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
        let hasRisen = week.raised.map { $0 >= phone.use(\.numberAt) } ?? false
        if row.wasAlerted, !hasRisen { try judgeIcon(mutes) }
    }

    // MARK: Once

    private func judgeRings() throws {
        let unnoted = phone.use { $0.unnoted }
        for (object, heard) in phone.use({ $0.heard })
        where heard.count > 1 && !unnoted.contains(object.description) {
            throw broken("\(object) rang twice: \(heard)")
        }
    }

    /// Came while its conversation was muted, by the server's calendar or by the device's: nobody
    /// alerts it, and the app that looks at it then shows nothing of it for ever.
    private func cameQuietly(_ message: MessageRecord, _ mutes: WeekMutes) -> Bool {
        guard let known = week.published[message.message] else { return false }
        let slow = UInt64(-slowest)
        return mutes.lasts(in: known.conversation, at: week.wall(at: known.at) - slow)
    }

    func oracleSawCleared(_ objects: Set<MessageID>) throws {
        let mutes = try WeekMutes(week)
        oracle.cleared(objects.filter { week.isMuted($0, mutes) })
    }

    /// Its app was just done with everything.
    func oracleIsTidy() { oracle.tidied() }
}

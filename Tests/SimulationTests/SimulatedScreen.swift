import Feed
import Foundation
import Model
import SyncClient
import Wake
import Wire

/// What a phone shows of the app outside the app: notifications and the icon's number.
struct SimulatedScreen {
    struct Notification: Equatable {
        let message: MessageID
        let conversation: ConversationID?
    }

    /// By identifier: a later notification with the same takes its place.
    private(set) var notifications: [String: Notification] = [:]
    private(set) var icon: UInt64 = 0
    /// A push that names the number was lost, or overtaken by a newer one, and none has come since.
    private(set) var isIconDoubtful = false

    /// Going to 0 takes all notifications away (PSH-6).
    mutating func setIcon(_ number: UInt64) {
        isIconDoubtful = false
        guard number != icon else { return }
        icon = number
        if number == 0 { notifications = [:] }
    }

    mutating func show(_ identifier: String, _ notification: Notification) {
        notifications[identifier] = notification
    }

    mutating func doubtIcon() { isIconDoubtful = true }

    mutating func remove(_ identifier: String) { notifications[identifier] = nil }

    /// What the system shows of a push by itself; an app in front shows no notification.
    mutating func receive(_ request: PushRequest, isInFront: Bool) throws {
        let payload =
            try JSONSerialization.jsonObject(with: Data(request.payload)) as? [String: Any]
        let aps = payload?["aps"] as? [String: Any]
        if let badge = aps?["badge"] as? Int { setIcon(UInt64(badge)) }
        guard !isInFront, aps?["alert"] != nil, let collapse = request.collapseID,
            let rouse = payload?["rouse"] as? [String: Any],
            let message = (rouse["o"] as? String).flatMap({ MessageID(text: $0) })
        else { return }
        let conversation = (rouse["c"] as? String).flatMap { ConversationID(text: $0) }
        show(collapse, Notification(message: message, conversation: conversation))
    }
}

// What every person sees, when it has been calm for a while.
extension Simulation {
    /// Nothing on a screen is read or deleted, nothing stands there twice, and the icon is the
    /// number of unread messages, on each phone that has synced.
    func checkScreens() throws {
        let truth = try UnreadTruth(self)
        for device in devices where device.isInSync {
            let unread = truth.unread(of: device.user)
            var seen: Set<MessageID> = []
            for (identifier, shown) in device.screen.notifications {
                guard seen.insert(shown.message).inserted else {
                    throw Violation("\(device.name) shows \(shown.message) twice")
                }
                guard unread.contains(where: { $0.message == shown.message }) else {
                    throw Violation(
                        "\(device.name) shows \(identifier), of which nothing is unread: "
                            + "\(shown)")
                }
                reached.count("a notification judged")
            }
            let icon = try shown(to: UserID(device.user))
            guard device.screen.icon == icon else {
                throw Violation(
                    "the icon of \(device.name) shows \(device.screen.icon), not \(icon)")
            }
            if icon > 0 { reached.count("an icon judged") }
        }
    }

    /// Each person whose phone sleeps sees the newest message that came since.
    func checkTold() throws {
        let truth = try UnreadTruth(self)
        let muted = Set(
            try rows(SettingsRecord.self).filter(\.isMuted).map { "\($0.user) \($0.conversation)" })
        let known = try rows(DeviceRecord.self).filter { $0.pushToken != nil }
        let heads = Dictionary(
            uniqueKeysWithValues: try rows(UserRecord.self).map { ($0.user.name, $0.head) })
        for device in devices where device.app == .suspended || device.app == .forceQuit {
            guard let row = known.first(where: { $0.device == device.id }) else { continue }
            // The app has set the number if it has everything; else the server has, if it sent
            // alerts.
            let head = heads[device.user]
            if row.applied == head || row.wasAlerted { try checkIcon(device) }
            let since = device.leftFrontAt
            let came = truth.unread(of: device.user).map { ($0, truth.seq(of: $0, device.user)) }
                .filter { message, _ in
                    message.sentAt >= since
                        && !muted.contains("\(device.user) \(message.conversation)")
                }
            guard !device.wasResetBehindTheFront, let newest = came.max(by: { $0.1 < $1.1 })?.0,
                !apns.lost.contains("\(device.id) \(newest.message)")
            else { continue }
            reached.count("the screen of a phone \(device.app)")
            let shown = device.screen.notifications.values.contains {
                $0.message == newest.message
            }
            guard shown else {
                throw Violation(
                    "\(device.name), \(device.app), does not show \(newest.message) of "
                        + "\(newest.sentAt); its screen: \(device.screen)")
            }
        }
    }

    private func checkIcon(_ device: SimulatedDevice) throws {
        guard !device.screen.isIconDoubtful else { return }
        let icon = try shown(to: UserID(device.user))
        guard device.screen.icon == icon else {
            throw Violation(
                "the icon of \(device.name), \(device.app), shows \(device.screen.icon), "
                    + "not \(icon)"
            )
        }
        reached.count("the icon of a phone \(device.app)")
    }
}

import APNsSimulator
import Model
import Wake

/// What stands on one phone at the end of a replay.
struct PhoneScreen: Equatable, Sendable {
    var notifications: [ScreenNotification]
    var icon: UInt64
}

/// The phones' screens, judged by what each device was given and what its user has read: a
/// notification is of something unread, nothing stands there twice, and the icon says how many are
/// unread (SYN-27: 999 for more).
struct ScreenTally: Sendable {
    private(set) var judged = 0
    /// Devices with a notification of nothing that they hold unread, or with one twice.
    private(set) var wrong: [Int] = []
    /// Notifications that should be gone.
    private(set) var stale = 0
    private(set) var wrongIcons: [Int] = []
    /// What is wrong with the first of them, in words.
    private(set) var details: [String] = []

    private static let detailsMax = 5

    mutating func judge(_ screen: PhoneScreen, of device: Int, holding unread: Set<MessageID>) {
        judged += 1
        var seen: Set<String> = []
        var doubled = 0
        var stale: [String] = []
        for shown in screen.notifications {
            // A badge push that shows a message again has that message's identifier (PSH-6).
            let object = shown.object ?? shown.identifier
            if !seen.insert(object).inserted { doubled += 1 }
            let isUnread = MessageID(text: object).map { unread.contains($0) } ?? false
            if !isUnread { stale.append(object) }
        }
        let isIconRight = screen.icon == min(UInt64(unread.count), UnreadCount.most)
        self.stale += stale.count
        if doubled > 0 || !stale.isEmpty { wrong.append(device) }
        if !isIconRight { wrongIcons.append(device) }
        guard doubled > 0 || !stale.isEmpty || !isIconRight, details.count < Self.detailsMax else {
            return
        }
        details.append(
            "device \(device): icon \(screen.icon) of \(unread.count) unread, \(doubled) "
                + "notifications twice, stale: \(stale)")
    }
}

extension Replay {
    /// Asks for every screen; `then` follows the last answer. Devices of this process have none.
    func lookAtScreens(then: @escaping (ScreenTally) -> Void) {
        var tally = ScreenTally()
        guard let fleet = fleet as? SimulatorFleet else { return then(tally) }
        let ledger = judged ?? ledger
        var left = ledger.devices.count
        if left == 0 { return then(tally) }
        for device in ledger.devices.indices {
            fleet.screen(device) { [unowned self] screen in
                if let screen {
                    tally.judge(screen, of: device, holding: self.unread(on: device, ledger))
                }
                left -= 1
                if left == 0 { then(tally) }
            }
        }
    }

    /// Messages of others that its user has not read.
    private func unread(on device: Int, _ ledger: ReplayLedger) -> Set<MessageID> {
        let phone = ledger.user(of: device)
        return ledger.others(on: device).filter { message in
            ledger.position(of: message).map { !readers.isRead($0, by: phone) } ?? true
        }
    }

    /// What a phone's screen shows while the log goes on.
    func watch(_ sight: PhoneSight, on device: Int) {
        guard device >= 0, device < ledger.devices.count else { return }
        switch sight {
        case .state(let state):
            screenWatch.state(device, isInFront: state == "foreground", state)
            if state == "not_running" { phoneKills.killed(device) }
            if state == "not_running" || state == "force_quit" { phoneKills.ended(device) }
        case .shown(let message, let isLocal, let isQuiet):
            screenWatch.shown(device, message, isLocal: isLocal, isQuiet: isQuiet)
        case .completed(let result, let open):
            let phone = ledger.user(of: device)
            screenWatch.completed(device, result, open: open) { readers.isRead($0, by: phone) }
        }
    }

    func reportScreens(_ failures: inout [String]) {
        guard !options.isAwake else { return }
        report.reads = readers.reads
        report.screensJudged = screens.judged
        report.screensWrong = screens.wrong.count
        report.staleNotifications = screens.stale
        report.iconsWrong = screens.wrongIcons.count
        report.shownTwice = screenWatch.shownTwice
        report.untold = screenWatch.untold
        report.phoneKills = phoneKills.count
        if screens.judged < report.devices {
            failures.append("\(screens.judged) of \(report.devices) screens were seen")
        }
        for (count, what) in [
            (screens.wrong.count, "screens wrong"), (screens.stale, "notifications stale"),
            (screens.wrongIcons.count, "icons wrong"), (report.shownTwice, "shown twice"),
            (report.untold, "untold when a wake was over"),
        ] where count > 0 {
            failures.append("\(count) \(what)")
        }
        failures += screens.details + screenWatch.details
        if phoneKills.count < phoneKills.wanted {
            failures.append("\(phoneKills.count) of \(phoneKills.wanted) phones were killed")
        }
    }
}

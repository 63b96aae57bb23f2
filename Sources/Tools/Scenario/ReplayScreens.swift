import APNsSimulator
import Model

/// What stands on one phone at the end of a replay.
struct PhoneScreen: Equatable, Sendable {
    var notifications: [ScreenNotification]
    var icon: UInt64
}

/// The phones' screens, judged by what each device was given. Nobody in a log reads: all that a
/// device holds of others is unread, and its icon says that number.
struct ScreenTally: Sendable {
    private(set) var judged = 0
    /// Devices with a notification of nothing that they hold unread, or with one twice.
    private(set) var wrong: [Int] = []
    private(set) var wrongIcons: [Int] = []
    /// What is wrong with the first of them, in words.
    private(set) var details: [String] = []

    private static let detailsMax = 5

    mutating func judge(_ screen: PhoneScreen, of device: Int, holding unread: Set<MessageID>) {
        judged += 1
        var seen: Set<String> = []
        let isRight = screen.notifications.allSatisfy { shown in
            // A badge push that shows a message again has an identifier of its own (PSH-6).
            guard let object = shown.object, seen.insert(object).inserted else { return false }
            return MessageID(text: object).map { unread.contains($0) } ?? false
        }
        let isIconRight = screen.icon == UInt64(unread.count)
        if !isRight { wrong.append(device) }
        if !isIconRight { wrongIcons.append(device) }
        guard !isRight || !isIconRight, details.count < Self.detailsMax else { return }
        let shown = screen.notifications.map { $0.object ?? "nothing" }
        let strange = shown.filter { id in MessageID(text: id).map { !unread.contains($0) } ?? true
        }
        details.append(
            "device \(device): icon \(screen.icon) of \(unread.count) unread, "
                + "\(shown.count - Set(shown).count) notifications twice, stale: \(strange)")
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
            fleet.screen(device) { screen in
                if let screen {
                    tally.judge(screen, of: device, holding: ledger.others(on: device))
                }
                left -= 1
                if left == 0 { then(tally) }
            }
        }
    }

    func reportScreens(_ failures: inout [String]) {
        guard !options.isAwake else { return }
        report.screensJudged = screens.judged
        report.screensWrong = screens.wrong.count
        report.iconsWrong = screens.wrongIcons.count
        if screens.judged < report.devices {
            failures.append("\(screens.judged) of \(report.devices) screens were seen")
        }
        if !screens.wrong.isEmpty {
            failures.append("wrong on the screen of devices \(screens.wrong.prefix(5))")
        }
        if !screens.wrongIcons.isEmpty {
            failures.append("wrong icons of devices \(screens.wrongIcons.prefix(5))")
        }
    }
}

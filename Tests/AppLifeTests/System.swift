import AppLife
import Model
import Wire

/// A phone's system around one `AppLife`, as far as an app can see it: the list of its
/// notifications, its icon, its files, and handlers that wait to be called. What happens is
/// written down in words.
struct System {
    private(set) var life = AppLife()
    /// What the app's store knows of an object; nothing: it is not stored.
    var standings: [UInt64: NotificationStanding] = [:]
    /// What the store owes its user, oldest first.
    var owed: [UInt64] = []
    /// Those of them whose text was edited.
    var edited: Set<UInt64> = []
    /// Those of them of which the server had alerted.
    var alerted: Set<UInt64> = []
    /// Numbers of the objects on the screen, oldest first.
    var screen: [UInt64] = []
    private(set) var icon: UInt32 = 0
    /// Whether the phone was unlocked since it was restarted.
    var isUnlocked = true
    var storeFails = false
    private(set) var completed: [UInt64: [FetchResult]] = [:]
    /// Since it was taken last.
    private var words: [String] = []
    private(set) var now = Instant(milliseconds: 1_000_000)

    static let room = ConversationID(high: 7, low: 7)

    static func object(_ number: UInt64) -> MessageID { MessageID(high: 0, low: number) }

    private static func number(_ identifier: String) -> UInt64 {
        MessageID(text: identifier)?.low ?? 0
    }

    mutating func take() -> [String] {
        defer { words = [] }
        return words
    }

    mutating func pass(_ time: Milliseconds) { now = now + time }

    mutating func give(_ inputs: AppInput...) {
        for input in inputs {
            var waiting = life.on(input, now: now)
            while !waiting.isEmpty {
                let action = waiting.removeFirst()
                if let answer = carryOut(action) {
                    waiting.insert(contentsOf: life.on(answer, now: now), at: 0)
                }
            }
        }
    }

    /// Messages are stored with their page, and with them that they are owed.
    mutating func apply(_ numbers: UInt64...) {
        for number in numbers { standings[number] = .shows }
        owed += numbers
        give(.applied)
    }

    mutating func push(_ task: UInt64, wake: WakeID? = nil, runTime: Milliseconds = 30_000) {
        give(.pushReceived(SystemTask(id: task, deadline: now + runTime), wake: wake))
    }

    /// The process is gone; the system and the files stay.
    mutating func kill() {
        life = AppLife()
        words.append("killed")
    }

    private mutating func carryOut(_ action: AppAction) -> AppInput? {
        switch action {
        case .openStore:
            words.append(isUnlocked ? "store" : "locked")
            return isUnlocked ? .storeOpened : .storeLocked
        case .start(let state, _): words.append("start \(state.phase)")
        case .tell(let state): words.append("tell \(state.phase)")
        case .sync(let state, _): words.append("sync \(state.phase)")
        case .sleep: words.append("sleep")
        case .look:
            if storeFails { return .storeFailed }
            return .looked(
                AppScreen(
                    delivered: screen.map {
                        AppScreen.Delivered(
                            identifier: Self.object($0).description,
                            standing: standings[$0] ?? .missing)
                    },
                    owed: owed.map {
                        AppScreen.Owed(
                            AppNotice(
                                object: Self.object($0), conversation: Self.room, title: "",
                                body: ""),
                            standing: standings[$0] ?? .missing,
                            isEdited: edited.contains($0), wasTold: alerted.contains($0))
                    }))
        case .show(let notice):
            let number = notice.object.low
            words.append(notice.isQuiet ? "replace \(number)" : "show \(number)")
            screen.removeAll { $0 == number }
            screen.append(number)
        case .remove(let identifier):
            words.append("remove \(Self.number(identifier))")
            screen.removeAll { $0 == Self.number(identifier) }
        case .badge(let count):
            words.append("badge \(count)")
            icon = count
        case .settle(let objects):
            owed.removeAll { number in objects.contains { $0.low == number } }
        case .complete(let task, let result):
            words.append("complete \(task) \(result)")
            completed[task, default: []].append(result)
        }
        return nil
    }
}

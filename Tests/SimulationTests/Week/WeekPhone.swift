import AppLife
import DeviceModel
import Foundation
import Model
import RouseClient
import Synchronization
import Wake

/// A phone as its owner sees it: the system's model of it, and what its notifications say.
final class WeekPhone: Sendable {
    struct Shown: Equatable {
        var identifier: String
        var object: MessageID?
        var conversation: ConversationID?
        var title: String
        var text: String
        var at: Instant
    }

    struct Heard {
        var at: Instant
        /// When it left the server; `nil`: the app showed it.
        var sentAt: Instant?
    }

    struct State {
        var model = Phone(state: .notRunning)
        fileprivate var contents: [UInt64: Shown] = [:]
        fileprivate var lastHandle: UInt64 = 0
        fileprivate var keys: [String: UInt64] = [:]
        /// Wake ids of the pushes, by handle.
        var wakes: [UInt64: WakeID] = [:]
        /// The file that the app shares with its extension.
        var told: Set<String> = []
        /// Shown by a process that was killed before it could say so there.
        var unnoted: Set<String> = []
        /// How often each message rang.
        var heard: [MessageID: [Heard]] = [:]
        /// What its owner sees of the app.
        var view = WeekDevice.View.behind
        /// By the app while it did not run.
        var misdeeds: [String] = []
        /// Until when the icon's number is known to count: when the app last set it, or when the
        /// last push that carried one left the server.
        var numberAt = Instant(milliseconds: 0)
        /// What went off the screen when the icon went to 0, since it was taken last.
        var cleared: Set<MessageID> = []
        /// What the app did to the screen, since it was taken last.
        var words: [String] = []

        var screen: [Shown] { model.screen.compactMap { contents[$0.handle] } }

        mutating func keep(_ shown: Shown) -> UInt64 {
            lastHandle += 1
            contents[lastHandle] = shown
            return lastHandle
        }

        mutating func key(_ identifier: String) -> UInt64 {
            if let known = keys[identifier] { return known }
            keys[identifier] = UInt64(keys.count + 1)
            return UInt64(keys.count)
        }
    }

    private let state = Mutex(State())
    let rules: DeviceRules

    init(_ rules: DeviceRules) { self.rules = rules }

    func use<Result>(_ body: (inout sending State) -> sending Result) -> sending Result {
        state.withLock { body(&$0) }
    }

    var screen: [Shown] { state.withLock { $0.screen } }
    var icon: UInt32 { state.withLock { $0.model.badge } }
    var appState: PushEffect.State { state.withLock { $0.model.state } }

    func content(of handle: UInt64) -> Shown? { state.withLock { $0.contents[handle] } }

    /// The app in front has it shown.
    func present(_ handle: UInt64, _ shown: Shown) {
        state.withLock { state in
            var events: [PhoneEvent] = []
            let key = state.key(shown.identifier)
            _ = state.model.showLocal(
                handle: handle, identifier: key, rules: rules, into: &events)
        }
    }

    /// What the model does, and what happens by it.
    func does(_ body: (inout Phone, inout [PhoneEvent]) -> Void) -> [PhoneEvent] {
        state.withLock { state in
            var events: [PhoneEvent] = []
            let standing = state.screen.compactMap(\.object)
            body(&state.model, &events)
            // A push that APNs had kept.
            if events.contains(.cleared) { state.cleared.formUnion(standing) }
            return events
        }
    }

    /// APNs delivers a push.
    func receive(
        _ request: PushRequest, sentAt: Instant, now: Instant, wall: Timestamp
    ) throws -> [PhoneEvent] {
        let payload =
            try JSONSerialization.jsonObject(with: Data(request.payload)) as? [String: Any] ?? [:]
        let aps = payload["aps"] as? [String: Any] ?? [:]
        let rouse = payload["rouse"] as? [String: Any] ?? [:]
        let alert = aps["alert"] as? [String: Any]
        let wakes = aps["content-available"] as? Int == 1
        let kind: PushEffect.Kind =
            request.pushType == .background
            ? .silent
            : alert != nil
                ? (wakes ? .alertWithContent : .alert)
                : wakes ? .badgeWithContent : .badge
        let shown = Shown(
            identifier: request.collapseID ?? "",
            object: (rouse["o"] as? String).flatMap { MessageID(text: $0) },
            conversation: (rouse["c"] as? String).flatMap { ConversationID(text: $0) },
            title: alert?["title"] as? String ?? "", text: alert?["body"] as? String ?? "", at: now)
        let hasSound = alert != nil && aps["sound"] != nil
        let hasExtension = aps["mutable-content"] as? Int == 1
        return state.withLock { state in
            // The extension is asked before the notification joins the list. What APNs keeps comes
            // later, and is not heard here at all.
            let standing = state.screen.map { DeliveredNotification(identifier: $0.identifier) }
            let handle = state.keep(shown)
            state.wakes[handle] = request.id
            var events: [PhoneEvent] = []
            state.model.push(
                PhonePush(
                    kind, handle: handle, identifier: request.collapseID.map { state.key($0) } ?? 0,
                    expires: request.expiration * 1_000,
                    badge: (aps["badge"] as? Int).map { Int32(clamping: $0) } ?? -1,
                    priority: UInt8(clamping: request.priority), hasText: alert != nil),
                rules: rules, now: wall, into: &events)
            let isShown = events.contains { event in
                if case .shown(handle, _) = event { true } else { false }
            }
            let isReceived = events.contains { event in
                if case .received = event { true } else { false }
            }
            if isReceived, aps["badge"] != nil { state.numberAt = sentAt }
            var rings = hasSound
            if isReceived, alert != nil, hasExtension {
                let told = Told(identifiers: state.told)
                rings =
                    !RouseExtension.isRepeat(shown.identifier, among: standing, told: told)
                    && hasSound
                state.told = told.identifiers.withLock { $0 }
            }
            if rings, isShown, let object = shown.object {
                state.heard[object, default: []].append(Heard(at: now, sentAt: sentAt))
            }
            return events
        }
    }
}

/// What the extension reads of the shared file, and writes.
private final class Told: ToldRecord {
    let identifiers: Mutex<Set<String>>

    init(identifiers: Set<String>) { self.identifiers = Mutex(identifiers) }

    func contains(_ identifier: String) -> Bool {
        identifiers.withLock { $0.contains(identifier) }
    }

    func note(_ identifier: String) { identifiers.withLock { _ = $0.insert(identifier) } }
}

/// The shared file as one process of the app reaches it.
struct MortalRecord: ToldRecord {
    let phone: WeekPhone
    let lifeline: Lifeline

    func contains(_ identifier: String) -> Bool {
        phone.use { $0.told.contains(identifier) }
    }

    func note(_ identifier: String) {
        let lives = lifeline.passes()
        phone.use { state in
            if lives {
                state.told.insert(identifier)
            } else if state.screen.contains(where: { $0.identifier == identifier }) {
                state.unnoted.insert(identifier)
            }
        }
    }
}

/// The phone as one process of the app reaches it.
struct MortalPhone: RousePhone {
    let phone: WeekPhone
    let lifeline: Lifeline
    let clock: WeekClock

    func delivered() async -> [DeliveredNotification] {
        guard lifeline.passes() else { return [] }
        return phone.screen.map {
            DeliveredNotification(
                identifier: $0.identifier, object: $0.object, conversation: $0.conversation)
        }
    }

    func show(_ notice: AppNotice) async {
        guard lifeline.passes() else { return }
        let now = clock.now
        phone.use { state in
            let handle = state.keep(
                WeekPhone.Shown(
                    identifier: notice.identifier, object: notice.object,
                    conversation: notice.conversation, title: notice.title, text: notice.body,
                    at: now))
            var events: [PhoneEvent] = []
            let key = state.key(notice.identifier)
            let runs = state.model.showLocal(
                handle: handle, identifier: key, rules: phone.rules, into: &events)
            if let conversation = notice.conversation, state.view.sees(conversation),
                !notice.isQuiet
            {
                state.misdeeds.append("shows \(notice.identifier), which is on the screen")
            }
            if !runs { state.misdeeds.append("shows \(notice.identifier) and does not run") }
            state.words.append("shows \(notice.identifier)")
            if notice.sound != nil {
                state.heard[notice.object, default: []].append(
                    WeekPhone.Heard(at: now, sentAt: nil))
            }
        }
    }

    func remove(identifier: String) async {
        guard lifeline.passes() else { return }
        phone.use { state in
            var events: [PhoneEvent] = []
            if !state.model.state.isRunning {
                state.misdeeds.append("removes \(identifier) and does not run")
            }
            state.words.append("removes \(identifier)")
            _ = state.model.remove(identifier: state.key(identifier), into: &events)
        }
    }

    func setBadge(_ count: UInt32) async {
        guard lifeline.passes() else { return }
        let now = clock.now
        phone.use { state in
            var events: [PhoneEvent] = []
            state.words.append("icon \(count)")
            let stood = state.screen
            if !state.model.setBadge(count, into: &events) {
                state.misdeeds.append("sets the icon to \(count) and does not run")
            }
            state.numberAt = now
            guard events.contains(.cleared) else { return }
            for shown in stood {
                let handle = state.keep(shown)
                _ = state.model.showLocal(
                    handle: handle, identifier: state.key(shown.identifier), rules: phone.rules,
                    into: &events)
            }
        }
    }
}

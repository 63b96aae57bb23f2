import APNsSimulator
import AppLife
import EventLoop
import FoundationEssentials
import Model
import Wire

/// The phone at an APNs simulator: it gives the app its push token, is told what becomes of the
/// app, and brings the pushes.
final class ChatPushes: @unchecked Sendable {
    // @unchecked: the client is used under `lock`; `isOver` too.

    /// What a push does to the phone.
    enum Arrival: Sendable {
        case notice(AppNotice)
        /// The icon, as an alert says it.
        case icon(UInt32)
        /// The app is called for it.
        case wake(WakeID?)
        /// The simulator has ended, in words.
        case gone(String)
    }

    let registration: PushRegistration
    /// What came while there was no chat, oldest first.
    let shown: [AppNotice]
    private let lock = Lock()
    private let client: SimulatorClient
    private let events: SimulatorClient
    private let device: String
    private let path: String
    private var isOver = false

    /// How long the phone waits for the simulator, in milliseconds.
    private static let patience: Int32 = 2_000
    private static let kinds: [SimulatorEvent.Kind] = [.received, .shown]

    /// - Parameter path: of the simulator's control socket.
    init(path: String, topic: String, user: String, device id: DeviceID) throws(ChatRefusal) {
        self.path = path
        device = "chat-\(user)"
        do {
            client = try SimulatorClient(path: path)
            client.timeoutMilliseconds = Self.patience
            events = try SimulatorClient(path: path)
            let token = try Self.token(client, device, topic, id)
            registration = PushRegistration(
                token: token, environment: .production, topic: topic)
            shown =
                try client.call(ControlRequest(.deviceScreen, device: device)).screen?
                .compactMap { AppNotice($0) } ?? []
            let now = try client.call(ControlRequest(.counts)).counts ?? [:]
            try events.subscribe(after: now.values.reduce(0, +), kinds: Self.kinds)
        } catch let error as ChatRefusal {
            throw error
        } catch {
            throw ChatRefusal(description: "the APNs simulator at \(path): \(error)")
        }
    }

    /// Of the device that an earlier chat has made, or of a new one.
    private static func token(
        _ client: SimulatorClient, _ device: String, _ topic: String, _ id: DeviceID
    ) throws -> [UInt8] {
        var create = ControlRequest(.deviceCreate, device: device)
        create.topic = topic
        create.deviceId = id.description
        let known = try client.calls([ControlRequest(.deviceStatus, device: device)])[0].status
        if let known, known.topic != topic {
            throw ChatRefusal(
                description: "the simulator has \(device) with the topic \(known.topic)")
        }
        guard let text = try known?.token ?? client.call(create).token,
            let token = Self.bytes(of: text)
        else { throw SimulatorClientError.malformed("no push token") }
        return token
    }

    private static func bytes(of hex: String) -> [UInt8]? {
        let digits = hex.compactMap(\.hexDigitValue)
        guard digits.count == hex.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    /// Tells what comes, on a thread of its own, until `stop`.
    func follow(_ tell: @escaping @Sendable (Arrival) -> Void) {
        WorkThread.start("pushes") { [self] in
            do {
                while !lock.withLock({ isOver }) {
                    guard let (event, _) = try events.event(timeoutMilliseconds: 500),
                        event.device == device
                    else { continue }
                    for arrival in Self.arrivals(event) { tell(arrival) }
                }
            } catch {
                tell(.gone("\(error)"))
            }
        }
    }

    func stop() { lock.withLock { isOver = true } }

    private static func arrivals(_ event: SimulatorEvent) -> [Arrival] {
        guard event.kind == .received else {
            return AppNotice(event).map { [.notice($0)] } ?? []
        }
        var arrivals: [Arrival] = []
        if let badge = event.badge { arrivals.append(.icon(UInt32(clamping: badge))) }
        let isCalled = event.calls?.contains { $0.contains("didReceiveRemoteNotification") }
        if isCalled == true { arrivals.append(.wake(event.wake.flatMap { WakeID(text: $0) })) }
        return arrivals
    }

    // MARK: What becomes of the app

    enum Move {
        case open
        case lock(Milliseconds)
        case suspend
        case kill
        case refresh
    }

    /// - Throws: what the simulator says, in words.
    func tell(_ move: Move) throws(ChatRefusal) {
        switch move {
        case .open: try call(ControlRequest(.deviceOpen, device: device))
        case .lock(let time):
            var request = ControlRequest(.deviceBackground, device: device)
            request.runMs = time
            try call(request)
        case .suspend: try call(ControlRequest(.deviceSuspend, device: device))
        case .kill:
            // The system takes no app that is in front.
            try call(ControlRequest(.deviceBackground, device: device))
            try call(ControlRequest(.deviceKill, device: device))
        case .refresh: try call(ControlRequest(.deviceFetch, device: device))
        }
    }

    private func call(_ request: ControlRequest) throws(ChatRefusal) {
        let failure = lock.withLock { () -> (any Error)? in
            do throws(SimulatorClientError) {
                _ = try client.call(request)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw ChatRefusal(description: "\(failure)") }
    }
}

extension AppNotice {
    /// A notification as an alert shows it; `nil`: it names no object.
    fileprivate init?(_ event: SimulatorEvent) {
        guard let object = (event.message ?? event.identifier).flatMap({ MessageID(text: $0) })
        else { return nil }
        self.init(
            object: object, conversation: event.conversation.flatMap { ConversationID(text: $0) },
            title: event.title ?? "", body: event.body ?? "")
    }

    fileprivate init?(_ shown: ScreenNotification) {
        let name = shown.object ?? shown.identifier
        guard let object = MessageID(text: name) else { return nil }
        self.init(
            object: object, conversation: shown.conversation.flatMap { ConversationID(text: $0) },
            title: shown.title, body: shown.body)
    }
}

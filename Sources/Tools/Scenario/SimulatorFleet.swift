import APNsSimulator
import EventLoop
import FoundationEssentials
import Model

/// Devices in the simulator's process, driven through its control socket: they have the real
/// client, a screen, and an app that a push can wake. Loop-confined.
final class SimulatorFleet: DeviceFleet {
    /// How the simulated devices reach the sync server and log in.
    struct Surroundings {
        var topic: String
        var app: String
        var host: String
        var port: UInt16
        var serverName: String
        /// PEM files: who signs the server's certificate, and the issuer's private key.
        var trustFile: String
        var issuerKeyFile: String
        var issuerKeyID: String
    }

    var onEvent: (FleetEvent) -> Void = { _ in }
    private(set) var syncRequests = 0
    private(set) var deltas = 0
    private(set) var silentWakes = 0
    private(set) var alerts = 0
    private(set) var badges = 0
    private(set) var lints: [String] = []

    private let commands: LineConnection
    private let events: LineConnection
    private let surroundings: Surroundings
    private var waiting: [(ControlResponse) -> Void] = []
    private var firstWaiting = 0
    private let decoder = JSONDecoder()
    private let encoder = JSONEncoder()
    private var resets: Set<Int> = []

    init(loop: Loop, control: String, surroundings: Surroundings) {
        self.surroundings = surroundings
        commands = LineConnection(loop: loop, path: control)
        events = LineConnection(loop: loop, path: control)
        commands.onLine = { [unowned self] line in self.answer(line) }
        commands.onEnd = { [unowned self] why in self.onEvent(.ended(why)) }
        events.onLine = { [unowned self] line in self.heard(line) }
        events.onEnd = { [unowned self] why in self.onEvent(.ended(why)) }
        var subscribe = ControlRequest(.events)
        subscribe.after = 0
        // One that is missing could be a delivery: the devices are to wait for this reader.
        subscribe.lossless = true
        subscribe.compact = true
        subscribe.kinds = [
            .push, .reset, .joined, .applied, .acknowledged, .digest, .failed, .state, .shown,
            .completed,
        ]
        events.send(line(subscribe))
    }

    // MARK: - Commands

    /// Sends a command; answers come in order.
    func call(_ request: ControlRequest, then: @escaping (ControlResponse) -> Void = { _ in }) {
        waiting.append(then)
        commands.send(line(request))
    }

    func add(user: String, device: DeviceID) throws {
        let number = created
        created += 1
        var request = ControlRequest(.deviceCreate, device: "\(number)")
        request.deviceId = device.description
        request.topic = surroundings.topic
        request.user = user
        request.app = surroundings.app
        request.host = surroundings.host
        request.port = surroundings.port
        request.serverName = surroundings.serverName
        request.trust = surroundings.trustFile
        request.issuerKey = surroundings.issuerKeyFile
        request.issuerKid = surroundings.issuerKeyID
        call(request)
    }

    private var created = 0

    func open(_ device: Int) { call(ControlRequest(.deviceOpen, device: "\(device)")) }

    func sleep(_ device: Int, forced: Bool) {
        call(ControlRequest(forced ? .deviceForceQuit : .deviceSuspend, device: "\(device)"))
    }

    func send(_ device: Int, _ line: OutgoingLine) throws {
        var request = ControlRequest(.deviceSend, device: "\(device)")
        request.conversation = line.conversation.description
        request.message = line.message.description
        request.title = line.title
        request.text = line.text
        call(request)
    }

    /// The user reads in the conversation, on this device.
    func read(_ device: Int, _ conversation: ConversationID, _ choice: ReplayReaders.Choice) {
        var request = ControlRequest(.deviceRead, device: "\(device)")
        request.conversation = conversation.description
        switch choice {
        case .through(let position): request.through = position
        case .only(let position): request.position = position
        }
        call(request)
    }

    /// What the device holds of the conversation, at its end.
    func messages(
        _ device: Int, _ conversation: ConversationID, above position: UInt64 = 0,
        then: @escaping ([(MessageID, position: UInt64)]) -> Void
    ) {
        var request = ControlRequest(.deviceMessages, device: "\(device)")
        request.conversation = conversation.description
        request.after = position
        request.limit = Self.page
        call(request) { [unowned self] response in
            let held = (response.messages ?? []).compactMap { stored in
                MessageID(text: stored.message).map { ($0, position: stored.position) }
            }
            guard held.count == Self.page, let last = held.last?.position else {
                return then(held)
            }
            self.messages(device, conversation, above: last) { then(held + $0) }
        }
    }

    private static let page = 500

    /// The system kills the app, in its next wake, as soon as this has happened.
    func kill(_ device: Int, at moment: SimulatorEvent.Kind) {
        var request = ControlRequest(.deviceKill, device: "\(device)")
        request.at = moment
        call(request)
    }

    func checkDigest(_ device: Int) { call(ControlRequest(.deviceDigest, device: "\(device)")) }

    /// What stands on the device's screen; `nil`: the simulator did not tell.
    func screen(_ device: Int, then: @escaping (PhoneScreen?) -> Void) {
        var notifications: [ScreenNotification]?
        call(ControlRequest(.deviceScreen, device: "\(device)")) { notifications = $0.screen }
        call(ControlRequest(.deviceStatus, device: "\(device)")) { response in
            guard let notifications, let icon = response.status?.badge else { return then(nil) }
            then(PhoneScreen(notifications: notifications, icon: icon))
        }
    }

    func count(then: @escaping () -> Void) {
        call(ControlRequest(.counts)) { [unowned self] response in
            func count(_ kind: SimulatorEvent.Kind) -> Int {
                Int(clamping: response.counts?[kind.rawValue] ?? 0)
            }
            self.syncRequests = count(.syncRequest)
            self.deltas = count(.delta)
            then()
        }
    }

    func stop() {
        commands.close()
        events.close()
    }

    private func line(_ request: ControlRequest) -> Data {
        (try? encoder.encode(request)) ?? Data("{}".utf8)
    }

    // MARK: - What comes back

    private func answer(_ line: Data) {
        guard firstWaiting < waiting.count,
            let response = try? decoder.decode(ControlResponse.self, from: line)
        else { return onEvent(.failed(device: -1, String(decoding: line, as: UTF8.self))) }
        let then = waiting[firstWaiting]
        firstWaiting += 1
        if firstWaiting == waiting.count {
            waiting = []
            firstWaiting = 0
        }
        if !response.ok {
            onEvent(.failed(device: -1, "simulator: \(response.error ?? "refused")"))
        }
        then(response)
    }

    private func heard(_ line: Data) {
        guard let response = try? decoder.decode(ControlResponse.self, from: line), response.ok
        else {
            return onEvent(.ended("no event: \(String(decoding: line, as: UTF8.self))"))
        }
        if let lost = response.lost { onEvent(.ended("\(lost) events are missing")) }
        if let batch = response.applied { applied(batch) }
        if let event = response.event { self.event(event) }
    }

    private func applied(_ batch: AppliedBatch) {
        guard let rows = batch.rows, let place = ConversationID(text: batch.conversation) else {
            return onEvent(.ended("a batch that cannot be read"))
        }
        for row in rows {
            guard let device = Int(row.device), let message = MessageID(text: row.message) else {
                return onEvent(.ended("no delivery: \(row)"))
            }
            onEvent(
                .applied(
                    device: device, place, message, position: row.position,
                    alerted: row.alerted, at: row.uptime))
        }
    }

    private func event(_ event: SimulatorEvent) {
        let device = event.device.flatMap { Int($0) } ?? -1
        switch event.kind {
        case .push: pushed(event)
        case .state:
            onEvent(.sight(device: device, .state(event.state ?? "")))
        case .shown:
            guard let message = event.identifier.flatMap({ MessageID(text: $0) }) else { return }
            let (isLocal, isQuiet) = (event.local ?? false, event.quiet ?? false)
            onEvent(
                .sight(
                    device: device, .shown(message, isLocal: isLocal, isQuiet: isQuiet)))
        case .completed:
            let (result, open) = (event.reason ?? "", event.open ?? 0)
            onEvent(.sight(device: device, .completed(result: result, open: open)))
        case .acknowledged:
            guard let message = event.message.flatMap({ MessageID(text: $0) }) else { return }
            onEvent(
                .answered(
                    device: device, message, position: event.position ?? 0, code: event.code ?? 0,
                    at: event.uptime))
        case .reset:
            onEvent(.reset(device: device, isFirst: resets.insert(device).inserted))
        case .joined:
            guard let conversation = event.conversation.flatMap({ ConversationID(text: $0) })
            else { return }
            onEvent(.joined(device: device, conversation, position: event.position ?? 0))
        case .digest:
            guard let facts = event.digest else { return }
            onEvent(.digest(device: device, facts))
        case .failed:
            onEvent(.failed(device: device, "\(event.text ?? "") \(event.code ?? 0)"))
        default: break
        }
    }

    private func pushed(_ event: SimulatorEvent) {
        for lint in event.lints ?? [] where lints.count < 20 {
            lints.append("\(lint)")
        }
        guard event.status == 200 else { return }
        switch (event.pushType, event.collapseId) {
        case ("background", _): silentWakes += 1
        case ("alert", "badge"): badges += 1
        case ("alert", _): alerts += 1
        default: break
        }
    }
}

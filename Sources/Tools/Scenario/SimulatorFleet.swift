import APNsSimulator
import EventLoop
import Foundation
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
    private(set) var silentWakes = 0
    private(set) var alerts = 0
    private(set) var badges = 0
    private(set) var shown = 0
    private(set) var lints: [String] = []

    private let commands: LineConnection
    private let events: LineConnection
    private let surroundings: Surroundings
    private var waiting: [(ControlResponse) -> Void] = []
    private var firstWaiting = 0
    private var lastEvent: UInt64 = 0
    private var resets: Set<Int> = []

    init(loop: Loop, control: String, surroundings: Surroundings) {
        self.surroundings = surroundings
        commands = LineConnection(loop: loop, path: control)
        events = LineConnection(loop: loop, path: control)
        commands.onLine = { [unowned self] line in self.answer(line) }
        commands.onEnd = { [unowned self] why in self.onEvent(.failed(device: -1, why)) }
        events.onLine = { [unowned self] line in self.event(line) }
        events.onEnd = { [unowned self] why in self.onEvent(.failed(device: -1, why)) }
        var subscribe = ControlRequest(.events)
        subscribe.after = 0
        events.send(Self.line(subscribe))
    }

    // MARK: - Commands

    /// Sends a command; answers come in order.
    func call(_ request: ControlRequest, then: @escaping (ControlResponse) -> Void = { _ in }) {
        waiting.append(then)
        commands.send(Self.line(request))
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

    func stop() {
        commands.close()
        events.close()
    }

    private static func line(_ request: ControlRequest) -> Data {
        (try? JSONEncoder().encode(request)) ?? Data("{}".utf8)
    }

    // MARK: - What comes back

    private func answer(_ line: Data) {
        guard firstWaiting < waiting.count,
            let response = try? JSONDecoder().decode(ControlResponse.self, from: line)
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

    private func event(_ line: Data) {
        guard let response = try? JSONDecoder().decode(ControlResponse.self, from: line) else {
            return onEvent(
                .failed(device: -1, "no event: \(String(decoding: line, as: UTF8.self))"))
        }
        guard let event = response.event else { return }
        // The stream tells every event once: one that is missing could be a delivery.
        if event.n != lastEvent + 1 {
            onEvent(.failed(device: -1, "events \(lastEvent + 1) to \(event.n) are missing"))
        }
        lastEvent = event.n
        let device = event.device.flatMap { Int($0) } ?? -1
        switch event.kind {
        case .push: pushed(event)
        case .shown: if event.local != true { shown += 1 }
        case .online: onEvent(.opened(device: device))
        case .offline: onEvent(.closed(device: device))
        case .synced: onEvent(.inSync(device: device))
        case .applied:
            for applied in event.messages ?? [] {
                guard let conversation = ConversationID(text: applied.conversation),
                    let message = MessageID(text: applied.message)
                else { continue }
                onEvent(
                    .applied(
                        device: device, conversation, message, position: applied.position,
                        at: event.uptime))
            }
        case .acknowledged:
            guard let message = event.message.flatMap({ MessageID(text: $0) }) else { return }
            onEvent(
                .answered(
                    device: device, message, position: event.position ?? 0, code: event.code ?? 0,
                    at: event.uptime))
        case .syncRequest: onEvent(.syncRequest(device: device))
        case .delta: onEvent(.delta(device: device))
        case .reset:
            onEvent(.reset(device: device, isFirst: resets.insert(device).inserted))
        case .joined:
            guard let conversation = event.conversation.flatMap({ ConversationID(text: $0) })
            else { return }
            onEvent(.joined(device: device, conversation, position: event.position ?? 0))
        case .failed:
            onEvent(.failed(device: device, "\(event.text ?? "") \(event.code ?? 0)"))
        default: break
        }
    }

    private func pushed(_ event: SimulatorEvent) {
        for lint in event.lints ?? [] where lints.count < 20 { lints.append("\(lint)") }
        guard event.status == 200 else { return }
        switch (event.pushType, event.collapseId) {
        case ("background", _): silentWakes += 1
        case ("alert", "badge"): badges += 1
        case ("alert", _): alerts += 1
        default: break
        }
    }
}

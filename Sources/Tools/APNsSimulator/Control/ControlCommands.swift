internal import Crypto
internal import EventLoop
internal import Foundation
internal import Model

/// What the commands of the control socket do. Loop-confined.
final class ControlCommands {
    private static let listMax = 10_000
    private static let textBytesMax = 64 * 1024
    private unowned let simulator: Simulator

    private let apps: DeviceAppFactory

    init(simulator: Simulator) {
        self.simulator = simulator
        apps = DeviceAppFactory(loop: simulator.loop, directory: simulator.options.directory)
    }

    /// A command that cannot be done, in words for whoever sent it.
    private struct Refused: Error {
        let text: String
    }

    func answer(_ request: ControlRequest) -> ControlResponse {
        do {
            return try carryOut(request)
        } catch {
            var response = ControlResponse()
            response.ok = false
            response.error = (error as? Refused)?.text ?? "\(error)"
            return response
        }
    }

    private func carryOut(_ request: ControlRequest) throws -> ControlResponse {
        var response = ControlResponse()
        switch request.cmd {
        case .ports: response.ports = simulator.ports
        case .appAdd, .keyAdd, .keyRevoke, .tokenIssue, .tokenKill:
            response.token = try registry(request)
        case .devices: response.devices = simulator.deviceNames
        case .deviceCreate: try create(request, &response)
        case .deviceOpen, .deviceBackground, .deviceSuspend, .deviceForceQuit, .deviceCoverage:
            try live(request)
        case .deviceStatus:
            response.status = report(try simulator.device(try need(request.device, "device")))
        case .deviceScreen:
            let host = try simulator.device(try need(request.device, "device"))
            response.screen = host.device.screen
        case .deviceMessages, .deviceConversation, .deviceParticipants, .deviceSend, .deviceRead,
            .deviceChange, .deviceDigest, .deviceForget:
            try use(request, &response)
        case .log:
            let after = request.after ?? 0
            let (events, lost) = simulator.log.events(
                after: after, limit: min(request.limit ?? 1_000, Self.listMax))
            response.events = Array(events)
            response.next = events.last?.n ?? after
            if lost > 0 { response.lost = lost }
        case .counts:
            response.counts = [:]
            for (kind, count) in simulator.log.counts { response.counts?[kind.rawValue] = count }
        case .fault: try fault(request)
        case .events: break
        }
        return response
    }

    private func need<Value>(_ value: Value?, _ name: String) throws -> Value {
        guard let value else { throw Refused(text: "`\(name)` is missing") }
        return value
    }

    // MARK: Apps, keys, tokens

    private func registry(_ request: ControlRequest) throws -> String? {
        let now = simulator.now
        switch request.cmd {
        case .appAdd:
            try simulator.state.add(
                SimulatorState.App(
                    topic: try need(request.topic, "topic"), team: try need(request.team, "team"))
            )
        case .keyAdd:
            let pem = try need(request.publicKey, "publicKey")
            let key = SimulatorState.SigningKey(
                team: try need(request.team, "team"), key: try PublicKey(pem: Array(pem.utf8)),
                environment: request.environment)
            try simulator.state.add(key, id: try need(request.kid, "kid"))
        case .keyRevoke: try simulator.state.revokeKey(try need(request.kid, "kid"))
        case .tokenIssue:
            return try simulator.state.issue(
                Random.bytes(32),
                SimulatorState.IssuedToken(
                    environment: request.environment ?? .production,
                    topic: try need(request.topic, "topic")))
        default:
            let since = request.since.map { Timestamp(milliseconds: $0) } ?? now
            try simulator.state.kill(
                token: try need(request.token, "token").lowercased(), since: since,
                toldFrom: request.toldFrom.map { Timestamp(milliseconds: $0) } ?? since,
                isExpired: request.expired ?? false)
        }
        return nil
    }

    // MARK: Devices

    private func create(_ request: ControlRequest, _ response: inout ControlResponse) throws {
        let id: DeviceID
        if let text = request.deviceId {
            guard let given = DeviceID(text: text) else {
                throw Refused(text: "`deviceId` is no UUID")
            }
            id = given
        } else {
            id = try fresh()
        }
        let app = try apps.parse(request, id: id)
        response.token = try simulator.addDevice(
            request.device ?? id.description, topic: try need(request.topic, "topic"),
            environment: request.environment ?? .production
        ) { token, hooks in
            try app?(token, hooks)
        }
        response.deviceId = id.description
    }

    private func fresh<Noun>() throws -> Identifier<Noun> {
        guard let id = Identifier<Noun>(Random.bytes(16)) else { throw Refused(text: "no id") }
        return id
    }

    private func live(_ request: ControlRequest) throws {
        let host = try simulator.device(try need(request.device, "device"))
        switch request.cmd {
        case .deviceOpen: host.change { $0.open(now: $1) }
        case .deviceBackground:
            let time = min(request.runMs ?? SimulatedDevice.leaveTime, 86_400_000)
            host.change { $0.background(now: $1, runTime: time) }
        case .deviceSuspend: host.change { $0.suspend(now: $1) }
        case .deviceForceQuit: host.change { $0.forceQuit(now: $1) }
        default:
            let isOn = try need(request.on, "on")
            host.change { $0.setCoverage(isOn, now: $1) }
        }
    }

    private func report(_ host: DeviceHost) -> DeviceReport {
        DeviceReport(
            device: host.name, token: host.token, topic: host.topic,
            environment: host.environment, state: host.device.state,
            coverage: host.device.hasCoverage, badge: host.device.badge,
            shown: host.device.screen.count, stored: host.device.slot != nil,
            app: host.app?.status)
    }

    private func use(_ request: ControlRequest, _ response: inout ControlResponse) throws {
        let host = try simulator.device(try need(request.device, "device"))
        guard let app = host.app else {
            throw Refused(text: "device `\(host.name)` has no app with a client")
        }
        if request.cmd == .deviceForget { return try app.forget() }
        if request.cmd == .deviceChange { return try app.change(try change(request)) }
        if request.cmd == .deviceDigest { return try app.checkDigest() }
        let conversation: ConversationID
        if request.cmd == .deviceConversation, request.conversation == nil {
            conversation = try fresh()
        } else {
            let text = try need(request.conversation, "conversation")
            guard let id = ConversationID(text: text) else {
                throw Refused(text: "`conversation` is no UUID")
            }
            conversation = id
        }
        switch request.cmd {
        case .deviceConversation:
            try app.createConversation(conversation, participants: request.users ?? [])
            response.conversation = conversation.description
        case .deviceParticipants:
            try app.addParticipants(try need(request.users, "users"), to: conversation)
        case .deviceSend:
            let text = try need(request.text, "text")
            guard text.utf8.count <= Self.textBytesMax else {
                throw Refused(text: "`text` is longer than \(Self.textBytesMax) bytes")
            }
            let message: MessageID =
                try request.message.map { text throws in
                    guard let id = MessageID(text: text) else {
                        throw Refused(text: "`message` is no UUID")
                    }
                    return id
                } ?? fresh()
            try app.send(text, title: request.title, as: message, to: conversation)
            response.message = message.description
        case .deviceRead:
            try app.read(conversation, through: try need(request.through, "through"))
        default:
            response.messages = try app.messages(
                conversation, above: request.after ?? 0,
                limit: max(1, min(request.limit ?? 1_000, Self.listMax)))
        }
    }

    private func change(_ request: ControlRequest) throws -> AppChange {
        func identifier<Noun>(
            _ text: String?, _ name: String
        ) throws -> Identifier<Noun> {
            guard let id = Identifier<Noun>(text: try need(text, name)) else {
                throw Refused(text: "`\(name)` is no UUID")
            }
            return id
        }
        func conversation() throws -> ConversationID {
            try identifier(request.conversation, "conversation")
        }
        switch try need(request.change, "change") {
        case .remove:
            return .remove(try need(request.users, "users"), from: try conversation())
        case .edit:
            return .edit(
                try identifier(request.message, "message"), text: try need(request.text, "text"))
        case .delete:
            return .delete(
                try identifier(request.message, "message"),
                forEveryone: request.everyone ?? false)
        case .deleteConversation:
            return .deleteConversation(
                try conversation(), forEveryone: request.everyone ?? false)
        case .metadata:
            return .setTitle(try need(request.text, "text"), of: try conversation())
        case .mute: return .mute(try conversation(), try need(request.on, "on"))
        case .block:
            guard let user = try need(request.users, "users").first else {
                throw Refused(text: "`users` names nobody")
            }
            return .block(user, try need(request.on, "on"))
        }
    }

    // MARK: Faults

    private func fault(_ request: ControlRequest) throws {
        let count = request.count ?? 1
        var isTaken = true
        switch try need(request.fault, "fault") {
        case .answer:
            let status = try need(request.status, "status")
            guard (200...599).contains(status) else {
                throw Refused(text: "`status` must be 200 to 599")
            }
            isTaken = simulator.faults.add(
                .answer(status: status, reason: request.reason ?? ""), count: count,
                token: request.token)
        case .silence:
            isTaken = simulator.faults.add(
                .silence(delivers: request.delivers ?? false), count: count,
                token: request.token)
        case .reset:
            isTaken = simulator.faults.add(
                .reset(code: request.code ?? 0x7), count: count, token: request.token)
        case .delay: simulator.faults.delay(milliseconds: try need(request.delayMs, "delayMs"))
        case .refuse: simulator.faults.refusesConnections = try need(request.on, "on")
        case .goaway:
            simulator.goAway(
                request.environment, unprocessed: request.unprocessed ?? 0,
                code: request.code ?? 0, reason: request.reason)
        case .cut: simulator.cutConnections(request.environment)
        case .clear: simulator.faults.clear()
        }
        if !isTaken { throw Refused(text: "`count` is not positive, or too many faults wait") }
    }
}

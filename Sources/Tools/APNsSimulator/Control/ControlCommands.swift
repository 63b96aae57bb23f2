internal import Crypto
internal import DeviceModel
internal import EventLoop
internal import FoundationEssentials
internal import Model

/// What the commands of the control socket do. Loop-confined.
final class ControlCommands {
    private static let listMax = 10_000
    private static let textBytesMax = 64 * 1024
    /// 100 years, in milliseconds.
    private static let offsetMax: UInt64 = 3_155_760_000_000
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
            response.error = (error as? Refused)?.text ?? ErrorWords.of(error)
            return response
        }
    }

    private func carryOut(_ request: ControlRequest) throws -> ControlResponse {
        var response = ControlResponse()
        switch request.cmd {
        case .ports: response.ports = simulator.ports
        case .appAdd, .keyAdd, .keyRevoke, .certificateAdd, .certificateRevoke, .tokenIssue,
            .tokenKill:
            response.token = try registry(request)
        case .devices: response.devices = simulator.deviceNames
        case .deviceCreate: try create(request, &response)
        case .deviceOpen, .deviceBackground, .deviceSuspend, .deviceForceQuit, .deviceKill,
            .deviceReboot, .deviceFetch, .deviceCoverage, .deviceLowPower, .deviceRefresh,
            .deviceAlerts, .deviceCover, .deviceUnlock:
            try live(request)
        case .deviceTap, .deviceDismiss: try respond(request)
        case .devicePlanRefresh:
            let host = try simulator.device(try need(request.device, "device"))
            var isPlanned = false
            let delay = min(request.delayMs ?? 0, DeviceRules.day)
            host.change { device, now in
                isPlanned = device.planRefresh(notBefore: now + delay, now: now)
                return []
            }
            guard isPlanned else { throw Refused(text: "Background App Refresh is off") }
        case .deviceRules:
            let rules = try need(request.rules, "rules")
            if let name = request.device {
                try simulator.device(name).setRules(rules)
            } else {
                simulator.deviceRules = rules
            }
        case .deviceStatus:
            response.status = report(try simulator.device(try need(request.device, "device")))
        case .deviceScreen:
            let host = try simulator.device(try need(request.device, "device"))
            response.screen = host.device.screen
        case .deviceMessages, .deviceConversation, .deviceParticipants, .deviceSend, .deviceRead,
            .deviceChange, .deviceDigest, .deviceForget:
            try use(request, &response)
        case .status: response.simulator = status
        case .checks: response.checks = CheckRow.table
        case .clock:
            var offset = request.offsetMs ?? simulator.clockOffset
            offset = offset.addingReportingOverflow(request.advanceMs ?? 0).partialValue
            guard offset.magnitude <= Self.offsetMax else {
                throw Refused(text: "the clock moves by 100 years at most")
            }
            simulator.setClock(offset: offset)
            response.now = simulator.now.milliseconds
        case .options: simulator.state.options = try need(request.options, "options")
        case .limits: simulator.state.limits = try need(request.limits, "limits")
        case .log: page(request, &response)
        case .counts:
            response.counts = [:]
            for (kind, count) in simulator.log.counts { response.counts?[kind.rawValue] = count }
        case .fault: try fault(request)
        case .events: break
        }
        return response
    }

    var status: SimulatorStatus { simulator.status }

    /// A page of the log; with `kinds` only these, and `next` goes on behind what was looked at.
    private func page(_ request: ControlRequest, _ response: inout ControlResponse) {
        let after = request.after ?? 0
        let limit = min(request.limit ?? 1_000, Self.listMax)
        let (events, lost) = simulator.log.events(
            after: after, limit: request.kinds == nil ? limit : Self.listMax)
        response.next = events.last?.n ?? after
        var page = events
        if let kinds = request.kinds.map({ Set($0) }) {
            let wanted = events.indices.lazy.filter { kinds.contains(events[$0].kind) }
            let chosen = Array(wanted.prefix(max(0, limit)))
            if chosen.count == limit, let last = chosen.last { response.next = events[last].n }
            page = ArraySlice(chosen.map { events[$0] })
        }
        response.events = Array(page)
        if lost > 0 { response.lost = lost }
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
                environment: request.environment, topics: request.topics.map { Set($0) },
                family: request.family)
            try simulator.state.add(key, id: try need(request.kid, "kid"))
        case .keyRevoke: try simulator.state.revokeKey(try need(request.kid, "kid"))
        case .certificateAdd, .certificateRevoke:
            let pem = try need(request.certificate, "certificate")
            let digest = try TLSContext.certificateDigest(pem: Array(pem.utf8))
            if request.cmd == .certificateRevoke {
                try simulator.state.revokeCertificate(digest: digest)
            } else {
                let certificate = try PushCertificate(pem: Array(pem.utf8))
                try simulator.state.add(
                    SimulatorState.Certificate(certificate), digest: digest)
            }
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

    private func respond(_ request: ControlRequest) throws {
        let host = try simulator.device(try need(request.device, "device"))
        let identifier = try need(request.identifier, "identifier")
        guard host.device.screen.contains(where: { $0.identifier == identifier }) else {
            throw Refused(text: "no such notification stands on the screen")
        }
        if request.cmd == .deviceDismiss {
            host.respond(.dismissed(isTold: request.on ?? false), to: identifier)
        } else if let action = request.action {
            host.respond(
                .action(opensApp: request.foreground ?? false), to: identifier, action: action)
        } else {
            host.respond(.opened, to: identifier)
        }
    }

    private func live(_ request: ControlRequest) throws {
        let host = try simulator.device(try need(request.device, "device"))
        switch request.cmd {
        case .deviceOpen: host.change { $0.open(now: $1) }
        case .deviceBackground:
            let time = request.runMs.map { min($0, DeviceRules.day) }
            host.change { $0.background(now: $1, runTime: time) }
        case .deviceSuspend: host.change { $0.suspend(now: $1) }
        case .deviceForceQuit: host.change { $0.forceQuit(now: $1) }
        case .deviceKill: host.kill(at: request.at)
        case .deviceFetch: host.change { $0.refresh(now: $1) }
        case .deviceReboot:
            host.change { $0.reboot(isLocked: request.locked ?? false, now: $1) }
        case .deviceCover: host.change { $0.cover(now: $1) }
        case .deviceUnlock: host.change { $0.unlock(now: $1) }
        default:
            let isOn = try need(request.on, "on")
            switch request.cmd {
            case .deviceCoverage: host.change { $0.setCoverage(isOn, now: $1) }
            case .deviceLowPower: host.change { $0.setLowPower(isOn, now: $1) }
            case .deviceRefresh: host.change { $0.setBackgroundRefresh(isOn, now: $1) }
            default:
                host.change { device, _ in
                    device.setAlertsAllowed(isOn)
                    return []
                }
            }
        }
    }

    private func report(_ host: DeviceHost) -> DeviceReport {
        DeviceReport(
            device: host.name, token: host.token, topic: host.topic,
            environment: host.environment, state: host.device.state,
            coverage: host.device.hasCoverage, lowPower: host.device.phone.isLowPower,
            backgroundRefresh: !host.device.phone.isRefreshOff,
            alertsAllowed: !host.device.phone.areAlertsDenied, locked: host.device.phone.isLocked,
            refreshAt: host.device.phone.refreshAt?.milliseconds, badge: host.device.badge,
            shown: host.device.screen.count, stored: host.device.slot != nil,
            held: host.device.held != nil, app: host.app?.status)
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
            if let position = request.position {
                try app.read(conversation, only: position)
            } else {
                try app.read(conversation, through: try need(request.through, "through"))
            }
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
        let kind = try need(request.fault, "fault")
        let match = FaultScript.Match(
            token: request.token, topic: request.topic, environment: request.environment,
            connection: request.connection, skip: request.skip ?? 0)
        if let fault = try scripted(kind, request) {
            guard simulator.faults.add(fault, count: request.count ?? 1, match: match) else {
                throw Refused(text: "`count` is not positive, or too many faults wait")
            }
            return
        }
        switch kind {
        case .delay: simulator.faults.delay(milliseconds: try need(request.delayMs, "delayMs"))
        case .door: simulator.faults.door = try need(request.door, "door")
        case .refuse: simulator.faults.door = try need(request.on, "on") ? .refused : .open
        case .headerTable: simulator.faults.headerTableBytes = request.bytes
        case .date: simulator.faults.dateSkewMilliseconds = request.skewMs
        case .streams:
            simulator.setStreams(request.environment, try need(request.streams, "streams"))
        case .goaway:
            simulator.goAway(
                request.environment, unprocessed: request.unprocessed ?? 0,
                code: request.code ?? 0, reason: request.reason)
        case .cut: simulator.cutConnections(request.environment)
        default: simulator.faults.clear()
        }
    }

    /// A fault that waits for its pushes. GOAWAY and cut without a `count` are for now.
    private func scripted(
        _ kind: ControlRequest.FaultKind, _ request: ControlRequest
    ) throws -> FaultScript.Fault? {
        switch kind {
        case .answer:
            let status = try need(request.status, "status")
            guard (200...599).contains(status) else {
                throw Refused(text: "`status` must be 200 to 599")
            }
            return .answer(status: status, reason: request.reason ?? "")
        case .shutdown: return .shutdown
        case .silence: return .silence(delivers: request.delivers ?? false)
        case .slow: return .slow(milliseconds: try need(request.delayMs, "delayMs"))
        case .reset: return .reset(code: request.code ?? 0x7)
        case .goaway where request.count != nil:
            return .goAway(
                unprocessed: request.unprocessed ?? 0, code: request.code ?? 0,
                reason: request.reason)
        case .cut where request.count != nil: return .cut
        case .halfClose: return .halfClose
        case .goaway, .cut, .delay, .door, .refuse, .streams, .headerTable, .date, .clear:
            return nil
        }
    }
}

import Feed
import Model
import Wake
import Wire

// What sessions tell beside mutations.
extension PairWorld {
    func told(_ operation: Operation, on thing: Thing?, by party: Int?) -> Plan? {
        let who = actor(operation, on: thing, by: party)
        var named: DeviceID?
        if case .device(let device) = thing { named = device }
        let device = named ?? pick(devices(of: who)) ?? pick(devices) ?? DeviceID(high: 1, low: 1)
        if operation == .open {
            return Plan(
                request: open(device, who), touches: [(.device(device), who), (.user(who), who)])
        }
        if operation == .abandon {
            return Plan(
                request: .abandonSession(
                    AbandonSession(
                        app: World.app, device: device, role: .app,
                        boot: BootID(high: 9, low: 9), connectedAt: 0, expectedWithin: 10_000)),
                touches: [(.device(device), nil)])
        }
        guard let session = session(of: who, on: named) else { return nil }
        if operation == .read { return read(session, who, on: thing) }
        if operation == .readAnnouncement { return readAnnouncement(session, who, on: thing) }
        return Plan(
            request: request(operation, of: session),
            touches: [(.device(session.device), who), (.user(who), who)])
    }

    private func request(_ operation: Operation, of session: SessionKey) -> StoreRequest {
        let cursor = replicas[session.device]?.cursor ?? 0
        switch operation {
        case .sync:
            let epoch = replicas[session.device]?.epoch
            let frame = SyncFrame(
                cursor: epoch.map { Cursor(epoch: $0, seq: cursor) }, applied: cursor)
            return .sync(SyncWrite(session: session, sync: frame, freshEpochHalf: 5))
        case .acknowledge:
            return .acknowledge(
                Acknowledge(session: session, applied: cursor, completesSync: true))
        case .changeState:
            let state = AppState(notifications: pick([.on, .off]) ?? .on)
            return .changeAppState(
                ChangeAppState(session: session, appState: state, dormantAfter: nil))
        case .endSession:
            return .endSession(
                EndSession(session: session, applied: cursor, expectedWithin: 10_000))
        default:
            let hash = (world.fresh() as MessageID).bytes
            return .reauthenticate(
                Reauthenticate(session: session, newTokenHash: hash, dormantAfter: nil))
        }
    }

    func open(_ device: DeviceID, _ who: Int) -> StoreRequest {
        let push = PushRegistration(
            token: device.bytes, environment: .development, topic: "example.chess")
        let number: MessageID = world.fresh()
        return .openSession(
            OpenSession(
                app: World.app, device: device, role: .app, credential: .identity(user(who)),
                newTokenHash: number.bytes, freshEpochHalf: number.low,
                boot: BootID(high: 9, low: 9), push: push))
    }

    private func readAnnouncement(
        _ session: SessionKey, _ who: Int, on thing: Thing?
    ) -> Plan? {
        var id = announcements.last
        if case .announcement(let named) = thing {
            id = named
        } else {
            id = followers[who].unreadAnnouncements.last ?? id
        }
        guard let id else { return nil }
        var receipt = ReadReceipt()
        receipt.announcement = id
        return Plan(
            request: acknowledge(receipt, session),
            touches: [(.announcement(id), who), (.user(who), who)])
    }

    private func read(_ session: SessionKey, _ who: Int, on thing: Thing?) -> Plan? {
        var id = room(thing, of: who)
        if thing?.kind == .user || thing?.kind == .device {
            id = pick(rooms(of: who).filter { !unreadTexts(in: $0, of: who).isEmpty }) ?? id
        }
        var named = text(thing, in: id)
        if thing?.kind != .message, let id {
            named = pick(unreadTexts(in: id, of: who)) ?? named
        }
        guard let named, let place = place[named] ?? id else { return nil }
        let position = message(named)?.position ?? 1
        var receipt = ReadReceipt(conversation: place)
        if chance.next() % 2 == 0 {
            receipt.ranges = [InclusiveRange(first: position, last: position)]
        } else {
            receipt.through = position
        }
        return Plan(
            request: acknowledge(receipt, session),
            touches: [(.message(named), who), (.conversation(place), who), (.user(who), who)])
    }

    private func acknowledge(_ receipt: ReadReceipt, _ session: SessionKey) -> StoreRequest {
        .acknowledge(
            Acknowledge(session: session, applied: 0, reads: [receipt], completesSync: false))
    }

    /// Messages that a receipt of the user would still say something of.
    func unreadTexts(in id: ConversationID, of who: Int) -> [MessageID] {
        texts(in: id).filter { text in
            message(text).map { !followers[who].hasRead($0.position, in: id) } ?? false
        }
    }
}

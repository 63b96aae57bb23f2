import Feed
import Model
import Wake
import Wire

// What a backend asks for in messaging.
extension PairWorld {
    func published(_ operation: Operation, on thing: Thing?, by party: Int?) -> Plan? {
        let app = World.app
        var named = party ?? actor(operation, on: thing, by: nil)
        if case .user(let user) = thing { named = user }
        switch operation {
        case .backendCreate: return created(on: thing)
        case .announce, .scheduleAnnouncement: return announced(operation, on: thing)
        case .takeBack: return takenBack(thing)
        case .cancel: return cancelled(thing)
        case .backendBlock, .backendUnblock: return blocked(operation, by: named)
        case .publish, .publishAs, .schedule: return said(operation, on: thing, named)
        default: break
        }
        let isMembers = [.backendRemove, .backendMute, .backendUnmute].contains(operation)
        guard let id = room(thing, of: isMembers ? named : nil) else { return nil }
        let users = [Self.names[named]]
        let members: [(Thing, Int?)] = [(.conversation(id), named), (.user(named), nil)]
        switch operation {
        case .backendAdd:
            let request = AddParticipants(conversation: id, users: users)
            return Plan(
                request: .addParticipants(app: app, request, idempotency: nil), touches: members)
        case .backendRemove:
            let request = RemoveParticipants(conversation: id, users: users)
            return Plan(
                request: .removeParticipants(app: app, request, idempotency: nil),
                touches: members)
        case .backendMute, .backendUnmute:
            let isMuted = operation == .backendMute
            let mute = MuteChange(
                user(named), id, isMuted: isMuted,
                until: isMuted && chance.next() % 3 == 0 ? later() : nil)
            return Plan(
                request: .mute(app: app, mute, idempotency: nil), touches: members)
        case .backendEnd:
            return Plan(
                request: .deleteConversation(app: app, id, idempotency: nil),
                touches: [(.conversation(id), nil)])
        case .backendMetadata:
            let change = ChangeMetadata(conversation: id, changes: [theme()])
            return Plan(
                request: .changeMetadata(app: app, change, idempotency: nil),
                touches: [(.conversation(id), nil)])
        default:
            guard let text = text(thing, in: id) else { return nil }
            let edit = EditMessage(message: text, parts: content(), push: push())
            return Plan(
                request: operation == .backendEdit
                    ? .editMessage(app: app, edit, idempotency: nil)
                    : .deleteMessage(app: app, text, idempotency: nil),
                touches: [(.message(text), nil), (.conversation(place[text] ?? id), nil)])
        }
    }

    private func said(_ operation: Operation, on thing: Thing?, _ named: Int) -> Plan? {
        let isNamed = operation == .publishAs
        guard let id = room(thing, of: isNamed ? named : nil) else { return nil }
        let text = new(thing)
        let publication = Publication(
            message: SendMessage(
                conversation: id, message: text, parts: content(), push: push()),
            sender: isNamed ? Self.names[named] : "")
        var touches: [(Thing, Int?)] = [
            (.message(text), isNamed ? named : nil), (.conversation(id), isNamed ? named : nil),
        ]
        if isNamed { touches.append((.user(named), nil)) }
        return Plan(
            request: operation == .schedule
                ? .schedules(
                    .add(
                        app: World.app, NewScheduled(.message(publication), sendAt: later()),
                        idempotency: nil))
                : .publish(app: World.app, publication, idempotency: nil),
            touches: touches)
    }

    private func later() -> Timestamp { world.now + 1 + chance.next() % 500 }

    private func created(on thing: Thing?) -> Plan {
        var id: ConversationID = world.fresh()
        if case .conversation(let named) = thing { id = named }
        var users = Array(Self.names.indices.shuffled(using: &chance).prefix(3))
        if case .user(let named) = thing, !users.contains(named) { users.append(named) }
        return Plan(
            request: .createConversation(
                app: World.app,
                CreateConversation(conversation: id, participants: users.map { Self.names[$0] }),
                idempotency: nil),
            touches: [(.conversation(id), nil)] + users.map { (.user($0), nil) })
    }

    private func cancelled(_ thing: Thing?) -> Plan? {
        var named = thing
        var id: MessageID?
        switch thing {
        case .announcement(let known), .message(let known): id = known
        default:
            id = text(thing, in: pick(conversations.suffix(4)))
            named = id.map { .message($0) }
        }
        guard let id, let named else { return nil }
        return Plan(
            request: .schedules(.cancel(app: World.app, id, idempotency: nil)),
            touches: [(named, nil)])
    }

    private func blocked(_ operation: Operation, by named: Int) -> Plan {
        let block = BlockChange(
            user(named), user(anyone(but: named)), isBlocked: operation == .backendBlock)
        return Plan(
            request: .block(app: World.app, block, idempotency: nil),
            touches: [(.user(named), nil)])
    }

    private func takenBack(_ thing: Thing?) -> Plan? {
        var named = pick(announcements.suffix(4))
        if case .announcement(let known) = thing { named = known }
        guard let id = named else { return nil }
        return Plan(
            request: .takeBackAnnouncement(app: World.app, id, idempotency: nil),
            touches: [(.announcement(id), nil)])
    }

    private func announced(_ operation: Operation, on thing: Thing?) -> Plan? {
        var id: MessageID = world.fresh()
        if case .announcement(let named) = thing { id = named }
        var users = Array(Self.names.indices.shuffled(using: &chance).prefix(4))
        if case .user(let named) = thing, !users.contains(named) { users.append(named) }
        let announcement = Announcement(
            announcement: id, users: users.map { Self.names[$0] }, parts: content(), push: push())
        return Plan(
            request: operation == .announce
                ? .announce(app: World.app, announcement, idempotency: nil)
                : .schedules(
                    .add(
                        app: World.app,
                        NewScheduled(.announcement(announcement), sendAt: later()),
                        idempotency: nil)),
            touches: [(.announcement(id), nil)] + users.map { (.user($0), nil) })
    }
}

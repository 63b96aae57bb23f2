import Feed
import Model
import Wake
import Wire

// What users ask for by MUTATE.
extension PairWorld {
    func mutation(_ operation: Operation, on thing: Thing?, by party: Int?) -> Plan? {
        let who = actor(operation, on: thing, by: party)
        var device: DeviceID?
        if case .device(let named) = thing { device = named }
        guard let session = session(of: who, on: device) else { return nil }
        switch operation {
        case .forget:
            return Plan(
                request: mutate(session, .forgetDevice(ForgetDevice())),
                touches: [(.device(session.device), who), (.user(who), who)])
        case .block, .unblock:
            let named = other(than: who, thing)
            let block = BlockUser(user: Self.names[named], blocked: operation == .block)
            return Plan(
                request: mutate(session, .blockUser(block)), touches: [(.user(named), who)])
        case .edit, .delete, .hide: return ofMessage(operation, on: thing, by: who, session)
        default: return inConversation(operation, on: thing, by: who, session)
        }
    }

    /// The user it is about, or any but the one who asks.
    private func other(than who: Int, _ thing: Thing?) -> Int {
        if case .user(let user) = thing, user != who { return user }
        return anyone(but: who)
    }

    private func ofMessage(
        _ operation: Operation, on thing: Thing?, by who: Int, _ session: SessionKey
    ) -> Plan? {
        let author = operation == .hide ? nil : who
        var id = room(thing, of: who)
        if author != nil, thing?.kind == .user {
            id = pick(rooms(of: who).filter { !texts(in: $0, of: who).isEmpty }) ?? id
        }
        guard let message = text(thing, in: id, of: author), let room = place[message] ?? id
        else { return nil }
        let asked: Mutation.Operation =
            operation == .edit
            ? .editMessage(EditMessage(message: message, parts: content(), push: push()))
            : .deleteMessage(DeleteMessage(message: message, forEveryone: operation == .delete))
        return Plan(
            request: mutate(session, asked),
            touches: [(.message(message), who), (.conversation(room), who), (.user(who), who)])
    }

    private func inConversation(
        _ operation: Operation, on thing: Thing?, by who: Int, _ session: SessionKey
    ) -> Plan? {
        var id = room(thing, of: operation == .create ? nil : who)
        if operation == .end, thing?.kind != .conversation {
            id = pick(rooms(of: who, madeBy: who)) ?? id
        }
        if operation == .create, thing?.kind != .conversation { id = world.fresh() }
        guard let id else { return nil }
        var touches: [(Thing, Int?)] = [(.conversation(id), who)]
        if operation.roles[.user] == .own { touches.append((.user(who), who)) }
        let asked: Mutation.Operation
        switch operation {
        case .create:
            let others = Self.names.indices.filter { $0 != who }.shuffled(using: &chance)
            let users = others.prefix(Int(chance.next() % 4)).map { Self.names[$0] }
            asked = .createConversation(CreateConversation(conversation: id, participants: users))
        case .add, .remove:
            let named = whom(operation, on: thing, in: id, by: who)
            let users = [Self.names[named]]
            asked =
                operation == .add
                ? .addParticipants(AddParticipants(conversation: id, users: users))
                : .removeParticipants(RemoveParticipants(conversation: id, users: users))
            touches.append((.user(named), who))
        case .leave:
            asked = .removeParticipants(
                RemoveParticipants(conversation: id, users: [Self.names[who]]))
        case .send:
            let message = new(thing)
            asked = .sendMessage(
                SendMessage(conversation: id, message: message, parts: content(), push: push()))
            touches += [(.message(message), who), (.device(session.device), who)]
        case .end, .clear:
            asked = .deleteConversation(
                DeleteConversation(conversation: id, forEveryone: operation == .end))
        case .setMetadata:
            asked = .changeMetadata(ChangeMetadata(conversation: id, changes: [theme()]))
        default:
            let isMuted = operation == .mute
            let time: UInt64 = isMuted && chance.next() % 3 == 0 ? 2_000 : 0
            asked = .muteConversation(
                MuteConversation(conversation: id, muted: isMuted, forMs: time))
        }
        return Plan(request: mutate(session, asked), touches: touches)
    }

    /// Whom to add or remove: who is it about, or somebody with whom it has an effect.
    private func whom(
        _ operation: Operation, on thing: Thing?, in id: ConversationID, by who: Int
    ) -> Int {
        if thing?.kind == .user { return other(than: who, thing) }
        let here = present(id)
        let suits = Self.names.indices.filter {
            $0 != who && here.contains($0) == (operation == .remove)
        }
        return pick(suits) ?? anyone(but: who)
    }
}

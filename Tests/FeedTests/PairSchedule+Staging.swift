import Feed
import Model
import Wire

// Each pair is brought about on purpose: an object that both operations can be about, and
// somebody whose doing each of them can be.
extension PairSchedule {
    func bringAbout(_ pair: OperationPair) throws {
        if pair.kind == .store { return try bringAboutTurns(pair) }
        guard let thing = try object(for: pair) else { return }
        var first = try suitable(pair.first, thing)
        if pair.relation == .sameUser, pair.first == .backendAdd,
            [.edit, .delete, .end].contains(pair.second)
        {
            // Who has said something, or made the conversation, takes part already.
            first = try suitable(pair.second, thing) ?? first
        }
        if let first { try logIn(first) }
        var second = try suitable(pair.second, thing)
        if pair.relation == .sameUser {
            second = first
        } else if pair.relation == .otherUser {
            if second == first || second == nil { second = state.anyone(but: first) }
            if let second { try logIn(second) }
        } else if let second {
            try logIn(second)
        }
        guard try perform(pair.first, on: thing, by: first) else { return }
        try between(pair)
        if pair.relation != .sameUser, second != nil, let other = try suitable(pair.second, thing),
            pair.relation == .none || other != first
        {
            second = other
        }
        try perform(pair.second, on: thing, by: second)
    }

    /// Somebody who is to ask for something has a session.
    private func logIn(_ who: Int) throws {
        let own = state.devices(of: who)
        let isIn = own.contains { device in
            state.sessions[device].map { $0.user == state.user(who) && state.isOpen($0) } ?? false
        }
        if !isIn, let device = own.first { try perform(.open, on: .device(device), by: who) }
    }

    private func bringAboutTurns(_ pair: OperationPair) throws {
        let both = [pair.first, pair.second]
        if both.contains(.finishPush), state.jobs.count < 2 {
            for device in state.devices {
                try perform(.endSession, on: .device(device), by: state.owner[device])
            }
            state.world.pass(15_000)
            try perform(.sweepWakes)
            for _ in 0..<2 { try perform(.announce) }
            try finishFanOut()
            state.world.pass(61_000)
            try perform(.claimPushes)
        }
        let deliveries = both.count { $0 == .finishDelivery }
        if state.deliveries.count < deliveries {
            for _ in 0..<6 where state.deliveries.count < deliveries {
                try perform(.backendCreate)
                state.world.pass(4_000_000)
                try perform(.claimDeliveries)
            }
        }
        try perform(pair.first)
        try perform(pair.second)
    }

    // MARK: objects

    /// Something that both operations can be about: often one that is new.
    private func object(for pair: OperationPair) throws -> Thing? {
        switch pair.kind {
        case .message: return try text(for: pair)
        case .announcement: return try announcement(for: pair)
        case .conversation:
            if [.create, .backendCreate].contains(pair.first) {
                return .conversation(state.world.fresh())
            }
            return .conversation(try room())
        case .user:
            let who = state.anyone()
            for operation in [pair.first, pair.second] { try provide(for: operation, of: who) }
            return .user(who)
        case .device: return state.pick(state.devices).map { .device($0) }
        case .app:
            let some: [Operation] = [
                .putIssuerKey, .putAPIKey, .putCredential, .createWebhook, .createCampaign,
            ]
            for operation in some where operation.isNeeded(by: pair) {
                for _ in 0..<3 { try perform(operation, on: .app(PairWorld.side)) }
            }
            return .app(PairWorld.side)
        case .store: return nil
        }
    }

    /// What a user needs to do it with: a conversation, an own message, one that is not read.
    private func provide(for operation: Operation, of who: Int) throws {
        switch operation {
        case .send, .leave, .setMetadata, .clear, .mute, .unmute, .add, .remove, .publishAs,
            .backendRemove, .backendMute, .backendUnmute:
            if state.rooms(of: who).count < 2 { try newRoom(madeBy: who) }
        case .end:
            for _ in 0..<2 where state.rooms(of: who, madeBy: who).count < 2 {
                try newRoom(madeBy: who)
            }
        case .edit, .delete, .hide:
            let rooms = state.rooms(of: who)
            if rooms.count { !state.texts(in: $0, of: who).isEmpty } < 2 {
                let room = try state.pick(rooms) ?? newRoom(madeBy: who)
                try logIn(who)
                try perform(.send, on: .conversation(room), by: who)
            }
        case .read:
            let rooms = state.rooms(of: who)
            if rooms.allSatisfy({ state.unreadTexts(in: $0, of: who).isEmpty }) {
                let room = try state.pick(rooms) ?? newRoom(madeBy: who)
                for _ in 0..<2 { try perform(.publish, on: .conversation(room)) }
            }
        case .readAnnouncement:
            guard state.followers[who].unreadAnnouncements.count < 2 else { break }
            for _ in 0..<2 { try perform(.announce, on: .user(who)) }
            try finishFanOut()
        default: break
        }
    }

    private func text(for pair: OperationPair) throws -> Thing? {
        let thing = Thing.message(state.world.fresh())
        let isCancelled = pair.first == .cancel || pair.second == .cancel
        if isCancelled, pair.first != .schedule { try perform(.schedule, on: thing) }
        if pair.first.makesMessages { return thing }
        if pair.first == .cancel, pair.second.makesMessages || pair.second == .cancel {
            return thing
        }
        let known = state.pick(state.messages.suffix(12))
        if !isCancelled, let known, state.chance.next() % 3 == 0 { return .message(known) }
        guard case .message(let id) = thing else { return nil }
        let room = try state.place[id] ?? room()
        state.place[id] = room
        let author = state.pick(state.present(room)) ?? 0
        try perform(.publishAs, on: thing, by: author)
        return thing
    }

    private func announcement(for pair: OperationPair) throws -> Thing? {
        let thing = Thing.announcement(state.world.fresh())
        let isCancelled = pair.first == .cancel || pair.second == .cancel
        if isCancelled, pair.first != .scheduleAnnouncement {
            try perform(.scheduleAnnouncement, on: thing)
        }
        let makes: [Operation] = [.announce, .scheduleAnnouncement]
        if makes.contains(pair.first) { return thing }
        if pair.first == .cancel, makes.contains(pair.second) || pair.second == .cancel {
            return thing
        }
        try perform(.announce, on: thing)
        try finishFanOut()
        return thing
    }

    private func room() throws -> ConversationID {
        let known = state.conversations.suffix(6).filter {
            state.conversation($0)?.deletedAt == nil && !state.present($0).isEmpty
        }
        if state.chance.next() % 3 > 0, let room = state.pick(known) { return room }
        return try newRoom(madeBy: state.anyone())
    }

    /// Makes a conversation of any size up to everybody, with messages that most have not read;
    /// sometimes with somebody who was removed and came back, sometimes with changes on their way.
    @discardableResult
    private func newRoom(madeBy who: Int) throws -> ConversationID {
        let id: ConversationID = state.world.fresh()
        try logIn(who)
        try perform(.create, on: .conversation(id), by: who)
        for _ in 0..<state.chance.next() % 3 { try perform(.add, on: .conversation(id), by: who) }
        for _ in 0..<2 {
            try perform(.publishAs, on: .conversation(id), by: state.pick(state.present(id)))
        }
        if state.chance.next() % 3 > 0 { try perform(.continueFanOut) }
        if state.chance.next() % 4 == 0,
            let other = state.pick(state.present(id).filter { $0 != who })
        {
            try perform(.backendRemove, on: .conversation(id), by: other)
            try perform(.backendAdd, on: .conversation(id), by: other)
        }
        return id
    }

    // MARK: users

    /// Somebody whose the operation on the object can be.
    private func suitable(_ operation: Operation, _ thing: Thing) throws -> Int? {
        guard operation.roles[thing.kind] != .nobody else { return nil }
        switch thing {
        case .user(let who):
            return operation.roles[.user] == .own ? who : state.anyone(but: who)
        case .device(let device): return state.owner[device]
        case .conversation(let id): return try suitable(operation, in: id)
        case .message(let id):
            if [.edit, .delete].contains(operation) {
                return state.message(id).flatMap { state.who(UserID($0.sender)) }
            }
            let room = state.place[id] ?? state.conversations.last
            return room.flatMap { state.pick(state.present($0)) }
        case .announcement(let id):
            let told = PairWorld.names.indices.filter {
                state.followers[$0].replica.holds(announcement: id)
            }
            return state.pick(told) ?? state.anyone()
        case .app: return state.anyone()
        }
    }

    private func suitable(_ operation: Operation, in id: ConversationID) throws -> Int? {
        let here = state.present(id)
        switch operation {
        case .end:
            return state.conversation(id).flatMap { state.who(UserID($0.creator)) }
        case .backendAdd:
            return state.pick(PairWorld.names.indices.filter { !here.contains($0) })
        case .edit, .delete:
            return state.pick(here.filter { !state.texts(in: id, of: $0).isEmpty })
        case .read:
            return state.pick(here.filter { !state.unreadTexts(in: id, of: $0).isEmpty })
        default: return state.pick(here) ?? state.anyone()
        }
    }
}

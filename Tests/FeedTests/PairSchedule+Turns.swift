import Feed
import Model
import Wire

// What happens between operations, and at the end of a schedule.
extension PairSchedule {
    /// What the second operation needs to have happened meanwhile, or anything.
    func between(_ pair: OperationPair) throws {
        let isScheduled = [.schedule, .scheduleAnnouncement].contains(pair.first)
        if isScheduled, !pair.second.makesMessages, pair.second != .cancel {
            state.world.pass(600)
            try perform(.publishDue)
        } else if pair.first == .deleteUser, state.chance.next() % 2 == 0 {
            try finishDeletions()
        } else if state.chance.next() % 3 == 0 {
            try perform(turn())
        }
        if pair.second == .readAnnouncement { try finishFanOut() }
        // What is deleted for oneself is not in it, and comes whole when it comes back (HIS-16).
        guard finding == nil, pair.first == .clear || state.chance.next() % 8 == 0 else { return }
        if let device = state.pick(state.devices) { try state.takeSnapshot(on: device) }
    }

    func turn() -> Operation {
        state.pick(Operation.turns.filter { $0 != .restore }) ?? .continueFanOut
    }

    func finishFanOut() throws {
        for _ in 0..<40 where finding == nil {
            try perform(.continueFanOut)
            guard state.moving.isEmpty, try state.world.all(AnnouncementBatchRecord.self).isEmpty
            else { continue }
            return
        }
    }

    private func finishDeletions() throws {
        for _ in 0..<60 where finding == nil {
            try perform(.continueFanOut)
            try perform(.continueDeletions)
            if try state.world.all(UserDeletionRecord.self).isEmpty { return }
        }
    }

    /// What most of a day consists of.
    static let common: [Operation] = [
        .send, .send, .publishAs, .publish, .read, .read, .add, .backendAdd, .remove, .leave,
        .edit, .delete, .hide, .clear, .mute, .unmute, .block, .unblock, .setMetadata,
        .acknowledge, .sync, .announce, .readAnnouncement, .takeBack, .backendMute,
        .backendUnmute, .backendBlock, .backendUnblock,
    ]

    func something() throws {
        try perform(state.pick(Self.common) ?? .send)
        try perform(turn())
        state.world.pass(Milliseconds(state.chance.next() % 900))
        for device in state.devices where finding == nil && state.chance.next() % 8 == 0 {
            guard let who = state.owner[device], var replica = state.replicas[device] else {
                continue
            }
            try state.follow(&replica, who, pages: 2)
            state.replicas[device] = replica
            if state.chance.next() % 8 == 0 { try state.takeSnapshot(on: device) }
        }
        switch state.chance.next() % 100 {
        case 0...1: state.world.pass(31 * 86_400_000)
        case 2...3: state.world.pass(92 * 86_400_000)
        case 4...5: try rest()
        default: break
        }
    }

    /// Apps and users are let in, and most devices are logged in.
    func settle() throws {
        for app in [World.app, PairWorld.side] {
            if try state.world.record(AppRecord.self, [.app(app)]) == nil {
                for _ in 0..<20 { try perform(.enforceRetention) }
                try perform(.putApp, on: .app(app))
            }
        }
        if state.isAppSuspended { try perform(.resumeApp, on: .app(World.app)) }
        for who in PairWorld.names.indices {
            let row = try state.userRow(who)
            if row?.deletingSince != nil { try finishDeletions() }
            if row?.isSuspended == true { try perform(.resumeUser, on: .user(who)) }
        }
        for device in state.devices where state.chance.next() % 4 == 0 {
            if state.sessions[device].map({ !state.isOpen($0) }) ?? true {
                try perform(.open, on: .device(device), by: state.owner[device])
            }
        }
    }

    // MARK: rest

    /// Everything on its way has come.
    private func drain() throws {
        for _ in 0..<300 where finding == nil {
            let answer = try state.world.ask(.continueFanOut(recipients: 50))
            state.world.pass(2_100)
            let receipts = try state.world.ask(.coalesceReceipts(users: 100))
            let done = StoreAnswer.progressed(count: 0, more: false)
            if answer == done, receipts == done { break }
        }
        if finding == nil { finding = try state.finding() }
    }

    /// Nothing is on its way, and late devices are compared.
    private func rest() throws {
        try drain()
        if finding == nil { finding = try state.lateFinding() }
    }

    func comeToRest() throws {
        if state.chance.next() % 4 == 0 { try rest() } else { try drain() }
        for _ in 0..<4 where finding == nil { try perform(.enforceRetention) }
        guard finding == nil else { return }
        try state.world.retain()
        finding = try state.finding() ?? state.lateFinding() ?? state.damageFinding()
    }
}

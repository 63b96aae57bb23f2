import Feed
import Model
import Wire

// What a device asks.
extension StoreBench {
    func driveSession(_ kind: BenchKind) throws {
        switch kind {
        case .open, .tokenChange:
            try repeated { index in
                let push = kind == .tokenChange ? world.registration() : nil
                return [
                    .openSession(
                        try world.reopening(&stock.pairs[turn(index)].second, push: push))
                ]
            } after: { index, answer in
                guard case .opened(let opened) = answer else { return }
                stock.pairs[turn(index)].second.session = opened.session
            }
        case .sync:
            try repeated { index in
                let phone = pair(index).second
                let head = try world.head(of: phone)
                let sync = SyncFrame(
                    cursor: Cursor(epoch: phone.epoch, seq: head), applied: head,
                    mode: .advance, reason: .syncRequest)
                return [
                    .sync(SyncWrite(session: phone.session, sync: sync, freshEpochHalf: 1))
                ]
            }
        case .appState:
            try repeated { index in
                let isLeaving = index / stock.pairs.count % 2 == 0
                let state = AppState(
                    phase: isLeaving ? .background : .foreground, remainingMs: 25_000)
                return [
                    .changeAppState(
                        ChangeAppState(
                            session: pair(index).second.session, appState: state,
                            dormantAfter: isLeaving ? 20_000 : nil))
                ]
            }
        case .reauthenticate:
            try repeated { index in
                stock.pairs[turn(index)].second.tokenHash = world.bytes(32)
                let phone = pair(index).second
                return [
                    .reauthenticate(
                        Reauthenticate(
                            session: phone.session, newTokenHash: phone.tokenHash,
                            dormantAfter: nil))
                ]
            }
        case .endSession, .abandonSession: try driveEnds(kind)
        case .acknowledgeRanges, .readRanges: try driveRanges(kind)
        default: try driveReading(kind)
        }
    }

    private func driveEnds(_ kind: BenchKind) throws {
        try repeated { index in
            let phone = pair(index).second
            let head = try world.head(of: phone)
            return [
                kind == .endSession
                    ? .endSession(
                        EndSession(
                            session: phone.session, applied: head, expectedWithin: 10_000))
                    : .abandonSession(
                        AbandonSession(
                            app: phone.app, device: phone.session.device, role: .app,
                            boot: world.boot, connectedAt: 0, expectedWithin: 10_000))
            ]
        } after: { index, _ in
            try world.reopen(&stock.pairs[turn(index)].second)
        }
    }

    /// Reads or acknowledges messages that came to a pair meanwhile; their publishing is not
    /// measured.
    private func driveReading(_ kind: BenchKind) throws {
        try repeated { index in
            let count = kind == .acknowledge ? 16 : 4
            let answers = try world.ask(
                (0..<count).map { _ in world.publishing(in: pair(index)) })
            guard case .published(let newest) = answers.last else { return [] }
            let phone = pair(index).second
            let reads =
                kind == .read
                ? [ReadReceipt(conversation: newest.conversation, through: newest.position)] : []
            return [
                .acknowledge(
                    Acknowledge(
                        session: phone.session, applied: try world.head(of: phone),
                        reads: reads, completesSync: true))
            ]
        }
    }

    /// As many ranges as one request may name, each time others.
    private func driveRanges(_ kind: BenchKind) throws {
        guard let reader = stock.reader else { throw BenchError("no reader") }
        let most = 256
        let wide = max(2, (scale.entries - most) / most)
        let phone = reader.second
        try repeated(max(2, scale.requests / 20)) { index in
            let ranges = (0..<most).map { number in
                let first = UInt64(number * wide + 1 + index % (wide / 2))
                return InclusiveRange(first: first + 1, last: first + UInt64(wide / 2))
            }
            let told =
                kind == .acknowledgeRanges
                ? Acknowledge(
                    session: phone.session, applied: 0, ranges: ranges, completesSync: false)
                : Acknowledge(
                    session: phone.session, applied: 0,
                    reads: [ReadReceipt(conversation: reader.conversation, ranges: ranges)],
                    completesSync: false)
            return [.acknowledge(told)]
        }
    }

    // MARK: MUTATE

    func driveMutation(_ kind: BenchKind) throws {
        let needsMessage = [.mutateEdit, .mutateDelete, .mutateHide].contains(kind)
        let ids = needsMessage ? try published(scale.requests) : []
        try repeated { index in
            // Logging out takes a device of its own.
            if kind == .forget {
                var phone = try world.login(BenchWorld.app, pair(index).first.user.name)
                return [world.mutation(&phone, .forgetDevice(ForgetDevice()))]
            }
            let operation = try operation(kind, index, ids)
            return [world.mutation(&stock.pairs[turn(index)].first, operation)]
        }
    }

    private func operation(
        _ kind: BenchKind, _ index: Int, _ ids: [MessageID]
    ) throws -> Mutation.Operation {
        let pair = pair(index)
        switch kind {
        case .mutateSend: return .sendMessage(world.message(to: pair.conversation))
        case .mutateEdit: return .editMessage(edit(ids[index]))
        case .mutateDelete:
            return .deleteMessage(DeleteMessage(message: ids[index], forEveryone: true))
        case .mutateHide: return .deleteMessage(DeleteMessage(message: ids[index]))
        case .mutateCreate:
            return .createConversation(
                CreateConversation(
                    conversation: world.fresh(), participants: [pair.second.user.name]))
        case .mutateAdd:
            let guest: MessageID = world.fresh()
            return .addParticipants(
                AddParticipants(conversation: try room(index), users: ["guest-\(guest)"]))
        case .mutateRemove:
            let guest: MessageID = world.fresh()
            let room = try room(index)
            let users = ["guest-\(guest)"]
            try world.ask(
                .addParticipants(
                    app: BenchWorld.app, AddParticipants(conversation: room, users: users),
                    idempotency: nil))
            return .removeParticipants(RemoveParticipants(conversation: room, users: users))
        case .mutateClear:
            // A message brings back what was cleared before.
            try world.ask(world.publishing(in: pair))
            return .deleteConversation(DeleteConversation(conversation: pair.conversation))
        case .mutateEnd: return try endOfOwn(index)
        case .mutateMetadata: return .changeMetadata(topic(try room(index), index))
        case .mute:
            return .muteConversation(
                MuteConversation(
                    conversation: pair.conversation,
                    muted: index / stock.pairs.count % 2 == 0))
        case .block:
            let other: MessageID = world.fresh()
            return .blockUser(BlockUser(user: "other-\(other)", blocked: true))
        default: preconditionFailure("\(kind) is driven elsewhere")
        }
    }

    /// Only who made a conversation ends it for everyone.
    private func endOfOwn(_ index: Int) throws -> Mutation.Operation {
        let id: ConversationID = world.fresh()
        let make = CreateConversation(
            conversation: id, participants: [pair(index).second.user.name])
        try world.ask(
            world.mutation(&stock.pairs[turn(index)].first, .createConversation(make)))
        return .deleteConversation(DeleteConversation(conversation: id, forEveryone: true))
    }

    // MARK: Pages

    /// One page after the other, as the reader answers them.
    func drivePages(behind: Int) throws {
        let reader = try writer.store.reader()
        defer { reader.close() }
        for index in 0..<(behind == 1 ? scale.requests : max(2, scale.requests / 100)) {
            var after: UInt64
            let phone: BenchPhone
            if behind == 1 {
                phone = pair(index).second
                after = try world.head(of: phone)
                try world.ask(world.publishing(in: pair(index)))
            } else {
                guard let far = stock.reader else { throw BenchError("no reader") }
                phone = far.second
                let head = try world.head(of: phone)
                after = head - min(head, UInt64(behind))
            }
            var more = true
            while more {
                let page = try page(of: phone, after: after, from: reader)
                (after, more) = (page.to, page.more)
            }
        }
    }

    private func page(
        of phone: BenchPhone, after: UInt64, from reader: any StoreReader
    ) throws -> Page {
        let query = PageQuery(
            app: phone.app, user: phone.user, device: phone.session.device, after: after,
            bytes: 64 << 10, session: phone.session)
        var reading = StoreReading.nothing
        var sample = BenchSample()
        let processor = BenchClock.processor()
        let begun = BenchClock.monotonic()
        try reader.read { snapshot throws(StoreError) in
            let counted = CountedRows(snapshot)
            reading = try Rules.read(.page(query), in: counted, now: writer.store.now())
            sample.rows = RowCount(read: counted.rows)
        }
        sample.held = BenchClock.monotonic() - begun
        sample.processor = BenchClock.processor() - processor
        guard case .page(let page) = reading, !page.entries.isEmpty else {
            throw BenchError("no page with entries after \(after) of \(phone.user): \(reading)")
        }
        note(sample)
        return page
    }
}

/// A snapshot, and how many rows were looked for or found in it.
private final class CountedRows: StoreSnapshot {
    private let inner: any StoreSnapshot
    private(set) var rows = 0

    init(_ inner: any StoreSnapshot) { self.inner = inner }

    func row(
        _ table: Table, key: [ColumnValue], lock: RowLock
    ) throws(StoreError) -> [ColumnValue]? {
        rows += 1
        return try inner.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let found = try inner.rows(table, scan)
        rows += max(1, found.count)
        return found
    }
}

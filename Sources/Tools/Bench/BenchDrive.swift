import Feed
import Model
import Wire

extension StoreBench {
    func carryOut(_ kind: BenchKind, run: Int) throws {
        switch kind {
        case .publish, .publishHundred, .publishAsleep, .edit, .delete, .create, .add, .remove,
            .end, .metadata, .announce, .announceThousand, .schedule, .webhook, .campaign, .tag:
            try driveBackend(kind, run: run)
        case .open, .tokenChange, .sync, .acknowledge, .acknowledgeRanges, .read, .readRanges,
            .appState, .reauthenticate, .endSession, .abandonSession:
            try driveSession(kind)
        case .mutateSend, .mutateEdit, .mutateDelete, .mutateHide, .mutateCreate, .mutateAdd,
            .mutateRemove, .mutateClear, .mutateEnd, .mutateMetadata, .mute, .block, .forget:
            try driveMutation(kind)
        case .page: try drivePages(behind: 1)
        case .pageThousand: try drivePages(behind: 1_000)
        case .pageTenThousand: try drivePages(behind: 10_000)
        case .receipts, .pushes, .providerToken, .alive, .administer, .removeDevice, .revoke,
            .suspendUser:
            try driveOperation(kind, run: run)
        case .groupPublish, .groupEdit, .groupRemove, .groupEnd, .suspendApp, .removeApp, .start,
            .expire, .groupAsleep, .deleteUser, .retention:
            try driveCrowd(kind, run: run)
        }
    }

    /// The place of a pair that each request takes in turn.
    func turn(_ index: Int) -> Int { index % stock.pairs.count }

    func pair(_ index: Int) -> BenchPair { stock.pairs[turn(index)] }

    /// A conversation of eight, of which the pair's first is one.
    func room(_ index: Int) throws -> ConversationID {
        if let room = pair(index).room { return room }
        let others = (1..<8).map { UserID("room-\(turn(index))-\($0)") }
        let room = try world.converse(BenchWorld.app, [pair(index).first.user] + others)
        stock.pairs[turn(index)].room = room
        return room
    }

    /// A fresh message of each pair's first, unmeasured: one for each request.
    func published(_ count: Int) throws -> [MessageID] {
        var made: [MessageID] = []
        for first in stride(from: 0, to: count, by: 100) {
            let numbers = first..<min(first + 100, count)
            let ids: [MessageID] = numbers.map { _ in world.fresh() }
            _ = try world.ask(zip(numbers, ids).map { world.publishing(in: pair($0), $1) })
            made += ids
        }
        try settle("fan-out")
        return made
    }

    func idempotency() -> Idempotency {
        let key: MessageID = world.fresh()
        return Idempotency(key: key.description, requestHash: world.bytes(32))
    }

    func edit(_ id: MessageID) -> EditMessage {
        EditMessage(
            message: id, parts: [Part(mimeType: "text/plain", content: world.bytes(100))],
            push: PushText(title: "Anna", body: "I shall be there at ten, wait for me"))
    }

    func topic(_ room: ConversationID, _ value: Int) -> ChangeMetadata {
        ChangeMetadata(
            conversation: room, changes: [MetadataChange(path: ["topic"], value: "no. \(value)")])
    }
}

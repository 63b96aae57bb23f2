import Feed
import Model
import Wire

// Much at once: the request, and the turns in the background that follow.
extension StoreBench {
    func driveCrowd(_ kind: BenchKind, run: Int) throws {
        switch kind {
        case .groupPublish:
            try publish(to: run, isMeasured: true)
            try turns("fan-out")
        case .groupEdit:
            if stock.groups[run].message == nil {
                try publish(to: run, isMeasured: false)
                try settle("fan-out")
            }
            guard let message = stock.groups[run].message else { return }
            try measure([
                .editMessage(app: Self.crowd, edit(message), idempotency: idempotency())
            ])
            try turns("fan-out")
        case .groupRemove:
            let group = stock.groups[run]
            let leaving = group.members.suffix(min(256, group.members.count / 4))
            let request = RemoveParticipants(
                conversation: group.conversation, users: leaving.map(\.name))
            try measure([
                .removeParticipants(app: Self.crowd, request, idempotency: idempotency())
            ])
            try turns("fan-out")
        case .groupEnd:
            let end = StoreRequest.deleteConversation(
                app: Self.crowd, stock.groups[run].conversation, idempotency: idempotency())
            try measure([end])
            try turns("fan-out")
            try turns("retention")
        case .groupAsleep:
            try expire()
            try publish(to: stock.groups.count - 1, isMeasured: true)
            try turns("fan-out")
        default: try driveMany(kind, run: run)
        }
    }

    private func driveMany(_ kind: BenchKind, run: Int) throws {
        switch kind {
        case .suspendApp:
            try measure([.administer(.suspendApp(stock.appsToSuspend[run]))])
            try turns("sessions")
        case .removeApp:
            try measure([.administer(.removeApp(stock.appsToRemove[run]))])
            try turns("sessions")
            try turns("retention")
        case .start:
            stock.hasStarted = true
            try measure([.start(boot: world.nextBoot(), epochHalf: 77)])
            try turns("sessions")
        case .expire:
            try start()
            stock.hasExpired = true
            try world.pass(11_000)
            try turns("sessions")
        case .deleteUser: try driveDeletion()
        case .retention:
            writer.store.ahead += 25 * 3_600_000
            try turns("retention")
        default: preconditionFailure("\(kind) is driven elsewhere")
        }
    }

    private func publish(to group: Int, isMeasured: Bool) throws {
        let group = (place: group, stock.groups[group])
        let message = world.message(to: group.1.conversation)
        let request = world.publishing(message, Self.crowd, from: group.1.members[0].name)
        if isMeasured { try measure([request]) } else { try world.ask(request) }
        stock.groups[group.place].message = message.message
    }

    /// What `start` and `expire` leave, where they are not driven.
    private func start() throws {
        guard !stock.hasStarted else { return }
        stock.hasStarted = true
        try world.ask(.start(boot: world.nextBoot(), epochHalf: 77))
        try settle("sessions")
    }

    private func expire() throws {
        try start()
        guard !stock.hasExpired else { return }
        stock.hasExpired = true
        try world.pass(11_000)
        try settle("sessions")
    }

    /// Until the user is gone. It waits for changes that are on their way into others' feeds.
    private func driveDeletion() throws {
        let key: [ColumnValue] = [.app(BenchWorld.app), .user(Self.author)]
        try measure([.deleteUser(app: BenchWorld.app, Self.author, idempotency: idempotency())])
        while try writer.read({ snapshot throws(StoreError) in
            try snapshot.record(UserDeletionRecord.self, key) != nil
        }) {
            guard try turns("deletions") else { return }
            try settle("fan-out")
        }
    }
}

import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

// What people, backends and administrators do, and what the messages are to each of them.

extension WakeModel {
    /// The sender of most messages, who changes them, too.
    func meetAnna() throws {
        _ = try annaSession()
    }

    private func annaSession() throws -> SessionKey {
        let answer = try ask(
            .openSession(
                OpenSession(
                    app: World.app, device: DeviceID(high: 3, low: 1), role: .app,
                    credential: .identity(Self.anna), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: boot)))
        guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
        return opened.session
    }

    func livePeople() throws {
        if chance(0.05) { try publish() }
        if chance(isBusy ? 0.06 : 0.012) { try edit() }
        if chance(0.012) { try delete() }
        if chance(0.002) { try announceCampaign() }
        if suspended.isEmpty, chance(0.003) {
            try suspend(Self.people[1 + Int(random.below(2))])
        } else if let user = suspended.first, chance(0.02) {
            try resume(user)
        }
        if !campaigns.isEmpty { try pushes.advanceCampaigns() }
        if chance(0.3) { try coalesceReceipts() }
    }

    func publish() throws {
        let room = rooms[Int(random.below(3))]
        let sender = chance(0.2) ? Self.people[1] : chance(0.1) ? Self.people[2] : Self.anna
        guard members[room]?.contains(sender) ?? false else { return }
        let message: MessageID = world.fresh()
        let text = chance(0.1) ? "" : "m\(order.count) v1"
        var options = PushOptions()
        if chance(0.15) {
            options.urgency = .urgent
        } else if chance(0.15) {
            options.urgency = .passive
        }
        var moment: Timestamp?
        if options.urgency != .passive, chance(0.15) {
            moment = now + random.below(240_000)
            options.timing = AlertTiming(moment: moment.map { .at($0) })
            count("timed")
        }
        let answer = try ask(
            .publish(
                app: World.app,
                Publication(
                    message: world.message0("text", to: room, message, push: text),
                    sender: sender.name, options: options), idempotency: nil))
        guard case .published = answer else { return fail("publish: \(answer)") }
        position[room, default: 0] += 1
        said[message] = Said(
            id: message, room: room, position: position[room] ?? 0, sender: sender,
            urgency: options.urgency, moment: moment, setsBack: setsBack, at: time,
            jumpsThen: jumpCount, text: text, isSilenced: text.isEmpty)
        order.append(message)
        try place(message)
        if moment != nil {
            for index in phones.indices where counts(message, for: phones[index].user) {
                if try device(index)?.pushToken != nil { phones[index].timed.insert(message) }
            }
        }
        count("publish")
        count("\(options.urgency)")
    }

    /// A change of a message is the newest entry of each feed that holds it.
    private func place(_ message: MessageID) throws {
        for user in members[said[message]?.room ?? rooms[0]] ?? [] {
            seqs[user, default: [:]][message] = try pushes.head(user.name)
        }
    }

    private func someMessage() -> Said? {
        let alive = order.suffix(12).compactMap { said[$0] }.filter { !$0.isDeleted }
        return alive.isEmpty ? nil : alive[Int(random.below(UInt64(alive.count)))]
    }

    private func edit() throws {
        // What never had a text alerts nobody, and no icon is told that it has one now.
        guard var message = someMessage(), !message.text.isEmpty else { return }
        let text = chance(0.15) ? "" : "\(message.text.prefix { $0 != " " }) v\(order.count)x"
        let content = EditMessage(
            message: message.id, parts: [Part(mimeType: "text/plain", content: [65])],
            push: PushText(title: "", body: text), baseVersion: 0)
        if message.sender == Self.anna, chance(0.5) {
            try mutate(.editMessage(content))
            count("edit by its sender")
        } else {
            let answer = try ask(
                .editMessage(app: World.app, content, idempotency: nil))
            if answer.refusal != nil { fail("edit: \(answer)") }
            count("edit by the backend")
        }
        message.text = text
        if text.isEmpty { message.isSilenced = true }
        said[message.id] = message
        try place(message.id)
        // Without a token nothing remembers that the device has it at its older place.
        for index in phones.indices where try device(index)?.pushToken == nil {
            forgetMoved(index)
        }
    }

    private func delete() throws {
        guard var message = someMessage() else { return }
        if message.sender == Self.anna, chance(0.5) {
            try mutate(.deleteMessage(DeleteMessage(message: message.id, forEveryone: true)))
            count("deletion")
            count("deletion by its sender")
        } else {
            let answer = try ask(
                .deleteMessage(app: World.app, message.id, idempotency: nil))
            if answer.refusal != nil { fail("delete: \(answer)") }
            count("deletion")
            count("deletion by the backend")
        }
        message.isDeleted = true
        said[message.id] = message
        for user in Self.people { seqs[user]?[message.id] = nil }
    }

    private func mutate(_ operation: Mutation.Operation) throws {
        let session = try annaSession()
        mutations += 1
        let answer = try ask(
            .mutate(
                Mutate(
                    session: session,
                    mutation: Mutation(number: mutations, operation: operation))))
        guard case .mutated(let result, _) = answer, result.code == 0 else {
            return fail("mutate: \(answer)")
        }
    }

    private func announceCampaign() throws {
        guard campaigns.count < 3 else { return }
        let id: CampaignID = world.fresh()
        let answer = try ask(
            .campaigns(
                .create(
                    NewCampaign(
                        app: World.app, campaign: id, name: "spring", title: "", body: "hello",
                        plan: CampaignPlan(startsAt: now + random.below(5_000))),
                    idempotency: nil)))
        guard case .campaign = answer else { return fail("campaign: \(answer)") }
        campaigns.append(id.description)
    }

    private func suspend(_ user: UserID) throws {
        _ = try ask(.administer(.suspendUser(World.app, user)))
        suspended.insert(user)
        for index in phones.indices where phones[index].user == user {
            phones[index].session = nil
            phones[index].cutAt = nil
            phones[index].syncAt = nil
            phones[index].sleepAt = nil
        }
        count("suspension")
    }

    func resume(_ user: UserID) throws {
        _ = try ask(.administer(.resumeUser(World.app, user)))
        suspended.remove(user)
    }

    /// Receipts do not wait for a clock that was set back, either.
    func coalesceReceipts() throws {
        while case .progressed(_, more: true) = try ask(.coalesceReceipts(users: 10)) {}
        for row in try world.all(ReceiptDueRecord.self) {
            if let due = row.due, due > now + world.limits.receiptInterval {
                fail("a receipt of \(row.user.name) waits for another clock")
            }
        }
    }

    // MARK: what the messages are to somebody

    /// Somebody else's, to be read, there still.
    func counts(_ message: MessageID, for user: UserID) -> Bool {
        guard let message = said[message], members[message.room]?.contains(user) ?? false
        else { return false }
        return message.sender != user && !message.text.isEmpty && message.urgency != .passive
            && !message.isDeleted
    }

    func isRead(_ message: MessageID, by user: UserID) -> Bool {
        guard let message = said[message] else { return true }
        return marks[Place(user: user, room: message.room)]?.contains(message.position) ?? false
    }

    /// Counted by the test itself, from messages and read marks.
    func unread(_ user: UserID) -> UInt64 {
        UInt64(order.filter { counts($0, for: user) && !isRead($0, by: user) }.count)
    }

    /// What everybody would want to be told of now, and the phone has not got; oldest first.
    func pending(_ index: Int) -> [MessageID] {
        let phone = phones[index]
        return order.filter {
            counts($0, for: phone.user) && said[$0]?.moment == nil
                && said[$0]?.isSilenced == false && !phone.has.contains($0)
                && !isRead($0, by: phone.user)
        }
    }

    /// The server knows only from `applied` what the phone has: of what moved up since it does
    /// not know any more.
    func forgetMoved(_ index: Int) {
        let feed = seqs[phones[index].user] ?? [:]
        let applied = phones[index].applied
        phones[index].has = phones[index].has.filter { feed[$0].map { $0 <= applied } ?? true }
    }
}

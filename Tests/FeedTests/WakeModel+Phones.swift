import Feed
import MemoryStore
import Model
import Wake
import Wire

// The phones: tokens, screens, sessions.

extension WakeModel {
    /// What a push that arrived does to the phone.
    func deliver(_ job: PushJob, to index: Int, speaksFor covered: Set<MessageID>) {
        switch job.kind {
        case .silent:
            guard !phones[index].isForceQuit, phones[index].session == nil, chance(0.7) else {
                return
            }
            phones[index].connectAt = time + 500 + random.below(15_000)
            phones[index].wokenBy = job.request.id
        case .campaign: break
        case .alert, .badge:
            if let message = job.message {
                phones[index].shown.insert(message)
                phones[index].everShown.insert(message)
                if !covered.isEmpty {
                    phones[index].summaries.append(Summary(named: message, covers: covered))
                }
            }
            phones[index].icon = job.badge ?? 0
            phones[index].isIconOwn = false
            if job.kind == .alert { phones[index].wasAlerted = true }
        }
    }

    func connect(_ index: Int) throws {
        phones[index].connectAt = nil
        // An app that starts is told the token that works.
        if deaths[phones[index].token] != nil { changeToken(index) }
        let phone = phones[index]
        let isRefreshOff = chance(0.1) ? !phone.isRefreshOff : phone.isRefreshOff
        let held = try device(index)?.pushToken
        let answer = try ask(
            .openSession(
                OpenSession(
                    app: World.app, device: phone.id, role: .app,
                    credential: .identity(phone.user), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: boot,
                    appState: AppState(backgroundRefresh: isRefreshOff ? .off : .on),
                    push: PushRegistration(
                        token: phone.token, environment: .development, topic: "example.chess"),
                    wake: phone.wokenBy)))
        phones[index].wokenBy = nil
        guard case .opened(let opened) = answer else {
            guard answer.refusal == .suspended, suspended.contains(phone.user) else {
                return fail("open: \(answer)")
            }
            phones[index].lastRefused = time
            return
        }
        phones[index].session = opened.session
        phones[index].cutAt = nil
        phones[index].lastConnected = time
        phones[index].isForceQuit = false
        phones[index].isRefreshOff = isRefreshOff
        if isRefreshOff { count("refresh off") }
        phones[index].presented = phone.token
        phones[index].presentedAt = time
        phones[index].jumpsThen = jumpCount
        buried.remove(phone.token)
        if held != phone.token { try presentedNew(index, instead: held) }
        if phone.wokenBy != nil {
            phones[index].syncAt = chance(0.85) ? time + random.below(5_000) : nil
            phones[index].sleepAt = time + 6_000 + random.below(20_000)
        }
        count("connect")
    }

    /// What APNs asked for an older token does not hold the new one up.
    private func presentedNew(_ index: Int, instead held: [UInt8]?) throws {
        phones[index].restUntil = nil
        phones[index].lastSilent = nil
        if held == nil { forgetMoved(index) }
        guard held != nil else { return }
        count("token change")
        if let row = try wake(index), row.notBefore > now {
            fail("phone \(index) has a new token, and rests for the old one")
        }
    }

    /// iOS gives the app another token; the old one dies, now or later, or lives on.
    func changeToken(_ index: Int) {
        tokens += 1
        let old = phones[index].token
        phones[index].token = [1, tokens]
        if chance(0.6) { kill(old) }
    }

    /// APNs takes nothing for the token any more. At its next start the app gets another.
    func kill(_ token: [UInt8]) {
        deaths[token] = Death(at: time, isTimed: chance(0.6))
    }

    func synchronize(_ index: Int, isComplete: Bool) throws {
        guard let session = phones[index].session, phones[index].cutAt == nil else { return }
        let user = phones[index].user
        let head = try pushes.head(user.name)
        let feed = seqs[user] ?? [:]
        let before = phones[index].applied
        let applied = isComplete ? head : before + random.below(head - before + 1)
        var ranges: [InclusiveRange] = []
        if !isComplete, chance(isBusy ? 0.6 : 0.3), head > applied + 2 {
            // A page of the newest alone.
            let first = max(applied + 2, head - min(head, random.below(6)))
            if first <= head { ranges = [InclusiveRange(first: first, last: head)] }
            count("range")
        }
        let answer = try ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: applied, ranges: ranges,
                    completesSync: isComplete)))
        guard case .acknowledged = answer else { return fail("ack: \(answer)") }
        phones[index].applied = applied
        for (message, seq) in feed
        where seq <= applied || ranges.contains(where: { $0.first <= seq && seq <= $0.last }) {
            phones[index].has.insert(message)
        }
        if isComplete {
            phones[index].shown = []
            phones[index].wasAlerted = false
        }
        showWhatItKnows(index)
    }

    /// The app counts what it has.
    private func showWhatItKnows(_ index: Int) {
        let phone = phones[index]
        phones[index].isIconOwn = true
        phones[index].icon = UInt64(
            phone.has.filter { counts($0, for: phone.user) && !isRead($0, by: phone.user) }.count)
    }

    func read(_ index: Int) throws {
        guard let session = phones[index].session, phones[index].cutAt == nil else { return }
        let user = phones[index].user
        let room = rooms[Int(random.below(3))]
        guard members[room]?.contains(user) ?? false else { return }
        let last = position[room] ?? 0
        var receipt = ReadReceipt(conversation: room, through: random.below(last + 1))
        if chance(0.4), last > 2 {
            receipt.through = chance(0.5) ? 0 : random.below(last)
            var first = receipt.through
            for _ in 0...random.below(3) {
                first += 1 + random.below(3)
                let end = first + random.below(2)
                guard end <= last else { break }
                receipt.ranges.append(InclusiveRange(first: first, last: end))
                first = end + 1
            }
            count("read range")
        }
        _ = try ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: phones[index].applied, reads: [receipt],
                    completesSync: false)))
        var mark = marks[Place(user: user, room: room)] ?? Mark()
        mark.through = max(mark.through, receipt.through)
        for range in receipt.ranges { mark.alone.formUnion(range.first...range.last) }
        marks[Place(user: user, room: room)] = mark
        showWhatItKnows(index)
        count("read")
    }

    func sleep(_ index: Int, cut: Bool) throws {
        guard let session = phones[index].session else { return }
        phones[index].syncAt = nil
        phones[index].sleepAt = nil
        if cut {
            phones[index].cutAt = time
            return
        }
        phones[index].session = nil
        try end(session, within: 0)
    }

    func end(_ session: SessionKey, within: Milliseconds) throws {
        _ = try ask(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: within)))
    }

    func live(_ index: Int) throws {
        let phone = phones[index]
        if chance(0.0015) {
            changeToken(index)
        } else if chance(0.001), deaths[phone.token] == nil {
            kill(phone.token)
        }
        if let cut = phone.cutAt, let session = phone.session, time.since(cut) > 15_000 {
            // The suspect rule has closed it.
            phones[index].session = nil
            phones[index].cutAt = nil
            return try end(session, within: 10_000)
        }
        if phone.session == nil || phone.cutAt != nil { return try liveAsleep(index) }
        if let at = phone.syncAt, at <= time {
            phones[index].syncAt = nil
            try synchronize(index, isComplete: chance(isSlow ? 0.05 : isBusy ? 0.4 : 0.9))
        } else if phone.sleepAt == nil, chance(0.15) {
            try synchronize(index, isComplete: chance(isSlow ? 0.05 : isBusy ? 0.2 : 0.7))
        }
        if chance(0.05) { try read(index) }
        if let at = phone.sleepAt, at <= time { return try sleep(index, cut: chance(0.2)) }
        if phone.sleepAt == nil, chance(isSlow ? 0.01 : 0.03) { try sleep(index, cut: chance(0.4)) }
    }

    private func liveAsleep(_ index: Int) throws {
        if let at = phones[index].connectAt {
            guard at <= time else { return }
            // The run time is over: whoever could not connect is suspended again.
            guard time.since(at) < 25_000 else {
                phones[index].connectAt = nil
                phones[index].wokenBy = nil
                return
            }
            return try connect(index)
        }
        if chance(0.015) { try connect(index) }
        if chance(0.004) { phones[index].isForceQuit = true }
    }
}

extension PushJob {
    /// The message it is of; a campaign's push is of none.
    var message: MessageID? {
        kind == .campaign ? nil : request.collapseID.flatMap { MessageID(text: $0) }
    }

    var json: String { String(decoding: request.payload, as: UTF8.self) }

    /// The number for the icon.
    var badge: UInt64? {
        guard let start = json.firstRange(of: "\"badge\":")?.upperBound else { return nil }
        return UInt64(json[start...].prefix { $0.isNumber })
    }
}

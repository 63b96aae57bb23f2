import DeviceModel
import Model
import SyncServer
import Wake

// The device's side: what the phone does with pushes, and the app when it runs.

extension UserWorld {
    // MARK: Chance

    /// Of one moment on one device: the same whatever the policy.
    private func draws(_ index: Int, _ purpose: UInt64) -> Draws {
        Draws(
            life.seed, now.milliseconds &* 64 &+ UInt64(index) &* 8 &+ purpose)
    }

    func silentTime(_ index: Int) -> Milliseconds {
        var draws = draws(index, 1)
        if draws.isTrue(model.groupedShare) {
            return milliseconds(draws.uniform(1, model.groupedSeconds))
        }
        return milliseconds(
            draws.logNormal(
                median: life.devices[index].silentMedian, sigma: model.silentSecondsSigma))
    }

    func alertTime(_ index: Int) -> Milliseconds {
        var draws = draws(index, 2)
        return milliseconds(
            draws.logNormal(median: model.alertSecondsMedian, sigma: model.alertSecondsSigma))
    }

    func syncTime(_ index: Int) -> Milliseconds {
        var draws = draws(index, 3)
        return milliseconds(
            draws.logNormal(median: model.syncSecondsMedian, sigma: model.syncSecondsSigma))
    }

    /// `nil`: the app does not get through to the server this time.
    private func helloTime(_ index: Int, launches: Bool, fails: Bool) -> Milliseconds? {
        var draws = draws(index, 4)
        let isLost = draws.isTrue(model.helloFails)
        if isLost && fails { return nil }
        let time = draws.logNormal(
            median: life.devices[index].helloMedian, sigma: model.helloSecondsSigma)
        return milliseconds(time + (launches ? model.launchSeconds : 0))
    }

    // MARK: Pushes

    mutating func arrivals(_ index: Int) {
        while let place = devices[index].deliveries.firstIndex(where: { $0.at <= now }) {
            let push = devices[index].deliveries.remove(at: place).push
            if push.kind == .alertWithContent { judge(push, on: index) }
            var draws = draws(index, 5)
            devices[index].phone.push(
                push, rules: life.devices[index].rules, now: now, chance: draws.number(),
                into: &events)
            react(index)
        }
    }

    /// Whether an alert that arrives was needed.
    private mutating func judge(_ push: PhonePush, on index: Int) {
        guard devices[index].phone.hasCoverage, !devices[index].phone.areAlertsDenied,
            let telling = devices[index].tellings.last(where: { $0.handle == push.handle })
        else { return }
        let isKnown =
            telling.seq <= readSeq
            || devices[index].phone.screen.contains { $0.identifier == telling.seq }
        if isKnown {
            tally.repeated += 1
        } else if wouldWake(index) {
            tally.needless += 1
        }
    }

    /// What the phone would have done with a silent push instead: asked of a copy.
    private func wouldWake(_ index: Int) -> Bool {
        var twin = devices[index].phone
        if twin.state == .foreground { return true }
        var found: [PhoneEvent] = []
        twin.push(
            PhonePush(.silent, handle: 1, priority: 5, hasText: false),
            rules: life.devices[index].rules, now: now, into: &found)
        return found.contains {
            if case .run(handle: 1, _, _) = $0 { true } else { false }
        }
    }

    /// The messages that an alert's text counts.
    private func spoken(for telling: FleetDevice.Telling, on index: Int) -> [UInt64] {
        if telling.scope == .own { return [telling.seq] }
        var found = [telling.seq]
        for alert in devices[index].alerts.alerts
        where alert.seq < telling.seq && alert.phase.isOpen
            && (telling.scope != .conversation || alert.conversation == telling.conversation)
        {
            found.append(alert.seq)
        }
        return found
    }

    // MARK: The app

    /// What the app, and the connection, make of what happened on the phone.
    mutating func react(_ index: Int) {
        var place = 0
        while place < events.count {
            let event = events[place]
            place += 1
            switch event {
            case .run(let handle, _, let launches):
                start(index, cause: handle, launches: launches)
            case .enterForeground: start(index, cause: nil, launches: false)
            case .suspend, .terminate: stopped(index, isOrderly: event == .suspend)
            case .networkChanged(let isUp): networkChanged(index, isUp: isUp)
            case .shown(let handle, _): shown(handle, on: index)
            case .received(let handle, let callback, _): received(handle, callback, on: index)
            case .dropped(let handle, let loss): dropped(handle, loss, on: index)
            case .notify, .enterBackground, .stored, .held, .removed, .cleared, .badge,
                .resignActive, .responded, .unlocked:
                break
            }
        }
        events.removeAll(keepingCapacity: true)
    }

    private func isSilent(_ handle: UInt64, on index: Int) -> Bool {
        devices[index].silents.contains { $0.wake.low == handle }
    }

    private mutating func received(
        _ handle: UInt64, _ callback: PushEffect.Callback, on index: Int
    ) {
        guard isSilent(handle, on: index) else { return }
        if devices[index].phone.state == .foreground {
            tally.count(.inFront)
        } else if callback == .none {
            tally.count(.forceQuit)
        }
    }

    private mutating func dropped(_ handle: UInt64, _ loss: PhoneEvent.Loss, on index: Int) {
        guard isSilent(handle, on: index) else { return }
        switch loss {
        case .notStored, .expired, .olderKept: tally.count(.noCoverage)
        case .superseded: tally.count(.superseded)
        case .discarded: tally.count(.discarded)
        case .disallowed:
            tally.count(devices[index].phone.isRefreshOff ? .refreshOff : .forgotten)
        }
    }

    private mutating func shown(_ handle: UInt64, on index: Int) {
        guard let telling = devices[index].tellings.last(where: { $0.handle == handle })
        else { return }
        for seq in spoken(for: telling, on: index) { tell(seq, .alerted) }
    }

    /// The app runs and connects, unless it is connected.
    private mutating func start(_ index: Int, cause: UInt64?, launches: Bool) {
        if devices[index].session == .live {
            devices[index].ackAt = min(devices[index].ackAt, now + syncTime(index))
            return
        }
        guard devices[index].phone.hasCoverage, devices[index].helloAt == .never,
            let time = helloTime(index, launches: launches, fails: cause != nil)
        else { return }
        devices[index].cause = cause
        devices[index].helloAt = now + time
    }

    private mutating func stopped(_ index: Int, isOrderly: Bool) {
        devices[index].helloAt = .never
        devices[index].ackAt = .never
        devices[index].cause = nil
        switch devices[index].session {
        case .none, .expected: break
        case .live:
            // It says that it goes to sleep, or its socket is gone.
            devices[index].session = .expected
            heard?.append((now, isOrderly ? .slept(device: index) : .closed(device: index)))
            devices[index].sessionEndsAt = isOrderly ? now : now + Self.limits.returnTime
        case .broken:
            devices[index].sessionEndsAt = min(
                devices[index].sessionEndsAt, now + Self.limits.backgroundSlack)
        }
    }

    private mutating func networkChanged(_ index: Int, isUp: Bool) {
        guard !isUp else {
            if devices[index].phone.state.isRunning {
                start(index, cause: nil, launches: false)
            }
            return
        }
        devices[index].helloAt = .never
        devices[index].ackAt = .never
        guard devices[index].session == .live else { return }
        devices[index].session = .broken
        heard?.append((now, .networkLost(device: index)))
    }

    // MARK: The connection

    mutating func hello(_ index: Int) {
        devices[index].helloAt = .never
        heard?.append((now, .hello(device: index, wake: devices[index].cause)))
        devices[index].session = .live
        devices[index].sessionEndsAt = .never
        devices[index].suspectAt = .never
        devices[index].machine.isSessionCounted = true
        let wake = devices[index].cause.map { WakeID(high: 0, low: $0) }
        perform(devices[index].machine.connected(cause: wake, now: now), on: index)
        if let wake { attribute(wake, on: index) }
        devices[index].ackAt = now + syncTime(index)
    }

    /// The app has everything up to the head, and says so.
    mutating func acknowledge(_ index: Int) {
        devices[index].ackAt = .never
        let before = devices[index].machine.applied
        arrive(after: before, on: index)
        if let cause = devices[index].cause, before < head, isSilent(cause, on: index) {
            tally.silentUsed += 1
        }
        devices[index].cause = nil
        let isInFront = devices[index].phone.state == .foreground
        heard?.append((now, .acknowledged(device: index, isRead: isInFront)))
        if !isInFront { showNews(after: before, on: index) }
        let applied = head
        coverAlerts(through: applied, on: index)
        perform(
            devices[index].machine.synced(applied: applied, isComplete: true, now: now),
            on: index)
        if isInFront {
            see(index)
        } else {
            devices[index].phone.finished(into: &events)
        }
        react(index)
    }

    private mutating func arrive(after before: UInt64, on index: Int) {
        for entry in entries[Int(before)...] where entry.conversation != nil && entry.isAsleep {
            tally.arrived.add(now.since(entry.publishedAt))
        }
    }

    /// The woken app shows what the person has not been told.
    private mutating func showNews(after before: UInt64, on index: Int) {
        guard !devices[index].phone.areAlertsDenied, before < head else { return }
        for place in Int(max(before, readSeq))..<entries.count
        where entries[place].conversation != nil && !entries[place].isTold {
            let seq = UInt64(place) + 1
            if devices[index].phone.showLocal(
                handle: .max - seq, identifier: seq, rules: life.devices[index].rules,
                into: &events)
            {
                tell(seq, .local)
            }
        }
        _ = devices[index].phone.setBadge(UInt32(clamping: unread), into: &events)
    }

    /// The session's row goes; what the device has not seen is owed to it now.
    mutating func sessionExpired(_ index: Int) {
        devices[index].session = .none
        devices[index].sessionEndsAt = .never
        devices[index].suspectAt = .never
        devices[index].machine.isSessionCounted = false
        let behind = isBehind(index) ? change(newestMessage) : nil
        perform(
            devices[index].machine.sessionExpired(behind: behind, unread: unread, now: now),
            on: index)
    }
}

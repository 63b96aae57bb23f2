import Model

// One webhook's delivery as a value: the row. One batch at a time, in order; a batch is sent until
// it is taken (WHK-9 to WHK-14).
extension WebhookRecord {
    /// Whoever held it before has lost it.
    mutating func claimed(
        _ id: DeliveryID, through last: UInt64, by owner: BootID, policy: WebhookPolicy,
        now: Timestamp
    ) {
        postpone(to: now)
        delivery = id
        through = last
        toldDropped = dropped
        claim += 1
        leasedUntil = now + policy.lease
        due = leasedUntil
        self.owner = owner
    }

    /// The process that holds the batch is gone: it is sent again now. Until it is claimed anew an
    /// answer counts, for the process may only have stood still.
    mutating func holderGone(now: Timestamp) {
        owner = nil
        guard leasedUntil != nil else { return }
        leasedUntil = now
        postpone(to: now)
    }

    /// The receiver is asked at `moment` and not when it was due, for the server was down, or the
    /// app is suspended: it has not failed meanwhile (WHK-13).
    mutating func postpone(to moment: Timestamp) {
        if let since = failingSince, let due, moment >= due + Self.outageLeast {
            failingSince = since + moment.since(due)
        }
        due = moment
    }

    /// A shorter delay is ordinary load of the server, and counts as the receiver's failing.
    private static let outageLeast: Milliseconds = 60_000

    /// Nothing up to `last` is asked for, nor what was passed over meanwhile: a webhook that was
    /// switched off and on while a batch was under way.
    mutating func passed(_ last: UInt64) {
        next = max(next, last + 1)
        delivery = nil
    }

    /// - Parameters:
    ///   - newest: the number of the app's newest event.
    ///   - chance: 0 to 1000.
    mutating func answered(
        _ answer: DeliveryAnswer, newest: UInt64, policy: WebhookPolicy, chance: UInt64,
        now: Timestamp
    ) -> DeliveryEffect {
        leasedUntil = nil
        owner = nil
        switch answer {
        case .notSent:
            due = state == .active ? now : nil
            return .returned
        case .answered(let status, _) where (200..<300).contains(status):
            passed(through)
            dropped -= min(dropped, toldDropped)
            toldDropped = 0
            attempts = 0
            failingSince = nil
            lastStatus = status
            lastError = ""
            lastSuccessAt = now
            wake(newest: newest, now: now)
            return .taken
        case .answered(let status, let retryAfter):
            let isAsked = status == 429 || status == 503
            return fails(
                status, Self.words(status), waiting: isAsked ? retryAfter ?? 0 : 0, policy,
                chance, now)
        case .failed(let reason): return fails(0, reason, waiting: 0, policy, chance, now)
        }
    }

    private mutating func fails(
        _ status: UInt64, _ error: String, waiting: Milliseconds, _ policy: WebhookPolicy,
        _ chance: UInt64, _ now: Timestamp
    ) -> DeliveryEffect {
        attempts += 1
        lastStatus = status
        lastError = error
        let since = failingSince ?? now
        failingSince = since
        // Its app switched it off meanwhile.
        guard state == .active else {
            due = nil
            return .returned
        }
        if status == 410 { return end(.gone, "the receiver answered 410", now) }
        if attempts >= policy.attemptsMin, now.since(since) >= policy.deactivateAfter {
            let seconds = now.since(since) / 1000
            return end(
                .failed, "\(attempts) attempts failed in \(seconds) s; the last: \(error)", now)
        }
        let next = now + max(backOff(policy, chance), min(waiting, policy.retryAfterMax))
        due = next
        return .retried(at: next)
    }

    private mutating func end(
        _ state: WebhookState, _ reason: String, _ now: Timestamp
    ) -> DeliveryEffect {
        self.state = state
        self.reason = reason
        stateSince = now
        due = nil
        return .deactivated(state, reason: reason)
    }

    /// Half of the window is fixed, half is chance: receivers of many webhooks that failed
    /// together are not asked together.
    private func backOff(_ policy: WebhookPolicy, _ chance: UInt64) -> Milliseconds {
        let doublings = min(attempts - 1, 32)
        let (grown, overflow) = policy.retryFirst.multipliedReportingOverflow(by: 1 << doublings)
        let window = overflow ? policy.retryMax : min(grown, policy.retryMax)
        return window / 2 + (window - window / 2) / 1000 * min(chance, 1000)
            + (window - window / 2) % 1000 * min(chance, 1000) / 1000
    }

    private static func words(_ status: UInt64) -> String {
        (300..<400).contains(status)
            ? "the receiver answered \(status); redirects are not followed"
            : "the receiver answered \(status)"
    }
}

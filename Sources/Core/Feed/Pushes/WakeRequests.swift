import Model
import Wake

extension Work {
    func claimPushes(_ request: ClaimPushes) throws(RuleFailure) -> StoreAnswer {
        let (claimed, wakes) = try stored(try wakeRules.claim(request))
        effects.note(wakes)
        return .pushes(claimed)
    }

    func finishPush(_ request: FinishPush) throws(RuleFailure) -> StoreAnswer {
        let (answer, wakes) = try stored(try wakeRules.finish(request))
        effects.note(wakes)
        for dropped in wakes.dropped {
            note(
                WebhookEventRecord(
                    app: dropped.app, kind: .tokenDropped, user: dropped.user.name,
                    device: dropped.device, feedback: dropped.number))
        }
        return .pushFinished(answer)
    }

    private static let sweptAtOnce = 8

    func sweepWakes(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let ended = try continueSessionEnds()
        var count = ended.count
        var more = true
        var left = max(1, rows)
        // A device may be owed hundreds of alerts: after each few it is seen what is left to do,
        // and each part goes on by one at least.
        while more, left > 0, left == max(1, rows) || !isSpent {
            let part = min(left, Self.sweptAtOnce)
            let (swept, isMore, wakes) = try stored(try wakeRules.sweep(rows: part))
            effects.note(wakes)
            count += swept
            more = isMore
            left -= part
        }
        return .progressed(count: count, more: more || ended.more)
    }

    func rested(_ elapsed: Milliseconds) throws(RuleFailure) -> StoreAnswer {
        try stored(try wakeRules.rested(elapsed))
        return .done
    }

    func keepAlive() throws(RuleFailure) -> StoreAnswer {
        try noteWakes(try wakeRules.keepAlive())
        return .done
    }
}

import Model
import Wake

extension Work {
    func claimPushes(_ request: ClaimPushes) throws(RuleFailure) -> StoreAnswer {
        let (claimed, wakes) = try waking { () throws(StoreError) in
            try WakeRules.claim(request, in: self.transaction, now: self.now)
        }
        effects.note(wakes)
        return .pushes(claimed)
    }

    func finishPush(_ request: FinishPush) throws(RuleFailure) -> StoreAnswer {
        let (answer, wakes) = try waking { () throws(StoreError) in
            try WakeRules.finish(request, in: self.transaction, now: self.now)
        }
        effects.note(wakes)
        for dropped in wakes.dropped { note(WebhookEvent(dropped), dropped.app) }
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
            let (swept, isMore, wakes) = try waking { () throws(StoreError) in
                try WakeRules.sweep(rows: part, in: self.transaction, now: self.now)
            }
            effects.note(wakes)
            count += swept
            more = isMore
            left -= part
        }
        return .progressed(count: count, more: more || ended.more)
    }

    func rested(_ elapsed: Milliseconds) throws(RuleFailure) -> StoreAnswer {
        try waking { () throws(StoreError) in
            try WakeRules.rested(elapsed, in: self.transaction, now: self.now)
        }
        return .done
    }

    func keepAlive() throws(RuleFailure) -> StoreAnswer {
        effects.note(
            try waking { () throws(StoreError) in
                try WakeRules.keepAlive(in: self.transaction, now: self.now)
            })
        return .done
    }
}

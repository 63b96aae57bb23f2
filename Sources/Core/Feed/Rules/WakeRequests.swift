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
        for dropped in wakes.dropped { try note(WebhookEvent(dropped), dropped.app) }
        return .pushFinished(answer)
    }

    func sweepWakes(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let (count, more, wakes) = try waking { () throws(StoreError) in
            try WakeRules.sweep(rows: rows, in: self.transaction, now: self.now)
        }
        effects.note(wakes)
        return .progressed(count: count, more: more)
    }

    func keepAlive() throws(RuleFailure) -> StoreAnswer {
        effects.note(
            try waking { () throws(StoreError) in
                try WakeRules.keepAlive(in: self.transaction, now: self.now)
            })
        return .done
    }
}

import Model

extension Work {
    /// Whoever asks first makes it; all others get that one until it is due to be replaced.
    func keepProviderToken(_ request: KeepProviderToken) throws(RuleFailure) -> StoreAnswer {
        let key: [ColumnValue] = [
            .text(request.team), .text(request.keyID), .blob(request.fingerprint),
        ]
        typealias Kept = ProviderTokenRecord
        // One from the future is of a clock that was set back; a little of it is none.
        if let kept = try record(Kept.self, key, lock: .wait), kept.madeAt < now + Kept.spacing {
            let age = now.since(kept.madeAt)
            let isRefused = kept.token == request.refused
            let bound =
                !isRefused ? Kept.renewAfter : request.replacesYoung ? 0 : Kept.spacing
            if age < bound {
                return .providerToken(KeptProviderToken(token: kept.token, age: age))
            }
        }
        try put(Kept(request, now: now))
        return .providerToken(KeptProviderToken(token: request.token, age: 0))
    }
}

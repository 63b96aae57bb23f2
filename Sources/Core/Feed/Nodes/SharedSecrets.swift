import Model

extension Work {
    /// Whoever asks first when one is due makes it; all others get that one.
    func keepTicketKeys(_ drawn: TicketKey) throws(RuleFailure) -> StoreAnswer {
        var kept: [KeptTicketKey] = []
        var free: [(slot: Int, isWritten: Bool)] = []
        for slot in 0..<TicketKey.slots {
            let row = try record(
                MetaRecord.self, [.text(MetaRecord.ticketKeyName(slot))], lock: .wait)
            if let row, let key = try inForce(row) {
                kept.append(key)
            } else {
                free.append((slot, row != nil))
            }
        }
        kept.sort { $0.age < $1.age }
        if let newest = kept.first, newest.age < TicketKey.renewAfter {
            return .ticketKeys(kept)
        }
        // Each of `slots` keys is over before another one is due in its place.
        let slot = free.first?.slot ?? 0
        // What is over is good for nobody any more but a thief.
        for other in free.dropFirst() where other.isWritten {
            try delete(MetaRecord.self, [.text(MetaRecord.ticketKeyName(other.slot))])
        }
        try put(
            MetaRecord(
                name: MetaRecord.ticketKeyName(slot), number: now.milliseconds,
                bytes: drawn.name + drawn.secret))
        return .ticketKeys([KeptTicketKey(key: drawn, age: 0)] + kept)
    }

    private func inForce(_ row: MetaRecord) throws(RuleFailure) -> KeptTicketKey? {
        guard let key = TicketKey(row) else { return nil }
        let madeAt = Timestamp(milliseconds: row.number)
        // One from the future is of a clock that was set back; a little of it is none.
        guard madeAt < now + TicketKey.renewAfter else { return nil }
        let age = madeAt > now ? 0 : now.since(madeAt)
        return age < TicketKey.lifetime ? KeptTicketKey(key: key, age: age) : nil
    }
}

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

public import Model

// A campaign's push to the device. It shares the row's flight, its lease and its fencing, so that
// at most one push is in flight over all classes, and waits for what the device is owed itself.

extension Reachability {
    /// Until when a campaign's push has to wait; `nil`: it may leave now.
    public func campaignWait(now: Timestamp) -> Timestamp? {
        if row.notBefore > now { return row.notBefore }
        if row.flight != nil || need(now: now) != nil { return now + WakePolicy.campaignDelay }
        return nil
    }

    public mutating func claimCampaign(
        _ campaign: CampaignID, claim: Claim, now: Timestamp
    ) -> [WakeAction] {
        precondition(row.flight == nil, "a push is in flight: \(row)")
        guard let generation = tokenGeneration else { return [] }
        row.flightMessage = MessageID(campaign)
        take(.campaign, id: claim.id, generation: generation, claim: claim, now: now)
        return [.send(.campaign)]
    }

    /// The campaign's row leaves `sending`.
    func settleCampaign(_ settlement: CampaignSettlement) -> WakeAction {
        .settleCampaign(CampaignID(row.flightMessage), settlement)
    }
}

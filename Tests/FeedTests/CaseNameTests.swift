import Model
import Testing
import Wake

@testable import Feed

/// Names that follow from how cases are spelled: backends, dashboards and logs know them.
@Suite struct CaseNameTests {
    private func expectNames<Value: NamedByCase & Equatable>(
        of _: Value.Type, _ names: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(Value.allCases.map(\.name) == names, sourceLocation: sourceLocation)
        for value in Value.allCases {
            #expect(Value(name: value.name) == value, sourceLocation: sourceLocation)
        }
        #expect(Value(name: "") == nil, sourceLocation: sourceLocation)
    }

    @Test func namesStayAsOthersKnowThem() {
        expectNames(of: ScheduledRecord.State.self, ["pending", "published", "failed"])
        expectNames(of: WebhookState.self, ["active", "off", "failed", "gone"])
        expectNames(
            of: CampaignPushPhase.self,
            ["queued", "sending", "sent", "refused", "left-out", "cancelled"])
        expectNames(
            of: CampaignOmission.self,
            [
                "presumed-gone", "tokenless", "notifications-off", "suspended", "no-credential",
                "changed",
            ])
        expectNames(of: PushClass.self, ["wake", "alert", "badge", "campaign", "probe"])
        expectNames(
            of: AlertCause.self,
            [
                "unknown", "urgent", "unreachable", "refresh-off", "gone", "no-budget", "missed",
                "not-synced", "wake-rejected", "timed", "doubted",
            ])
        expectNames(
            of: WakeOutcome.self,
            [
                "pending", "synced", "connected-not-synced", "late", "superseded", "expired",
                "rejected", "no-show", "accepted",
            ])
        expectNames(
            of: PushOptions.InterruptionLevel.self,
            ["passive", "active", "time-sensitive", "critical"])
    }
}

import Model
import Testing

@testable import Feed

/// One webhook's delivery as a machine: answers in, the row out.
@Suite struct WebhookDeliveryTests {
    static let start = Timestamp(milliseconds: 1_000_000)

    private func sent(_ attempts: UInt64 = 0) -> WebhookRecord {
        var webhook = WebhookRecord(
            app: AppID("shop"), webhook: WebhookID(high: 1, low: 1), url: "u", kinds: .all,
            secret: "s", stateSince: Self.start, createdAt: Self.start, next: 5)
        webhook.attempts = attempts
        webhook.failingSince = attempts > 0 ? Self.start : nil
        webhook.claimed(
            DeliveryID(high: 2, low: 2), through: 9, by: .blank, policy: WebhookPolicy(),
            now: Self.start)
        return webhook
    }

    private func effect(
        _ answer: DeliveryAnswer, attempts: UInt64 = 0, chance: UInt64 = 0,
        after: Milliseconds = 0
    ) -> DeliveryEffect {
        var webhook = sent(attempts)
        return webhook.answered(
            answer, newest: 9, policy: WebhookPolicy(), chance: chance, now: Self.start + after)
    }

    private func wait(
        _ answer: DeliveryAnswer, attempts: UInt64 = 0, chance: UInt64 = 0
    ) -> Milliseconds? {
        guard case .retried(let at) = effect(answer, attempts: attempts, chance: chance) else {
            return nil
        }
        return at.since(Self.start)
    }

    @Test(
        "2xx alone is success",
        arguments: [100, 199, 200, 204, 299, 300, 302, 400, 404, 500] as [UInt64])
    func success(_ status: UInt64) {
        let isTaken = effect(.answered(status: status, retryAfter: nil)) == .taken
        #expect(isTaken == (200..<300).contains(status))
    }

    @Test func waitsDoubleUpToAnHour() {
        let failed = DeliveryAnswer.failed("no connection")
        let windows = (0..<14).map { wait(failed, attempts: $0, chance: 1000) ?? 0 }
        #expect(
            windows.map { $0 / 1000 } == [
                5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600, 3600,
            ])
        #expect(wait(failed, attempts: 60, chance: 1000) == 3_600_000)
        #expect(wait(failed, chance: 0) == 2_500)
        #expect(wait(failed, chance: 500) == 3_750)
    }

    @Test func retryAfterIsKeptWithinBounds() {
        #expect(wait(.answered(status: 503, retryAfter: 60_000)) == 60_000)
        #expect(wait(.answered(status: 429, retryAfter: 60_000)) == 60_000)
        #expect(wait(.answered(status: 500, retryAfter: 60_000)) == 2_500)
        #expect(wait(.answered(status: 503, retryAfter: 1)) == 2_500)
        #expect(wait(.answered(status: 503, retryAfter: .max)) == 21_600_000)
    }

    @Test func deactivationTakesTimeAndAttempts() {
        let failed = DeliveryAnswer.failed("no connection")
        let limit = WebhookPolicy().deactivateAfter
        guard case .retried = effect(failed, attempts: 9, after: limit - 1),
            case .retried = effect(failed, attempts: 1, after: limit),
            case .deactivated(.failed, _) = effect(failed, attempts: 2, after: limit)
        else {
            Issue.record("deactivated at another moment")
            return
        }
    }

    /// Each attempt is made as soon as the server is there, four days after it was due.
    @Test(
        "what the server was away is no failing of the receiver", arguments: ["gone", "lease", ""])
    func outage(_ kind: String) {
        let policy = WebhookPolicy()
        let failed = DeliveryAnswer.failed("no connection")
        let outage: Milliseconds = 4 * 86_400_000
        var (webhook, now) = (sent(2), Self.start)
        func fail() -> DeliveryEffect {
            webhook.answered(failed, newest: 9, policy: policy, chance: 0, now: now)
        }
        func claim() {
            webhook.claimed(
                DeliveryID(high: 2, low: 2), through: 9, by: .blank, policy: policy, now: now)
        }
        // The process is killed with the batch under way, or while it waits.
        if kind.isEmpty { _ = fail() }
        now = now + outage
        if kind == "gone" { webhook.holderGone(now: now) }
        claim()
        guard case .retried = fail() else {
            Issue.record("the outage counts")
            return
        }
        // What it fails itself counts as ever.
        now = now + policy.deactivateAfter
        webhook.due = now
        claim()
        guard case .deactivated(.failed, _) = fail() else {
            Issue.record("it goes on")
            return
        }
    }

    @Test func aSuccessEndsTheFailures() {
        var webhook = sent(7)
        _ = webhook.answered(
            .answered(status: 200, retryAfter: nil), newest: 12, policy: WebhookPolicy(),
            chance: 0, now: Self.start + 10)
        #expect(webhook.attempts == 0 && webhook.failingSince == nil)
        #expect(webhook.next == 10 && webhook.delivery == nil && webhook.leasedUntil == nil)
        #expect(webhook.due == Self.start + 10, "more waits")
    }

    @Test("what is dropped while a batch is under way is told with the next one")
    func droppedMeanwhile() {
        var webhook = sent()
        webhook.dropped = 3
        webhook.claimed(
            DeliveryID(high: 2, low: 2), through: 9, by: .blank, policy: WebhookPolicy(),
            now: Self.start)
        webhook.dropped += 2
        _ = webhook.answered(
            .answered(status: 200, retryAfter: nil), newest: 9, policy: WebhookPolicy(),
            chance: 0, now: Self.start)
        #expect(webhook.dropped == 2 && webhook.toldDropped == 0)
    }

    @Test func whatWasNotSentIsNoAttempt() {
        var webhook = sent(3)
        let effect = webhook.answered(
            .notSent, newest: 9, policy: WebhookPolicy(), chance: 0, now: Self.start + 5)
        #expect(effect == .returned && webhook.attempts == 3)
        #expect(webhook.due == Self.start + 5 && webhook.delivery != nil)
    }

    @Test func anAnswerAfterSwitchingOffWakesNothing() {
        var webhook = sent(0)
        webhook.state = .off
        _ = webhook.answered(
            .failed("no connection"), newest: 9, policy: WebhookPolicy(), chance: 0,
            now: Self.start)
        #expect(webhook.due == nil && webhook.state == .off)
    }

    @Test func kindsHaveNamesAndBits() {
        let names = WebhookEventKind.allCases.map(\.name)
        #expect(Set(names).count == names.count)
        for kind in WebhookEventKind.allCases {
            #expect(WebhookEventKind(name: kind.name) == kind)
            #expect(WebhookEventKinds([kind]).kinds == [kind])
            #expect(kind.rawValue < 63)
        }
        // What is sent to one webhook that is tried out is asked for by none.
        #expect(!WebhookEventKinds.all.contains(.webhookTest))
        #expect(WebhookEventKinds.all.kinds.count == WebhookEventKind.allCases.count - 1)
    }
}

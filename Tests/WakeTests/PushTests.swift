import Model
import Testing

@testable import Wake

@Suite struct SilentBudgetTests {
    private let policy = WakePolicy()

    @Test func threeInAnyHourAMinuteApart() {
        var budget = SilentBudget()
        #expect(budget.verdict(now: start, policy: policy) == .allowed)
        budget.spend(now: start, policy: policy)
        #expect(
            budget.verdict(now: start + 59_999, policy: policy) == .wait(until: start + 60_000))
        budget.spend(now: start + 60_000, policy: policy)
        budget.spend(now: start + 120_000, policy: policy)
        #expect(budget.verdict(now: start + 180_000, policy: policy) == .exhausted)
        #expect(budget.verdict(now: start + 3_599_999, policy: policy) == .exhausted)
        #expect(budget.verdict(now: start + 3_600_000, policy: policy) == .allowed)
    }

    @Test("what nobody would see leaves a token to what somebody would")
    func spareTime() {
        var budget = SilentBudget()
        func spare(_ after: Milliseconds, of most: UInt64 = 3) -> Milliseconds? {
            let policy = WakePolicy(silentBudget: most)
            return budget.spareTime(now: start + after, policy: policy)?.since(start)
        }
        #expect(spare(0) == 0 && spare(0, of: 1) == nil && spare(0, of: 0) == nil)
        budget.spend(now: start, policy: policy)
        #expect(spare(0) == 60_000 && spare(70_000) == 70_000)
        budget.spend(now: start + 600_000, policy: policy)
        #expect(spare(600_000) == 3_600_000)
        budget.spend(now: start + 900_000, policy: policy)
        #expect(spare(900_000) == 4_200_000)
    }

    @Test func noPolicyAllowsMoreThanARowHolds() {
        let policy = WakePolicy(silentBudget: 40, silentSpacing: 0)
        var budget = SilentBudget()
        for _ in 0..<SilentBudget.capacity { budget.spend(now: start, policy: policy) }
        #expect(budget.verdict(now: start + 1, policy: policy) == .exhausted)
    }

    @Test func keepsItsFormInARow() {
        var budget = SilentBudget()
        budget.spend(now: start, policy: policy)
        budget.spend(now: start + 70_000, policy: policy)
        #expect(budget.encoded.count == 16)
        #expect(SilentBudget(encoded: budget.encoded) == budget)
        // A torn row is no reason to stop.
        #expect(SilentBudget(encoded: Array(budget.encoded.dropLast(3))).times == [start])
    }

    @Test func aRefundTakesTheTimeBack() {
        var budget = SilentBudget()
        budget.spend(now: start, policy: policy)
        budget.refund(start)
        #expect(budget.times == [])
        budget.refund(start)
        #expect(budget.times == [])
    }

    @Test func aClockThatWasAheadHoldsForNoLongerThanTheSpacing() {
        for ahead in [1_000, 300_000, 4_000_000, 30 * 86_400_000] as [UInt64] {
            var budget = SilentBudget()
            budget.spend(now: start + ahead, policy: policy)
            budget.mendClock(now: start)
            #expect(budget.times == [start])
            #expect(budget.verdict(now: start, policy: policy) == .wait(until: start + 60_000))
            #expect(budget.verdict(now: start + 60_000, policy: policy) == .allowed)
        }
    }
}

@Suite struct PushAnswerTests {
    /// Apple's table; the raw strings are the names on the wire.
    private static let table: [(UInt64, String, PushAnswer)] = [
        (200, "", .accepted),
        (400, "BadCollapseId", .ourBug), (400, "BadDeviceToken", .deadToken(since: nil)),
        (400, "BadExpirationDate", .ourBug), (400, "BadMessageId", .ourBug),
        (400, "BadPriority", .ourBug), (400, "BadTopic", .pauseTopic),
        (400, "DeviceTokenNotForTopic", .deadToken(since: nil)),
        (400, "DuplicateHeaders", .ourBug),
        (400, "IdleTimeout", .retryLater(after: 1_000, step: .reconnect)),
        (400, "InvalidPushType", .ourBug), (400, "MissingDeviceToken", .ourBug),
        (400, "MissingTopic", .ourBug), (400, "PayloadEmpty", .ourBug),
        (400, "TopicDisallowed", .pauseTopic), (403, "BadCertificate", .pauseCredential),
        (403, "BadCertificateEnvironment", .pauseCredential),
        (403, "ExpiredProviderToken", .retryLater(after: 1_000, step: .renewToken)),
        (403, "Forbidden", .pauseCredential), (403, "InvalidProviderToken", .pauseCredential),
        (403, "MissingProviderToken", .pauseCredential),
        (403, "UnrelatedKeyIdInToken", .retryLater(after: 1_000, step: .reconnectNow)),
        (403, "BadEnvironmentKeyIdInToken", .pauseCredential),
        (403, "BadEnvironmentKeyInToken", .pauseCredential),
        (404, "BadPath", .ourBug), (405, "MethodNotAllowed", .ourBug),
        (410, "ExpiredToken", .deadToken(since: start)),
        (410, "Unregistered", .deadToken(since: start)), (413, "PayloadTooLarge", .ourBug),
        (
            429, "TooManyProviderTokenUpdates",
            .retryLater(after: 300_000, step: .keepToken)
        ),
        (429, "TooManyRequests", .retryLater(after: 60_000, step: .none)),
        (500, "InternalServerError", .retryLater(after: 5_000, step: .reconnect)),
        (503, "ServiceUnavailable", .retryLater(after: 5_000, step: .reconnect)),
        (503, "Shutdown", .retryLater(after: 5_000, step: .reconnect)),
        // Reasons of tomorrow.
        (400, "Tomorrow", .retryLater(after: 5_000, step: .none)),
        (403, "Tomorrow", .pauseCredential),
        (410, "Tomorrow", .deadToken(since: start)),
        (429, "Tomorrow", .retryLater(after: 60_000, step: .none)),
        (502, "", .retryLater(after: 5_000, step: .reconnect)),
        // Not of APNs, or not whole.
        (400, "", .retryLater(after: 5_000, step: .none)),
        (410, "", .retryLater(after: 5_000, step: .none)),
        (418, "", .retryLater(after: 5_000, step: .none)),
        (302, "", .retryLater(after: 5_000, step: .none)),
        (204, "", .retryLater(after: 5_000, step: .none)),
        (600, "", .retryLater(after: 5_000, step: .none)),
        // A reason of Apple's with a status that is not its own.
        (302, "BadDeviceToken", .retryLater(after: 5_000, step: .none)),
        (410, "BadDeviceToken", .retryLater(after: 5_000, step: .none)),
        (500, "BadDeviceToken", .retryLater(after: 5_000, step: .reconnect)),
        (600, "BadDeviceToken", .retryLater(after: 5_000, step: .none)),
        (400, "Unregistered", .retryLater(after: 5_000, step: .none)),
        (429, "Unregistered", .retryLater(after: 60_000, step: .none)),
        (404, "InvalidProviderToken", .retryLater(after: 5_000, step: .none)),
        (410, "InternalServerError", .retryLater(after: 5_000, step: .none)),
        (200, "InternalServerError", .accepted),
    ]

    @Test("every reason has its class", arguments: table)
    func everyReasonHasItsClass(_ status: UInt64, _ reason: String, _ expected: PushAnswer) {
        let answer = PushAnswer(
            status: status, reason: reason, timestamp: status == 410 ? start : nil)
        #expect(answer == expected)
    }

    @Test("a badge has time: it begins at a minute")
    func badgesWait() {
        let answer = PushAnswer(
            status: 503, reason: "ServiceUnavailable", timestamp: nil, kind: .badge)
        #expect(answer == .retryLater(after: 60_000, step: .reconnect))
        let alert = PushAnswer(
            status: 500, reason: "", timestamp: nil, kind: .alert)
        #expect(alert == .retryLater(after: 5_000, step: .reconnect))
    }

    @Test func laterFailuresWaitLonger() {
        func after(_ reason: String, _ status: UInt64, failures: UInt64) -> Milliseconds? {
            let answer = PushAnswer(
                status: status, reason: reason, timestamp: nil,
                failures: RefusalCount(faults: failures))
            guard case .retryLater(let after, _) = answer else { return nil }
            return after
        }
        #expect(after("Shutdown", 503, failures: 1) == 10_000)
        #expect(after("Shutdown", 503, failures: .max) == 60_000)
        #expect(after("ExpiredProviderToken", 403, failures: 1) == 2_000)
        #expect(after("ExpiredProviderToken", 403, failures: .max) == 60_000)
        #expect(after("TooManyRequests", 429, failures: 1) == 120_000)
        #expect(after("TooManyRequests", 429, failures: .max) == 900_000)
    }

    @Test("an answer that is none of Apple's is asked for again ever later, then given up")
    func unknownAnswersAreBounded() {
        var waits: [Milliseconds] = []
        for failures in UInt64(0)..<20 {
            let answer = PushAnswer(
                status: 418, reason: "", timestamp: nil,
                failures: RefusalCount(faults: .max, unknown: failures))
            guard case .retryLater(let after, .none) = answer else {
                #expect(answer == .ourBug)
                continue
            }
            waits.append(after)
        }
        #expect(waits == [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000])
        let last = PushAnswer(
            status: 418, reason: "", timestamp: nil, failures: RefusalCount(unknown: .max))
        #expect(last == .ourBug)
    }

    @Test("the two counts are one number in a row, and that of an older version counts as faults")
    func refusalCounts() {
        for count in [
            RefusalCount(), RefusalCount(faults: 3), RefusalCount(unknown: 7),
            RefusalCount(faults: .max, unknown: .max),
        ] {
            #expect(RefusalCount(rawValue: count.rawValue) == count)
            #expect(count.rawValue <= UInt64.max >> 1)
        }
        #expect(RefusalCount(rawValue: 12) == RefusalCount(faults: 12))
        #expect(RefusalCount.blank == RefusalCount())
    }

    @Test("APNs may say itself when it wants to hear of a push again, within bounds")
    func retryAfter() {
        func after(_ seconds: UInt64, _ status: UInt64, _ reason: String) -> Milliseconds? {
            let answer = PushAnswer(
                status: status, reason: reason, timestamp: nil,
                retryAfter: seconds * 1_000)
            guard case .retryLater(let after, _) = answer else { return nil }
            return after
        }
        #expect(after(3, 429, "TooManyRequests") == 3_000)
        #expect(after(0, 429, "TooManyRequests") == 1_000)
        #expect(after(86_400, 503, "ServiceUnavailable") == 900_000)
        #expect(after(30, 429, "TooManyProviderTokenUpdates") == 30_000)
        #expect(after(3, 400, "BadDeviceToken") == nil)
    }
}

@Suite struct PushPayloadTests {
    private let ids = (
        message: "00000000-0000-0002-0000-00000000000a",
        conversation: "00000000-0000-0003-0000-000000000003",
        wake: "00000000-0000-0001-0000-000000000001"
    )
    private let subject = PushPayload.Subject(
        event: "message", message: messageID(10),
        conversation: ConversationID(high: 3, low: 3), wake: wakeID(1))

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    private var rouse: String {
        #""rouse":{"e":"message","o":"\#(ids.message)","c":"\#(ids.conversation)","w":"\#(ids.wake)"}"#
    }

    @Test func silentHoldsNothingBesideContentAvailable() {
        #expect(
            text(PushPayload.silent(subject))
                == #"{"aps":{"content-available":1},"# + rouse + "}")
    }

    @Test func alertNamesTextBadgeThreadAndCount() {
        let payload = PushPayload.alert(
            .init(title: "Anna", body: "Grüße 👋", others: 6), badge: 7, subject: subject)
        #expect(
            text(payload)
                == #"{"aps":{"alert":{"title":"Anna","body":"Grüße 👋 (and 6 more)"},"badge":7,"#
                + #""sound":"default","thread-id":"\#(ids.conversation)","#
                + #""content-available":1,"mutable-content":1},"# + rouse + "}")
    }

    @Test func aMissingTitleIsLeftOut() {
        let payload = PushPayload.alert(
            .init(title: "", body: "b"), badge: 1, subject: subject)
        #expect(text(payload).hasPrefix(#"{"aps":{"alert":{"body":"b"},"badge":1,"#))
    }

    @Test func badgeAloneAndBadgeThatTakesTheSlot() {
        let alone = PushPayload.Subject(event: "badge", wake: wakeID(1))
        #expect(
            text(PushPayload.badge(0, text: nil, subject: alone))
                == #"{"aps":{"badge":0,"content-available":1},"rouse":{"e":"badge","w":"\#(ids.wake)"}}"#
        )
        #expect(
            text(PushPayload.badge(2, text: .init(title: "A", body: "b"), subject: subject))
                == #"{"aps":{"alert":{"title":"A","body":"b"},"badge":2,"#
                + #""thread-id":"\#(ids.conversation)","content-available":1,"#
                + #""mutable-content":1},"# + rouse + "}")
        var plain = PushOptions()
        plain.isMutable = false
        let kept = PushPayload.badge(
            2, text: .init(title: "A", body: "b"), options: plain, subject: subject)
        #expect(!text(kept).contains("mutable-content"))
    }

    @Test func onlyControlCharactersQuoteAndBackslashAreEscaped() {
        let payload = PushPayload.alert(
            .init(title: "", body: "a\"\\\n\r\t\u{8}\u{C}\u{1}\u{1F}\u{7F}\u{2028}é/"), badge: 1,
            subject: subject)
        #expect(
            text(payload).contains(
                #""body":"a\"\\\n\r\t\b\f\u0001\u001f"# + "\u{7F}\u{2028}é/" + #"""#))
    }

    @Test func aLongTextIsCutBetweenCharacters() {
        // A family is one character of 25 bytes.
        let body = String(repeating: "👨‍👩‍👧‍👦", count: 400)
        let payload = PushPayload.alert(
            .init(title: "Anna", body: body, others: 2), badge: 3, subject: subject)
        #expect(payload.count <= 4_096)
        #expect(payload.count > 4_096 - 25)
        let end = text(payload).split(separator: #"… (and 2 more)"}"#)
        #expect(end.count == 2)
        #expect(end[0].hasSuffix("👨‍👩‍👧‍👦"))
    }

    @Test func textThatFitsExactlyIsWhole() {
        let empty = PushPayload.alert(.init(title: "", body: ""), badge: 1, subject: subject)
        let room = 4_096 - empty.count
        let whole = PushPayload.alert(
            .init(title: "", body: String(repeating: "x", count: room)), badge: 1,
            subject: subject)
        #expect(whole.count == 4_096)
        #expect(!text(whole).contains("…"))
        let cut = PushPayload.alert(
            .init(title: "", body: String(repeating: "x", count: room + 1)), badge: 1,
            subject: subject)
        #expect(cut.count == 4_096)
        #expect(text(cut).contains("xxx…\""))
    }

    @Test func everyLengthFits() {
        for length in stride(from: 0, through: 6_000, by: 37) {
            let payload = PushPayload.alert(
                .init(
                    title: String(repeating: "\u{1}", count: length),
                    body: String(repeating: "é\u{301}", count: length), others: .max),
                badge: .max, subject: subject)
            #expect(payload.count <= 4_096)
        }
    }
}

@Suite struct PushRequestTests {
    private let destination = PushRequest.Destination(
        token: [0x00, 0xAB, 0xFF], topic: "example.app")
    private let subject = PushPayload.Subject(
        event: "message", message: messageID(10),
        conversation: ConversationID(high: 3, low: 3), wake: wakeID(1))

    private func headers(_ request: PushRequest) -> [String] {
        request.headers.map { "\($0.name): \($0.value)" }
    }

    @Test func silentIsNeverStored() {
        let request = PushRequest.silent(subject, to: destination)
        #expect(request.path == "/3/device/00abff")
        #expect(
            headers(request) == [
                "apns-topic: example.app", "apns-push-type: background", "apns-priority: 5",
                "apns-expiration: 0", "apns-id: 00000000-0000-0001-0000-000000000001",
            ])
    }

    @Test func alertCollapsesByMessage() {
        let request = PushRequest.alert(
            .init(title: "A", body: "b"), badge: 1, subject: subject, expires: time(1_999_999),
            to: destination)
        #expect(
            headers(request) == [
                "apns-topic: example.app", "apns-push-type: alert", "apns-priority: 10",
                "apns-expiration: 1999", "apns-id: 00000000-0000-0001-0000-000000000001",
                "apns-collapse-id: 00000000-0000-0002-0000-00000000000a",
            ])
    }

    @Test func badgeIsAnAlertOfLowPriority() {
        let request = PushRequest.badge(
            0, text: nil, subject: subject, expires: nil, to: destination)
        #expect(
            headers(request) == [
                "apns-topic: example.app", "apns-push-type: alert", "apns-priority: 5",
                "apns-expiration: 0", "apns-id: 00000000-0000-0001-0000-000000000001",
                "apns-collapse-id: badge",
            ])
    }
}

@Suite struct WakeRecordTests {
    @Test func tablesFitTheStore() {
        let tables = [
            WakeRecord.table, AlertRecord.table, WakeHistoryRecord.table,
        ]
        for table in tables { #expect(table.problem() == nil) }
    }

    @Test func rowsComeBackAsTheyWere() throws {
        for (name, machine) in states {
            let row = machine.row
            #expect(WakeRecord.table.problem(row: row.row) == nil)
            #expect(try WakeRecord(row: row.row) == row, "\(name)")
        }
        let alert = AlertRecord(
            app: AppID("app"), user: UserID("anna"), device: DeviceID(high: 1, low: 2),
            message: messageID(1), conversation: ConversationID(high: 3, low: 3), position: 4,
            seq: 5, phase: .sent, openPosition: 4, queuedAt: start, sentAt: later,
            push: wakeID(9), expiresAt: later + 1)
        #expect(try AlertRecord(row: alert.row) == alert)
        let history = WakeHistoryRecord(
            app: AppID("app"), user: UserID("anna"), device: DeviceID(high: 1, low: 2),
            wake: wakeID(1), kind: .alert, seq: 1, conversation: ConversationID(high: 3, low: 3),
            message: messageID(4), queuedAt: start, sentAt: later, attempts: 2,
            acceptedAt: later + 1, connectedAt: later + 2, syncedAt: later + 3,
            outcome: .connectedNotSynced, status: 503, reason: "Shutdown", badge: 9,
            expiresAt: later + 4)
        #expect(try WakeHistoryRecord(row: history.row) == history)
    }
}

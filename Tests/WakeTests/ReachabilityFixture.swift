import Model
import Wake

func time(_ milliseconds: UInt64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

/// Moments of the tests: everything before an event happens at `start`, events at `later`.
let start = time(1_000_000)
let later = time(1_100_000)
let boot = BootID(high: 7, low: 7)
let otherBoot = BootID(high: 8, low: 8)

func wakeID(_ low: UInt64) -> WakeID { WakeID(high: 1, low: low) }
func messageID(_ low: UInt64) -> MessageID { MessageID(high: 2, low: low) }
func choice(_ low: UInt64, id: WakeID? = nil, isUrgent: Bool = false) -> AlertChoice {
    AlertChoice(message: messageID(low), id: id, isUrgent: isUrgent, waitsSince: start)
}
func claim(_ low: UInt64) -> Claim { Claim(owner: boot, id: wakeID(low)) }

func change(_ seq: UInt64) -> VisibleChange {
    VisibleChange(
        seq: seq, conversation: ConversationID(high: 3, low: 3), message: messageID(seq))
}

extension Reachability {
    /// A device with a token that is owed nothing.
    static func fresh(policy: WakePolicy = WakePolicy(), token: UInt64? = 1) -> Reachability {
        Reachability(
            policy: policy, tokenGeneration: token,
            row: WakeRecord(
                app: AppID("app"), user: UserID("anna"), device: DeviceID(high: 4, low: 4)))
    }

    /// After `steps`, which happen at `start`.
    static func after(_ steps: (inout Reachability) -> Void) -> Reachability {
        var machine = fresh()
        steps(&machine)
        return machine
    }

    mutating func answer(_ reply: PushReply, unread: UInt64 = 1, now: Timestamp = start)
        -> [WakeAction]
    {
        pushAnswered(
            reply, owner: boot, attempt: row.attempt, unread: unread, now: now)
    }
}

let ok = PushReply.answered(status: 200, reason: "", timestamp: nil)

/// The states of the table, each reached by the events that lead to it.
let states: [(name: String, machine: Reachability)] = [
    ("fresh", .fresh()),
    ("due", .after { _ = $0.changed(change(10), now: start) }),
    (
        "sending",
        .after {
            _ = $0.changed(change(10), now: start)
            _ = $0.claimWake(isBehind: true, claim: claim(1), now: start)
        }
    ),
    ("waiting", waiting),
    (
        "connected",
        .after {
            $0 = waiting
            _ = $0.connected(now: start + 5_000)
        }
    ),
    ("unreachable", unreachable),
    (
        "alert sending",
        .after {
            $0 = unreachable
            $0.alertsChanged(queued: 1, open: 1, due: start, now: start)
            _ = $0.claimAlert(choice(10), unread: 1, claim: claim(2), now: start)
        }
    ),
    (
        "alerted",
        .after {
            $0 = unreachable
            $0.alertsChanged(queued: 1, open: 1, due: start, now: start)
            _ = $0.claimAlert(choice(10), unread: 2, claim: claim(2), now: start)
            _ = $0.answer(ok, unread: 2)
        }
    ),
    ("tokenless", .fresh(token: nil)),
    (
        "online",
        .after {
            $0 = waiting
            $0.isSessionCounted = true
        }
    ),
    ("refresh off", .after { $0.isRefreshOff = true }),
]

let waiting = Reachability.after {
    _ = $0.changed(change(10), now: start)
    _ = $0.claimWake(isBehind: true, claim: claim(1), now: start)
    _ = $0.answer(ok)
}

let unreachable = Reachability.after {
    $0 = waiting
    _ = $0.graceEnded(isBehind: true, now: start + 60_000)
}

/// The events of the table; each happens at `later`.
let events: [(name: String, happen: @Sendable (inout Reachability) -> [WakeAction])] = [
    ("changed", { $0.changed(change(11), now: later) }),
    ("urgent", { $0.changed(change(11), urgency: .urgent, now: later) }),
    (
        "useful",
        {
            $0.usefulCame(change(12), now: later)
            return []
        }
    ),
    ("claimed behind", { $0.claimNext(isBehind: true) }),
    ("claimed not behind", { $0.claimNext(isBehind: false) }),
    ("accepted", { $0.answer(ok, now: later) }),
    (
        "dead token",
        {
            $0.answer(
                .answered(status: 410, reason: "Unregistered", timestamp: later), now: later)
        }
    ),
    (
        "retry later",
        {
            $0.answer(
                .answered(status: 503, reason: "ServiceUnavailable", timestamp: nil), now: later)
        }
    ),
    (
        "our bug",
        { $0.answer(.answered(status: 400, reason: "BadPriority", timestamp: nil), now: later) }
    ),
    ("unanswered", { $0.answer(.unanswered, now: later) }),
    ("not sent", { $0.answer(.notSent, now: later) }),
    ("lease ended", { $0.leaseEnded(now: later) }),
    ("grace ended behind", { $0.graceEnded(isBehind: true, now: later) }),
    ("grace ended not behind", { $0.graceEnded(isBehind: false, now: later) }),
    ("hello", { $0.connected(now: later) }),
    ("applied some", { $0.synced(applied: 9, isComplete: false, now: later) }),
    ("applied all", { $0.synced(applied: 10, isComplete: false, now: later) }),
    ("synced", { $0.synced(applied: 10, isComplete: true, now: later) }),
    ("session gone behind", { $0.sessionExpired(behind: change(11), unread: 1, now: later) }),
    ("session gone synced", { $0.sessionExpired(behind: nil, unread: 1, now: later) }),
    ("service away", { $0.serviceWasAway(now: later) }),
    ("token gone", { $0.tokenDetached(now: later) }),
    (
        "token new",
        { $0.tokenRegistered(generation: 2, now: later) }
    ),
    (
        "read elsewhere",
        {
            $0.badgeMayBeWrong(unread: 1, now: later)
            return []
        }
    ),
]

extension Reachability {
    /// A claim as the rules make it: of whatever is needed, else nothing.
    mutating func claimNext(isBehind: Bool) -> [WakeAction] {
        switch need(now: later) {
        case .wake: claimWake(isBehind: isBehind, claim: claim(3), now: later)
        case .alert:
            claimAlert(
                isBehind ? choice(10) : nil, unread: 1, claim: claim(3), now: later)
        case .badge: claimBadge(unread: 0, claim: claim(3), now: later)
        case nil: []
        }
    }

    /// One line: state, phase of the wake, push in flight, what is due and until when.
    var line: String {
        func since(_ time: Timestamp?) -> String {
            guard let time else { return "-" }
            return time < later
                ? "-\(later.since(time) / 1_000)" : "+\(time.since(later) / 1_000)"
        }
        return "\(state) \(row.phase) \(row.flight.map { "\($0)" } ?? "-")"
            + " due \(since(row.due)) deadline \(since(row.deadline))"
    }
}

extension WakeAction {
    /// As short as the table needs it.
    var word: String {
        switch self {
        case .send(let kind): "send-\(kind)"
        case .queueAlert(let due, let isUrgent):
            "queue-\(isUrgent ? "urgent" : "alert")"
                + (due > later ? "+\(due.since(later) / 1_000)" : "")
        case .alertPending: "alert-pending"
        case .settleAlert(_, let settlement): "settle-\(settlement)"
        case .settleCampaign(_, let settlement): "campaign-\(settlement)"
        case .dropAlerts: "drop-alerts"
        case .detachToken: "detach"
        case .demoted: "demoted"
        case .recovered: "recovered"
        case .note(_, .outcome(let outcome)): "=\(outcome.name)"
        case .note(_, .refused(let status, _)): "refused-\(status)"
        case .note(_, .sent): "sent"
        case .note(_, .accepted): "accepted"
        case .note(_, .connected): "connected"
        case .note(_, .synced): "synced"
        case .came(_, let latency): "came-\(latency / 1_000)"
        }
    }
}

/// Which cases must fail against which mutant: all of them, and no others.
///
/// `rouse-mutants --print-data` writes what it finds in this form; whether a case should notice is
/// for its reader to judge.
enum Expectations {
    static let catches: [String: Set<String>] = [
        "wrong-order": [
            "sync.order",
            "sync.restored",
            "sync.snapshot",
        ],
        "lost-entry": [
            "messaging.added-again",
            "messaging.block",
            "messaging.deleted-for-me",
            "messaging.hints",
            "messaging.in-sync",
            "messaging.joined",
            "messaging.positions",
            "sync.live",
            "sync.live-window",
            "sync.order",
            "sync.peek",
            "sync.snapshot",
            "sync.unread-everywhere",
            "sync.unread-muted",
            "sync.unread-own",
        ],
        "doubled-entry": [
            "sync.complete",
            "sync.live-window",
            "sync.order",
            "sync.page-bytes",
        ],
        "positions-with-gaps": [
            "history.as-the-feed",
            "history.snapshot-content",
            "messaging.block",
            "messaging.positions",
            "sync.order",
            "sync.peek-more",
            "sync.unread-everywhere",
        ],
        "hints-forgotten": [
            "messaging.hints",
            "messaging.hints-language",
        ],
        "peek-moves-the-cursor": [
            "sync.peek"
        ],
        "peek-oldest-first": [
            "sync.peek"
        ],
        "more-forgotten": [
            "sync.complete",
            "sync.head",
            "sync.page-bytes",
            "sync.peek-more",
            "sync.reset-once",
            "sync.snapshot",
            "sync.unread-everywhere",
        ],
        "to-is-the-head": [
            "history.snapshot-reset",
            "sync.complete",
            "sync.head",
            "sync.live-window",
            "sync.reset-once",
            "sync.snapshot",
        ],
        "reset-forgotten": [
            "history.snapshot-reset",
            "sync.cursor-ahead",
            "sync.no-cursor",
            "sync.other-epoch",
            "sync.reset-once",
        ],
        "reset-without-reason": [
            "sync.cursor-ahead",
            "sync.other-epoch",
        ],
        "floor-too-low": [
            "messaging.floor",
            "messaging.floor-everywhere",
            "messaging.in-sync",
            "messaging.numbers",
        ],
        "unread-too-high": [
            "history.snapshot-content",
            "messaging.read-beyond",
            "sync.unread",
            "sync.unread-blocked",
            "sync.unread-everywhere",
            "sync.unread-left",
            "sync.unread-muted",
            "sync.unread-own",
        ],
        "results-left-out": [
            "messaging.in-sync",
            "messaging.number-taken",
            "messaging.unanswered",
            "sync.other-epoch-mutations",
        ],
        "page-with-a-hole": [
            "history.object",
            "history.same-id",
            "history.window",
        ],
        "snapshot-loses-one": [
            "history.snapshot",
            "history.snapshot-content",
        ],
        "snapshot-without-number": [
            "history.snapshot",
            "history.snapshot-content",
        ],
        "digest-off": [
            "history.digest"
        ],
        "leaked-object": [
            "history.joined",
            "history.object",
            "history.out-of-reach",
        ],
        "sync-request-twice": [
            "sync.dormant",
            "sync.hint-in-background",
            "sync.request-follows",
            "sync.request-once",
        ],
        "sync-request-without-kinds": [
            "sync.request"
        ],
        "delta-unasked": [
            "history.snapshot-reset",
            "session.live-not-agreed",
            "sync.dormant",
            "sync.hint-in-background",
            "sync.live-after-sync",
            "sync.peek",
            "sync.request-once",
        ],
        "ack-ahead-unnoticed": [
            "connection.error-goes-on",
            "connection.retry-classes",
            "sync.ack-ahead",
        ],
        "no-supersede": [
            "session.supersede"
        ],
        "superseded-as-going-away": [
            "session.supersede"
        ],
        "expired-accepted": [
            "session.expired"
        ],
        "audience-ignored": [
            "session.identity-refused",
            "session.refusal-order",
        ],
        "signature-ignored": [
            "session.algorithm",
            "session.identity-refused",
        ],
        "nonce-ignored": [
            "session.identity-refused",
            "session.nonce",
            "session.refusal-order",
        ],
        "same-nonce": [
            "session.challenge-fresh",
            "session.identity-refused",
            "session.nonce",
        ],
        "challenge-always-first": [
            "messaging.logout",
            "session.asked-again",
            "session.challenge-revoked",
            "session.device-moves",
            "session.extension-token",
            "session.token-device",
        ],
        "token-of-any-device": [
            "session.token-device"
        ],
        "features-echoed": [
            "session.features"
        ],
        "version-ignored": [
            "connection.retry-classes",
            "session.version",
        ],
        "floods-as-limit": [
            "connection.error-flood",
            "connection.ping-flood",
            "connection.ping-flood-before-login",
        ],
        "error-instead-of-close": [
            "framing.unknown-enum",
            "session.hello-fields",
        ],
        "wrong-refusal-code": [
            "session.three-refusals"
        ],
        "logout-as-going-away": [
            "messaging.logout",
            "messaging.user-deleted",
            "session.device-moves",
            "session.revoked",
        ],
        "push-refusal-hidden": [
            "session.push-topic"
        ],
        "too-large-as-malformed": [
            "framing.body-after-welcome",
            "framing.body-before-welcome",
            "framing.header-alone",
            "framing.ignorable-checked",
            "framing.invalid-vectors",
        ],
        "unknown-as-violation": [
            "framing.fault-order",
            "framing.invalid-vectors",
            "framing.unknown-type",
        ],
        "limit-as-too-large": [
            "framing.elements-after-welcome",
            "framing.elements-before-welcome",
            "messaging.unanswered",
        ],
        "pong-without-request": [
            "connection.app-state",
            "connection.error-goes-on",
            "connection.ping",
            "connection.pong-unasked",
            "framing.body-after-welcome",
            "framing.body-before-welcome",
            "framing.elements-after-welcome",
            "framing.empty-body",
            "framing.known-ignorable",
            "framing.many-in-one",
            "framing.nothing-after-a-fault",
            "framing.pieces",
            "framing.request-numbers",
            "framing.stream-vectors",
            "framing.unknown-ignorable",
            "history.many",
            "messaging.announcement",
            "messaging.announcement-taken-back",
            "messaging.read-limits",
            "session.before-welcome",
            "session.extension-beside",
            "session.extension-refusals",
            "session.extension-user",
            "session.no-supersede-unauthenticated",
            "session.push-topic",
            "session.revoked",
            "session.supersede",
            "session.two-devices",
            "signals.not-agreed",
            "sync.ack-ahead",
            "sync.ack-older-connection",
            "sync.answer",
            "sync.dormant",
            "sync.extension-peeks",
            "sync.hint-in-background",
            "sync.request-once",
        ],
        "welcome-without-request": [
            "framing.last-value",
            "session.inline-sync",
            "session.request-numbers",
            "session.token-login",
        ],
        "retry-class-wrong": [
            "connection.retry-classes",
            "history.out-of-reach",
        ],
        "more-after-close": [
            "connection.error-flood",
            "connection.ping-flood",
            "connection.ping-flood-before-login",
            "connection.retry-classes",
            "framing.bad-utf8",
            "framing.body-after-welcome",
            "framing.body-before-welcome",
            "framing.cursor-without-epoch",
            "framing.elements-after-welcome",
            "framing.elements-before-welcome",
            "framing.fault-order",
            "framing.flags",
            "framing.header-alone",
            "framing.id-length",
            "framing.ignorable-checked",
            "framing.invalid-vectors",
            "framing.nothing-after-a-fault",
            "framing.reserved-byte",
            "framing.unknown-enum",
            "framing.unknown-type",
            "messaging.unanswered",
            "messaging.user-deleted",
            "session.app-name",
            "session.asked-again-other",
            "session.before-welcome",
            "session.device-moves",
            "session.extension-user",
            "session.hello-fields",
            "session.hello-first",
            "session.once",
            "session.revoked",
            "session.server-frames",
            "session.server-frames-later",
            "session.supersede",
            "session.suspended",
            "session.three-refusals",
            "session.version",
            "sync.cursor-ahead",
        ],
        "reserved-byte-set": [
            "framing.server-headers"
        ],
        "ignorable-refused": [
            "framing.stream-vectors",
            "framing.unknown-ignorable",
        ],
        "header-faults-ignored": [
            "framing.body-after-welcome",
            "framing.body-before-welcome",
            "framing.fault-order",
            "framing.flags",
            "framing.header-alone",
            "framing.ignorable-checked",
            "framing.invalid-vectors",
            "framing.nothing-after-a-fault",
            "framing.reserved-byte",
            "framing.unknown-type",
        ],
        "result-of-another-request": [
            "connection.retry-classes",
            "framing.oneof",
            "framing.pieces",
            "messaging.distinct",
            "messaging.floor",
            "messaging.numbers",
            "messaging.per-device",
            "messaging.refusal-repeated",
            "messaging.repeated-late",
            "messaging.result",
            "messaging.unknown-operation",
        ],
        "result-not-repeated": [
            "messaging.number-taken",
            "messaging.refusal-repeated",
            "messaging.repeated",
            "messaging.repeated-late",
            "sync.other-epoch-mutations",
        ],
        "welcome-floor-too-low": [
            "messaging.floor",
            "messaging.logout-numbers",
        ],
        "existence-told": [
            "messaging.ended",
            "messaging.refusal-repeated",
            "messaging.removed",
            "messaging.unknown-alike",
        ],
        "number-taken-unnoticed": ["messaging.number-taken"],
        "large-untold": ["messaging.large"],
        "epoch-unminded": [
            "messaging.floor-everywhere",
            "sync.other-epoch-mutations",
        ],
        "conflict-unnoticed": [
            "messaging.edited",
            "messaging.metadata",
        ],
    ]
}

/// Clients with one defect each, and the cases that must fail against them: all of those, and no
/// others. What each does is in Tests/peers/mutant.py.
enum ClientExpectations {
    struct Mutant {
        let name: String
        let what: String
        let needsTimers: Bool
        let catches: Set<String>

        init(_ name: String, _ what: String, timers: Bool = false, _ catches: Set<String>) {
            self.name = name
            self.what = what
            needsTimers = timers
            self.catches = catches
        }
    }

    static let mutants: [Mutant] = [
        Mutant("no-backoff", "tries again at once", timers: true, ["connection.client-backoff"]),
        Mutant(
            "backoff-without-chance", "waits the whole bound, always", timers: true,
            ["connection.client-backoff"]),
        Mutant(
            "backoff-never-forgets", "its bound never starts again", timers: true,
            ["connection.client-backoff-reset"]),
        Mutant(
            "ping-unanswered", "PING gets nothing",
            [
                "framing.client-ignorable", "sync.client-overlap", "connection.client-pong",
                "connection.client-error",
            ]),
        Mutant(
            "pong-of-no-request", "PONG carries no request",
            ["framing.client-ignorable", "connection.client-pong"]),
        Mutant(
            "keepalive-as-it-likes", "sends a frame when it likes", ["connection.client-keepalive"]),
        Mutant(
            "gap-applied", "applies whatever comes", ["sync.client-gap", "sync.client-other-epoch"]),
        Mutant(
            "claims-the-head", "takes the head for its cursor",
            [
                "sync.client-ack", "sync.client-durable", "sync.client-reset-epoch",
                "sync.client-reset-head", "sync.client-reset-killed", "sync.client-reset-old",
            ]),
        Mutant("counts-entries", "takes missing numbers for a gap", ["sync.client-numbers"]),
        Mutant(
            "reset-empties", "a reset empties it at once",
            ["sync.client-reset-epoch", "sync.client-reset-killed", "sync.client-reset-old"]),
        Mutant(
            "reset-head-unsaid", "does not tell at which head its rows began",
            ["sync.client-reset-head"]),
        Mutant(
            "reset-head-moves", "takes every page for the beginning of its rows",
            ["sync.client-reset-head"]),
        Mutant(
            "retry-under-a-new-number", "sends what is unanswered under a new number",
            ["session.client-challenged", "messaging.client-retry", "messaging.client-durable"]),
        Mutant(
            "taken-number-final", "takes another life's result for its own",
            ["sync.client-reset-mutations", "messaging.client-below-floor"]),
        Mutant(
            "floor-unminded", "sends what is above the floor beside what is below",
            ["messaging.client-below-floor"]),
        Mutant(
            "acks-another-epoch", "acknowledges an old history to a new one",
            ["sync.client-ack-epoch"]),
        Mutant(
            "outbox-in-memory", "its outbox ends with the process", ["messaging.client-durable"]),
        Mutant(
            "drain-at-once", "comes at once after DRAIN",
            ["connection.client-drain", "connection.client-drain-cut"]),
        Mutant(
            "drain-ignored", "does not come after DRAIN",
            ["connection.client-drain", "connection.client-drain-cut"]),
        Mutant(
            "superseded-comes-back", "comes back after 5002",
            ["session.client-superseded", "session.client-superseded-often"]),
        Mutant(
            "class-ignored", "takes every unknown code for class retry",
            [
                "connection.client-class-none", "connection.client-class-retry-after",
                "connection.client-class-reauthenticate", "connection.client-class-upgrade",
            ]),
        Mutant(
            "retry-after-ignored", "does not wait as long as it is told",
            ["connection.client-class-retry-after", "connection.client-limited"]),
        Mutant(
            "unknown-frame-taken", "takes a frame it does not know",
            ["framing.client-unknown-type", "framing.client-unknown-type-code"]),
        Mutant("ignorable-refused", "refuses a frame to ignore", ["framing.client-ignorable"]),
        Mutant(
            "wrong-close-code", "says a wrong code",
            [
                "framing.client-unknown-type-code", "framing.client-flags-code",
                "framing.client-reserved-code", "framing.client-too-long-code",
                "framing.client-no-body-code",
            ]),
        Mutant("signal-never-ends", "signals last", ["signals.client-decay"]),
        Mutant(
            "sent-twice-after-a-challenge", "sends what is open once more after a second WELCOME",
            ["session.client-challenged"]),
        Mutant(
            "inline-sync-not-repeated", "takes the dropped inline SYNC for open",
            [
                "framing.client-split", "session.client-login", "sync.client-ack",
                "sync.client-reset-wait",
            ]),
        Mutant("two-syncs", "sends a SYNC while one is open", ["sync.client-one-sync"]),
        Mutant(
            "orphans-dropped", "drops messages of an unknown conversation",
            ["sync.client-orphan", "history.client-parent"]),
        Mutant(
            "tombstones-ignored", "deletes nothing",
            ["messaging.client-deleted", "messaging.client-conversation-deleted"]),
        Mutant(
            "token-in-memory", "its token ends with the process", ["session.client-token-durable"]),
        Mutant(
            "cursor-before-rows", "stores its cursor before the rows",
            ["sync.client-durable", "sync.client-reset-killed"]),
        Mutant("page-moves-the-cursor", "a PAGE moves its cursor", ["history.client-page"]),
        Mutant("older-version-wins", "takes whatever comes last", ["sync.client-version"]),
        Mutant(
            "refused-sent-at-once", "does not wait after a refusal", ["messaging.client-temporary"]),
        Mutant("read-told-once", "tells a receipt once", ["messaging.client-read"]),
        Mutant(
            "hints-dropped", "shows the text of a push and nothing else of it",
            ["push.client-notice"]),
        Mutant("sleeps-without-a-word", "closes without CLOSE", ["connection.client-sleep"]),
        Mutant(
            "logs-in-after-logout", "takes 2004 for nothing but a lost login",
            ["session.client-logout"]),
    ]
}

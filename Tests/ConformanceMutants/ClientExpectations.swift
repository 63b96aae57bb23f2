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
        Mutant("no-backoff", "tries again at once", timers: true, []),
        Mutant("backoff-without-chance", "waits the whole bound, always", timers: true, []),
        Mutant("backoff-never-forgets", "its bound never starts again", timers: true, []),
        Mutant("ping-unanswered", "PING gets nothing", []),
        Mutant("pong-of-no-request", "PONG carries no request", []),
        Mutant("keepalive-as-it-likes", "sends a frame when it likes", []),
        Mutant("gap-applied", "applies whatever comes", []),
        Mutant("claims-the-head", "takes the head for its cursor", []),
        Mutant("counts-entries", "takes missing numbers for a gap", []),
        Mutant("reset-empties", "a reset empties it at once", []),
        Mutant("retry-under-a-new-number", "sends what is unanswered under a new number", []),
        Mutant("outbox-in-memory", "its outbox ends with the process", []),
        Mutant("drain-at-once", "comes at once after DRAIN", []),
        Mutant("drain-ignored", "does not come after DRAIN", []),
        Mutant("superseded-comes-back", "comes back after 5002", []),
        Mutant("class-ignored", "takes every unknown code for class retry", []),
        Mutant("retry-after-ignored", "does not wait as long as it is told", []),
        Mutant("unknown-frame-taken", "takes a frame it does not know", []),
        Mutant("ignorable-refused", "refuses a frame to ignore", []),
        Mutant("wrong-close-code", "says a wrong code", []),
        Mutant("signal-never-ends", "signals last", []),
        Mutant(
            "sent-twice-after-a-challenge", "sends what is open once more after a second WELCOME",
            []),
        Mutant("inline-sync-not-repeated", "takes the dropped inline SYNC for open", []),
        Mutant("two-syncs", "sends a SYNC while one is open", []),
        Mutant("orphans-dropped", "drops messages of an unknown conversation", []),
        Mutant("tombstones-ignored", "deletes nothing", []),
        Mutant("token-in-memory", "its token ends with the process", []),
        Mutant("cursor-before-rows", "stores its cursor before the rows", []),
        Mutant("page-moves-the-cursor", "a PAGE moves its cursor", []),
        Mutant("older-version-wins", "takes whatever comes last", []),
        Mutant("refused-sent-at-once", "does not wait after a refusal", []),
        Mutant("read-told-once", "tells a receipt once", []),
        Mutant("sleeps-without-a-word", "closes without CLOSE", []),
        Mutant("logs-in-after-logout", "takes 2004 for nothing but a lost login", []),
    ]
}

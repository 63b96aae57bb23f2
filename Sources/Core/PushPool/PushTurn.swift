import Feed
import Model
import Wake

/// One input being handled: by which clocks, and what it leads to.
struct PushTurn {
    let moment: PushMoment
    let configuration: PushGatewayConfiguration
    /// For jitter.
    var chance: SplitMix64
    var actions: [PushAction] = []
    /// Keys that APNs wants fewer provider tokens of: all credentials with them are to rest.
    var resting: [(key: ProviderKey, pause: Milliseconds, reason: String)] = []

    var now: Instant { moment.now }

    mutating func finish(_ push: HeldPush, _ reply: PushReply, keepsToken: Bool = false) {
        actions.append(.finish(PushFinish(push: push, reply: reply, keepsToken: keepsToken)))
    }

    mutating func tell(_ place: PushPlace, _ report: PushReport) {
        actions.append(.tell(place, report))
    }

    mutating func tell(_ report: CredentialReport, of pool: CredentialPool) {
        tell(pool.place(), .credential(report))
    }
}

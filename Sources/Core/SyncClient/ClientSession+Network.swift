public import Model
import Wire

// The device is somewhere else: on another network, or in another place of the world.
extension ClientSession {
    /// Another network, or one after none: the connection may be dead without knowing. It is asked
    /// at once; without any frame within `networkTimeout`, another is made without back-off.
    public mutating func networkChanged(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        backoff.reset()
        switch phase {
        case .idle: break
        case .waiting: connectNow(now: now, &actions)
        case .open:
            // A network that comes and goes does not put off the end of a dead connection.
            if !isOnNewNetwork { ping(now: now, &actions) }
            isOnNewNetwork = true
        case .connecting, .opening, .authenticating:
            leaveConnection(&actions)
            connectNow(now: now, &actions)
        }
        return actions
    }

    /// When a PING without any frame since shows that the connection is dead.
    var pongDue: Instant? {
        pingedAt.map { $0 + (isOnNewNetwork ? limits.networkTimeout : limits.pingTimeout) }
    }

    /// What SES-25 has changed. The server chooses the texts and the hour of alerts by it and hears
    /// it in a HELLO alone, so that one is said anew, where that can be, as for a push token.
    public mutating func setPlace(_ place: ClientPlace, now: Instant) -> [ClientAction] {
        configuration.place = place
        var actions: [ClientAction] = []
        presentPlace(now: now, &actions)
        return actions
    }

    mutating func presentPlace(now: Instant, _ actions: inout [ClientAction]) {
        guard configuration.place != presentedPlace, configuration.role == .app, !isLeaving,
            appState.phase != .inactive
        else { return }
        switch phase {
        case .idle, .waiting, .connecting: return
        case .opening, .authenticating: break
        case .open:
            guard slotAt == nil else { return }
            // What brought the app to connect was told with the HELLO before.
            syncReason = .connect
        }
        leaveConnection(&actions)
        connectNow(now: now, &actions)
    }

    /// A wait that the server asks for, as far as it counts.
    func asked(_ milliseconds: UInt32) -> Milliseconds {
        min(Milliseconds(milliseconds), limits.longestWait)
    }

    /// CON-7: a faster PING tells nothing more, and costs the battery.
    func interval(_ milliseconds: UInt32) -> Milliseconds {
        max(Milliseconds(milliseconds), limits.keepaliveLeast)
    }

    /// How long after a DRAIN this client connects again: later than its slot where it came here
    /// because of another DRAIN a moment ago.
    mutating func slot(of drain: Drain, now: Instant) -> Milliseconds {
        let isAgain = drainedAt.map { now.since($0) < 60_000 } ?? false
        drainedAt = now
        return max(asked(drain.slotMs), isAgain ? limits.drainedAgain : 0)
    }

    /// Each CHALLENGE costs the app's backend a token. A client that is challenged without end
    /// gives the connection up, and waits ever longer before the next.
    mutating func mayBeChallenged(now: Instant) -> Bool {
        challengedAt.removeAll { now.since($0) > 60_000 }
        guard challengedAt.count < limits.challengesPerMinute else { return false }
        challengedAt.append(now)
        return true
    }

    /// The server takes no client of this version (CON-11).
    mutating func stop(now: Instant, _ actions: inout [ClientAction]) {
        isStopped = true
        stoppedAt = now
        actions.append(.report(.upgradeRequired))
    }
}

/// Where the person is, and in what language the app speaks to them, as `Hello` has it (SES-25).
public struct ClientPlace: Equatable, Sendable {
    /// A BCP 47 tag; empty: it is not said.
    public var locale: String
    /// The zone's name (IANA); empty: it is not said.
    public var timeZone: String
    /// Minutes east of UTC plus 1,440; 0: it is not said.
    public var utcOffset: UInt32

    public init(locale: String = "", timeZone: String = "", utcOffset: UInt32 = 0) {
        self.locale = locale
        self.timeZone = timeZone
        self.utcOffset = utcOffset
    }

    /// - Parameter secondsFromUTC: east of it.
    public init(locale: String, timeZone: String, secondsFromUTC: Int) {
        let minutes = 1_440 + secondsFromUTC / 60
        self.init(
            locale: locale, timeZone: timeZone,
            utcOffset: (1...2_880).contains(minutes) ? UInt32(minutes) : 0)
    }
}

public import Model

/// The rules of a connection as data; CHECKS.md has them as a table. How streams and frames are
/// judged is HTTP/2's own (RFC 9113); what is beyond it is in `ConnectionState`.
public enum ConnectionRule: String, Codable, Sendable, CaseIterable {
    /// The handshake fails.
    case tlsVersion = "tls_version"
    /// The handshake fails: RFC 7301, no_application_protocol.
    case tlsProtocol = "tls_protocol"
    /// GOAWAY BadCertificate.
    case certificate
    /// GOAWAY BadCertificateEnvironment.
    case certificateEnvironment = "certificate_environment"
    /// One stream until a provider token was accepted; RST_STREAM REFUSED_STREAM before the client
    /// has acknowledged SETTINGS, GOAWAY PROTOCOL_ERROR after it.
    case streams
    /// SETTINGS with one stream after a 4xx but 410, until the next 200.
    case throttle
    /// GOAWAY ENHANCE_YOUR_CALM when too many requests were refused.
    case errorBudget = "error_budget"
    /// RST_STREAM PROTOCOL_ERROR: neither `:authority` nor `host` (RFC 9113 8.3.1).
    case authority
    /// RST_STREAM ENHANCE_YOUR_CALM: header fields of over 16 KiB.
    case headerSize = "header_size"
    /// GOAWAY ENHANCE_YOUR_CALM.
    case pingFlood = "ping_flood"
    /// GOAWAY IdleTimeout, if the limits have a time for it.
    case idle
    /// The address is shut out for a while: connections are closed as they come.
    case churn
    /// GOAWAY ENHANCE_YOUR_CALM: a lint of the connection, with `strict`.
    case lint
}

/// What is to be done with a connection.
public enum ConnectionReaction: Equatable, Sendable {
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    case allow(streams: UInt32)
    /// GOAWAY with this reason; open streams are still answered.
    case end(ConnectionRule, reason: String, isCalm: Bool)
    case lint(Lint)
}

/// What APNs remembers of one connection. A plain value.
public struct ConnectionState: Equatable, Sendable {
    public let environment: APNsEnvironment
    /// The client certificate that was presented and is known.
    public internal(set) var certificate: SimulatorState.Certificate?
    /// The first accepted provider token binds the connection to its team, to the family of its
    /// key, and to the topics this key has.
    public internal(set) var team: String?
    var keyFamily: String?
    var keyTopics: Set<String>?
    /// The provider token last accepted, and when it was new here.
    var providerToken: String?
    var keyID: String?
    var issuedAt = Timestamp(milliseconds: 0)
    var tokenSince: Timestamp?

    private var isThrottled = false
    private var allowed: UInt32 = 1
    private var spent = 0
    private var lastHeard: Timestamp?
    private var idleAfter = SimulatorLimits().idleMilliseconds
    private var pingStart = Timestamp(milliseconds: 0)
    private var pings = 0

    /// Whether a provider token was accepted, or a certificate: more than one stream is allowed.
    public var isProven: Bool { providerToken != nil || certificate != nil }

    public init(environment: APNsEnvironment) { self.environment = environment }

    /// The handshake is done.
    ///
    /// - Returns: the streams to begin with.
    public mutating func opened(
        certificate: SimulatorState.Certificate?, limits: SimulatorLimits, now: Timestamp
    ) -> UInt32 {
        self.certificate = certificate
        idleAfter = limits.idleMilliseconds
        lastHeard = now
        allowed = isProven ? limits.streams : limits.unprovenStreams
        return allowed
    }

    // MARK: Answers

    /// A request gets this answer.
    public mutating func answered(
        _ status: Int, _ reason: String?, limits: SimulatorLimits
    ) -> [ConnectionReaction] {
        var reactions: [ConnectionReaction] = []
        let isError = (400...499).contains(status) && status != 410
        if isError {
            isThrottled = limits.throttlesErrors
            let cost = reason == Refusal.badDeviceToken.rawValue ? limits.badDeviceTokenCost : 1
            spent += max(0, cost)
        } else if status == 200 {
            isThrottled = false
            spent = max(0, spent - 1)
        }
        let wanted =
            isThrottled ? 1 : isProven ? limits.streams : min(allowed, limits.unprovenStreams)
        if wanted != allowed {
            allowed = wanted
            reactions.append(.allow(streams: wanted))
        }
        if isError, spent >= limits.errorBudget {
            reactions.append(.end(.errorBudget, reason: reason ?? "", isCalm: true))
        }
        return reactions
    }

    // MARK: Silence

    /// It was silent for so long that a PING would have been wise.
    func isIdle(now: Timestamp) -> Bool {
        lastHeard.map { now.since($0) > idleAfter } ?? false
    }

    /// A request came.
    mutating func heard(now: Timestamp) {
        lastHeard = now
        pings = 0
    }

    /// A PING came.
    public mutating func pinged(
        limits: SimulatorLimits, now: Timestamp
    ) -> [ConnectionReaction] {
        lastHeard = now
        idleAfter = limits.idleMilliseconds
        if now.since(pingStart) >= limits.pingMilliseconds || now < pingStart {
            pingStart = now
            pings = 0
        }
        pings = min(pings + 1, limits.pingsMax)
        if pings >= limits.pingsMax {
            return [.end(.pingFlood, reason: "", isCalm: true)]
        }
        // Once in each time that counts.
        return pings == limits.pingsNoted ? [.lint(.pingTooOften)] : []
    }

    /// When it ends for its silence; `nil`: never.
    public func idleEnd(_ limits: SimulatorLimits) -> Timestamp? {
        guard let timeout = limits.idleTimeout else { return nil }
        return lastHeard.map { $0 + timeout }
    }
}

/// Connections that come and go, by the address they come from. A plain value.
public struct ConnectionChurn: Equatable, Sendable {
    private struct Visitor: Equatable {
        var start: Timestamp
        var count = 0
        var blockedUntil = Timestamp(milliseconds: 0)
    }

    private static let visitorsMax = 1_000
    private var visitors: [String: Visitor] = [:]

    public init() {}

    /// Whether the address is shut out.
    public func isBlocked(_ address: String, now: Timestamp) -> Bool {
        visitors[address].map { now < $0.blockedUntil } ?? false
    }

    /// A provider ended a connection that it had opened at `openedAt`. True: a lint.
    public mutating func ended(
        _ address: String, openedAt: Timestamp, limits: SimulatorLimits, now: Timestamp
    ) -> Bool {
        guard now.since(openedAt) < limits.churnMilliseconds else { return false }
        if visitors.count >= Self.visitorsMax, visitors[address] == nil { visitors = [:] }
        var visitor = visitors[address] ?? Visitor(start: now)
        if now.since(visitor.start) >= limits.churnMilliseconds || now < visitor.start {
            visitor.start = now
            visitor.count = 0
        }
        visitor.count += 1
        if visitor.count >= limits.churnMax {
            visitor.blockedUntil = now + limits.blockMilliseconds
            visitor.count = 0
        }
        visitors[address] = visitor
        return visitor.count == limits.churnNoted
    }
}

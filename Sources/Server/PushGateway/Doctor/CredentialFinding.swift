import Crypto
import Feed
import Model
import PushPool

/// One thing that was looked at on a push credential.
public struct CredentialFinding: Equatable, Sendable {
    /// What: `key`, `certificate`, `expiry`, `endpoint`, `connection`, `clock` or `topic`.
    public var check: String
    public var isGood: Bool
    /// In plain words; of a bad one also what to do.
    public var text: String

    init(_ check: String, _ isGood: Bool, _ text: String) {
        self.check = check
        self.isGood = isGood
        self.text = text
    }
}

/// What can be said without a connection.
struct CredentialReading {
    let credential: PushCredentialRecord
    /// Milliseconds since 1970.
    let wall: UInt64

    /// A certificate is told of so many days before its end.
    private static let warningDays: Int64 = 30

    var findings: [CredentialFinding] {
        (credential.certificatePEM.map { certificate($0) } ?? key)
            + [endpoint, otherTopics].compactMap { $0 }
    }

    /// No push is sent to them, and none is tried out: APNs would refuse it.
    private var otherTopics: CredentialFinding? {
        let others = credential.topicsByUse.others
        guard !others.isEmpty else { return nil }
        return CredentialFinding(
            "topic", true,
            "\(others.joined(separator: ", ")): of push types that are not sent; not used")
    }

    private var key: [CredentialFinding] {
        do throws(UnusableKey) {
            _ = try ProviderSigner(
                ProviderKey(
                    team: credential.team, keyID: credential.keyID,
                    pem: credential.privateKeyPEM))
        } catch {
            return [CredentialFinding("key", false, "it cannot sign: \(error.description)")]
        }
        let isApples = credential.host.hasSuffix(".apple.com")
        for (what, text) in [("key id", credential.keyID), ("team id", credential.team)]
        where isApples && text.utf8.count != 10 {
            return [
                CredentialFinding(
                    "key", false, "the \(what) `\(text)` has not 10 characters, as Apple's have")
            ]
        }
        return [
            CredentialFinding(
                "key", true, "key \(credential.keyID) of team \(credential.team) signs")
        ]
    }

    private func certificate(_ pem: String) -> [CredentialFinding] {
        let certificate: PushCertificate
        do throws(TLSError) {
            certificate = try PushCertificate(
                chain: Array(pem.utf8), privateKey: Array(credential.privateKeyPEM.utf8))
        } catch {
            let text =
                switch error {
                case .certificateExpired: "it has expired: make another one at Apple's site"
                case .certificateNotYetValid: "it is not valid yet: is this host's clock right?"
                case .keyMismatch: "the key is not the certificate's"
                default: "\(error)"
                }
            return [CredentialFinding("certificate", false, text)]
        }
        var findings: [CredentialFinding] = []
        let topics = credential.topics.split(separator: "\n").map(String.init)
        let foreign = topics.filter { !certificate.topics.contains($0) }
        findings.append(
            foreign.isEmpty
                ? CredentialFinding(
                    "certificate", true, "it is for \(certificate.topics.joined(separator: ", "))")
                : CredentialFinding(
                    "certificate", false,
                    "it is not for \(foreign.joined(separator: ", ")), only for "
                        + certificate.topics.joined(separator: ", ")))
        let says = certificate.isForDevelopment || certificate.isForProduction
        let fits =
            credential.environment == .production
            ? certificate.isForProduction : certificate.isForDevelopment
        if says, !fits {
            findings.append(
                CredentialFinding(
                    "certificate", false,
                    "it is not for the environment \(credential.environment)"))
        }
        let days = (certificate.notAfter - Int64(clamping: wall)) / 86_400_000
        findings.append(
            CredentialFinding(
                "expiry", days >= 0,
                days < 0
                    ? "it has expired"
                    : "it ends in \(days) days"
                        + (days < Self.warningDays ? ": make another one soon" : "")))
        return findings
    }

    /// Whether an endpoint of Apple's is that of the environment.
    private var endpoint: CredentialFinding? {
        let production = ["api.push.apple.com"]
        let development = ["api.sandbox.push.apple.com", "api.development.push.apple.com"]
        let (own, other) =
            credential.environment == .production
            ? (production, development) : (development, production)
        if other.contains(credential.host) {
            return CredentialFinding(
                "endpoint", false,
                "\(credential.host) is not of \(credential.environment): every token would be "
                    + "called wrong; use \(own[0])")
        }
        return nil
    }
}

/// What APNs' answer to a push to an impossible token says of the credential.
struct CredentialVerdict {
    let credential: PushCredentialRecord
    let topic: String

    func finding(_ response: PushResponse) -> CredentialFinding {
        let isKey = credential.certificatePEM == nil
        let own = isKey ? "key \(credential.keyID) of team \(credential.team)" : "the certificate"
        let environment = "\(credential.environment)"
        func good(_ text: String) -> CredentialFinding { CredentialFinding("topic", true, text) }
        func bad(_ check: String, _ text: String) -> CredentialFinding {
            CredentialFinding(check, false, "\(text) (\(response.status) \(response.reason))")
        }
        switch response.reason {
        case "BadDeviceToken":
            // It is looked at last: all else was right.
            return good("APNs takes pushes of \(own) for \(topic) in \(environment)")
        case "InvalidProviderToken":
            return bad(
                "key",
                "APNs does not believe \(own): the key id, the team id and the key file must "
                    + "belong together, and the key must not be revoked")
        case "ExpiredProviderToken":
            return bad("clock", "APNs calls a new provider token too old: set this host's clock")
        case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
            return bad("endpoint", "\(own) is not for \(environment)")
        case "UnrelatedKeyIdInToken":
            return bad("key", "\(own) is not related to the connection's first key")
        case "TopicDisallowed", "DeviceTokenNotForTopic":
            return bad("topic", "\(own) may not push to \(topic): is the bundle id right?")
        case "BadTopic", "MissingTopic":
            return bad("topic", "\(topic) is no topic APNs knows: is the bundle id right?")
        case "BadCertificate":
            return bad("certificate", "APNs does not take the certificate")
        case "BadCertificateEnvironment":
            return bad("endpoint", "the certificate is not for \(environment)")
        case "Forbidden": return bad("key", "APNs forbids \(own) to push")
        case "MissingProviderToken":
            return bad("certificate", "APNs has seen no certificate of ours")
        case "TooManyProviderTokenUpdates":
            return bad(
                "key",
                "another process makes provider tokens of \(own); all must share one: wait 20 "
                    + "minutes")
        default: break
        }
        switch response.status {
        case 200:
            return bad(
                "endpoint",
                "\(credential.host) takes a push to a token that cannot exist: is it APNs?"
            )
        case 500...: return bad("connection", "APNs has a fault of its own: try again later")
        default: return bad("topic", "APNs refuses a push to \(topic)")
        }
    }

    /// What the end of a connection before any answer says.
    func finding(_ end: ConnectionEnd) -> CredentialFinding {
        let host = credential.host
        switch end {
        case .tls(.alertReceived(let alert)) where credential.certificatePEM != nil:
            return CredentialFinding(
                "certificate", false,
                "\(host) refuses the certificate in the handshake (TLS alert \(alert))")
        case .tls(.peerCertificate(.untrusted)):
            return CredentialFinding(
                "connection", false,
                "the certificate of \(host) does not lead to a trusted authority: install the "
                    + "system's authorities (Apple's is USERTrust RSA), or check the "
                    + "credential's trusted certificates")
        case .tls(.peerCertificate(.expired)), .tls(.peerCertificate(.notYetValid)):
            return CredentialFinding("clock", false, end.explanation(host: host))
        default:
            return CredentialFinding(
                "connection", false,
                "no connection to \(host):\(credential.port): \(end.explanation(host: host))")
        }
    }

    /// - Parameter skew: seconds this host is ahead of APNs.
    static func clock(skew: Int64) -> CredentialFinding {
        let minutes = abs(skew) / 60
        guard minutes >= 5 else { return CredentialFinding("clock", true, "the clock is right") }
        return CredentialFinding(
            "clock", false,
            "this host's clock is \(minutes) minutes \(skew > 0 ? "ahead of" : "behind") "
                + "APNs': set it, or provider tokens are refused")
    }
}

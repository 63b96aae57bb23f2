import Crypto
import Feed
import HTTP1
import Model
import Wire

/// An app's APNs credentials: keys and certificates, by environment and name.
enum PushRoutes {
    static let all: [Route] = [
        Route("GET", "/push", .open(status)),
        Route("PUT", "/apps/{app}/push/{environment}", query: ["new"], .open(set)),
        Route("PUT", "/apps/{app}/push/{environment}/{name}", query: ["new"], .open(set)),
        Route("DELETE", "/apps/{app}/push/{environment}", .open(remove)),
        Route("DELETE", "/apps/{app}/push/{environment}/{name}", .open(remove)),
    ]

    /// How it stands with each credential of a running server.
    static func status(_ call: Call) throws(Problem) -> Step {
        .answer(
            .json(200, PushStatusListBody(credentials: call.surroundings.pushStatus())))
    }

    /// Replaces the credential of its name, if there is one; with `new=true` it is refused instead.
    static func set(_ call: Call) throws(Problem) -> Step {
        let app = try call.configuration().app.app
        let environment = try environment(call)
        let name = try name(call)
        let isNew = try call.flag("new")
        let body = try call.body(NewPushCredential.self)
        try body.certificate?.check(environment)
        let record = PushCredentialRecord(
            app: app, environment: environment, name: name, keyID: body.keyID, team: body.team,
            privateKeyPEM: body.privateKeyPEM, topics: body.topics.joined(separator: "\n"),
            host: body.host ?? environment.defaultHost, port: body.port ?? 443,
            trustedCertificatesPEM: body.trustedCertificatesPEM, changedAt: call.now,
            certificatePEM: body.certificatePEM)
        return .commit(.administer(.putPushCredential(record, isNew: isNew))) { _ in
            .answer(.json(200, PushCredentialBody(record)))
        }
    }

    static func remove(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let environment = try environment(call)
        let key = CredentialKey(
            app: configuration.app.app, environment: environment, name: try name(call))
        guard configuration.pushCredentials.contains(where: { CredentialKey($0) == key })
        else {
            throw Problem(
                .notFound, "the app has no push credential \(key.name) for \(environment.name)")
        }
        let request = Administration.removePushCredential(key)
        return .commit(.administer(request)) { _ in .answer(HTTPResponse(status: 204)) }
    }

    private static func name(_ call: Call) throws(Problem) -> String {
        guard let name = call.parameters["name"] else { return PushCredentialRecord.plainName }
        guard (1...64).contains(name.utf8.count),
            name.utf8.allSatisfy({ NewPushCredential.isWordByte($0) || $0 == 0x2D })
        else { throw .malformed("name: must be 1 to 64 letters, digits and -") }
        return name
    }

    private static func environment(_ call: Call) throws(Problem) -> PushEnvironmentKind {
        let name = call.parameter("environment")
        guard let environment = PushEnvironmentKind.allCases.first(where: { $0.name == name })
        else { throw .malformed("environment: must be production or development") }
        return environment
    }
}

extension PushCertificate {
    /// Older certificates do not say what they are for.
    fileprivate func check(_ environment: PushEnvironmentKind) throws(Problem) {
        guard isForDevelopment || isForProduction else { return }
        let fits = environment == .production ? isForProduction : isForDevelopment
        guard fits else {
            throw .malformed(
                "certificate_pem: the certificate is not for \(environment.name)")
        }
    }
}

extension PushEnvironmentKind {
    /// Apple, "Sending notification requests to APNs", "Establish a connection".
    fileprivate var defaultHost: String {
        switch self {
        case .production: "api.push.apple.com"
        case .development: "api.sandbox.push.apple.com"
        }
    }
}

struct NewPushCredential: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case keyID = "key_id"
        case team
        case privateKeyPEM = "private_key_pem"
        case certificatePEM = "certificate_pem"
        case topics, host, port
        case trustedCertificatesPEM = "trusted_certificates_pem"
    }

    static let topicsMax = 16

    /// Both empty with a certificate.
    let keyID: String
    let team: String
    let privateKeyPEM: String
    let certificatePEM: String?
    /// What the certificate says.
    let certificate: PushCertificate?
    let topics: [String]
    let host: String?
    let port: UInt64?
    let trustedCertificatesPEM: String?

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        certificatePEM = try fields.text(
            .certificatePEM, bytes: 1...(64 * 1024), lines: true)
        if let certificatePEM {
            guard try fields.text(.keyID, bytes: 1...64) == nil,
                try fields.text(.team, bytes: 1...64) == nil
            else {
                throw fields.refusal(.keyID, "a certificate has neither key_id nor team")
            }
            (keyID, team) = ("", "")
            privateKeyPEM = try fields.required(.privateKeyPEM, String.self)
            certificate = try Self.certificate(certificatePEM, privateKeyPEM, fields)
        } else {
            keyID = try Self.word(fields, .keyID)
            team = try Self.word(fields, .team)
            privateKeyPEM = try Self.privateKey(fields)
            certificate = nil
        }
        topics = try Self.topics(fields, certificate)
        guard (1...Self.topicsMax).contains(topics.count), topics.allSatisfy(Self.isTopic) else {
            throw fields.refusal(
                .topics, "must be 1 to \(Self.topicsMax) bundle ids (letters, digits, - and .)")
        }
        host = try fields.text(.host, bytes: 1...253)
        port = try fields.number(.port, in: 1...65_535)
        trustedCertificatesPEM = try Self.certificates(fields)
    }

    /// A certificate names its topics itself; those given must be among them.
    private static func topics(
        _ fields: Fields<Key>, _ certificate: PushCertificate?
    ) throws -> [String] {
        guard let certificate else { return try fields.required(.topics, [String].self) }
        guard let topics = try fields.optional(.topics, [String].self) else {
            return certificate.topics
        }
        let foreign = topics.filter { !certificate.topics.contains($0) }
        guard foreign.isEmpty else {
            throw fields.refusal(
                .topics,
                "the certificate is not for \(foreign.joined(separator: ", ")), only for "
                    + certificate.topics.joined(separator: ", "))
        }
        return topics
    }

    private static func certificate(
        _ pem: String, _ key: String, _ fields: Fields<Key>
    ) throws -> PushCertificate {
        let certificate: PushCertificate
        do {
            certificate = try PushCertificate(
                chain: Array(pem.utf8), privateKey: Array(key.utf8))
        } catch .certificateExpired {
            throw fields.refusal(.certificatePEM, "has expired")
        } catch .keyMismatch {
            throw fields.refusal(.privateKeyPEM, "is not the certificate's key")
        } catch .invalidPrivateKey {
            throw fields.refusal(.privateKeyPEM, "must be an unencrypted key in PEM")
        } catch {
            throw fields.refusal(.certificatePEM, "must be a certificate in PEM: \(error)")
        }
        guard !certificate.topics.isEmpty else {
            throw fields.refusal(
                .certificatePEM, "names no topic: it is not a certificate for Apple's push service")
        }
        return certificate
    }

    /// Ten characters at Apple; any word here, for other endpoints.
    private static func word(_ fields: Fields<Key>, _ key: Key) throws -> String {
        let word = try fields.required(key, String.self)
        guard (1...64).contains(word.utf8.count), word.utf8.allSatisfy(isWordByte) else {
            throw fields.refusal(key, "must be 1 to 64 letters and digits")
        }
        return word
    }

    private static func isTopic(_ topic: String) -> Bool {
        (1...255).contains(topic.utf8.count)
            && topic.utf8.allSatisfy { isWordByte($0) || $0 == 0x2D || $0 == 0x2E }
    }

    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }

    /// Apple's provider tokens are ES256 (Apple, "Establishing a token-based connection").
    private static func privateKey(_ fields: Fields<Key>) throws -> String {
        let pem = try fields.required(.privateKeyPEM, String.self)
        guard let key = try? PrivateKey(pem: Array(pem.utf8)), key.kind == .p256 else {
            throw fields.refusal(
                .privateKeyPEM, "must be an unencrypted P-256 key in PEM, as in Apple's .p8 file")
        }
        return key.pem
    }

    private static func certificates(_ fields: Fields<Key>) throws -> String? {
        let text = try fields.text(
            .trustedCertificatesPEM, bytes: 1...(256 * 1024), lines: true)
        guard let text else { return nil }
        do {
            _ = try TLSContext.client(trustedCertificates: Array(text.utf8), protocols: [])
        } catch {
            throw fields.refusal(.trustedCertificatesPEM, "must be certificates in PEM")
        }
        return text
    }
}

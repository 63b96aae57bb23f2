import Crypto
import Feed
import HTTP1
import Model
import Wire

/// An app's APNs credentials, one for each environment.
enum PushRoutes {
    static let all: [Route] = [
        Route("PUT", "/apps/{app}/push/{environment}", .open(set)),
        Route("DELETE", "/apps/{app}/push/{environment}", .open(remove)),
    ]

    static func set(_ call: Call) throws(Problem) -> Step {
        let app = try call.configuration().app.app
        let environment = try environment(call)
        let body = try call.body(NewPushCredential.self)
        let record = PushCredentialRecord(
            app: app, environment: environment, keyID: body.keyID, team: body.team,
            privateKeyPEM: body.privateKeyPEM, topics: body.topics.joined(separator: "\n"),
            host: body.host ?? environment.defaultHost, port: body.port ?? 443,
            trustedCertificatesPEM: body.trustedCertificatesPEM, changedAt: call.now)
        return .commit(.administer(.putPushCredential(record))) { _ in
            .answer(.json(200, PushCredentialBody(record)))
        }
    }

    static func remove(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let environment = try environment(call)
        guard configuration.pushCredentials.contains(where: { $0.environment == environment })
        else {
            throw Problem(.notFound, "the app has no push credential for \(environment.name)")
        }
        let request = Administration.removePushCredential(configuration.app.app, environment)
        return .commit(.administer(request)) { _ in .answer(HTTPResponse(status: 204)) }
    }

    private static func environment(_ call: Call) throws(Problem) -> PushEnvironmentKind {
        let name = call.parameter("environment")
        guard let environment = PushEnvironmentKind.allCases.first(where: { $0.name == name })
        else { throw .malformed("environment: must be production or development") }
        return environment
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
        case topics, host, port
        case trustedCertificatesPEM = "trusted_certificates_pem"
    }

    static let topicsMax = 16

    let keyID: String
    let team: String
    let privateKeyPEM: String
    let topics: [String]
    let host: String?
    let port: UInt64?
    let trustedCertificatesPEM: String?

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        keyID = try Self.word(fields, .keyID)
        team = try Self.word(fields, .team)
        topics = try fields.required(.topics, [String].self)
        guard (1...Self.topicsMax).contains(topics.count), topics.allSatisfy(Self.isTopic) else {
            throw fields.refusal(
                .topics, "must be 1 to \(Self.topicsMax) bundle ids (letters, digits, - and .)")
        }
        host = try fields.text(.host, bytes: 1...253)
        port = try fields.number(.port, in: 1...65_535)
        privateKeyPEM = try Self.privateKey(fields)
        trustedCertificatesPEM = try Self.certificates(fields)
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

    private static func isWordByte(_ byte: UInt8) -> Bool {
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

import Crypto
import Feed
import HTTP1
import Model
import Wire

/// The keys of an app: public keys that sign its users' identity tokens, and API keys.
enum KeyRoutes {
    static let all: [Route] = [
        Route("PUT", "/apps/{app}/issuer-keys/{kid}", .open(addIssuerKey)),
        Route("DELETE", "/apps/{app}/issuer-keys/{kid}", .open(removeIssuerKey)),
        Route("GET", "/apps/{app}/api-keys", .open(listAPIKeys)),
        Route("POST", "/apps/{app}/api-keys", takesBody: false, .open(createAPIKey)),
        Route("DELETE", "/apps/{app}/api-keys/{key}", .open(revokeAPIKey)),
    ]

    /// Issuer keys of one app.
    static let issuerKeysMax = 16
    static let keyIDBytesMax = 128

    struct NewIssuerKey: Decodable {
        enum Key: String, CodingKey, CaseIterable { case publicKeyPEM = "public_key_pem" }

        let key: PublicKey

        init(from decoder: any Decoder) throws {
            let fields = try Fields<Key>(decoder)
            let pem = try fields.required(.publicKeyPEM, String.self)
            do {
                key = try PublicKey(pem: Array(pem.utf8))
            } catch KeyError.unsupported(let what) {
                throw fields.refusal(
                    .publicKeyPEM,
                    "\(what) is not taken; P-256, Ed25519 and RSA of 2048 to 8192 bits are")
            } catch {
                throw fields.refusal(
                    .publicKeyPEM, "must be a public key in PEM (BEGIN PUBLIC KEY)")
            }
        }
    }

    static func addIssuerKey(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let kid = call.parameter("kid")
        guard kid.utf8.count <= keyIDBytesMax, kid.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw .malformed(
                "kid: must be at most \(keyIDBytesMax) bytes without control characters")
        }
        let key = try call.body(NewIssuerKey.self).key
        let known = configuration.issuerKeys.first { $0.keyID.isExactly(kid) }
        if let known {
            guard known.publicKeyPEM == key.pem else {
                throw Problem(
                    .conflict,
                    "another key has the kid \(kid); remove it first or take another kid")
            }
            return .answer(.json(200, IssuerKeyBody(known)))
        }
        guard configuration.issuerKeys.count < issuerKeysMax else {
            throw Problem(.limit, "an app has at most \(issuerKeysMax) issuer keys")
        }
        let record = IssuerKeyRecord(
            app: configuration.app.app, keyID: kid, publicKeyPEM: key.pem, addedAt: call.now)
        return .commit(.administer(.putIssuerKey(record))) { _ in
            .answer(.json(201, IssuerKeyBody(record)))
        }
    }

    static func removeIssuerKey(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let kid = call.parameter("kid")
        guard configuration.issuerKeys.contains(where: { $0.keyID.isExactly(kid) }) else {
            throw Problem(.notFound, "the app has no issuer key \(kid)")
        }
        return .commit(.administer(.removeIssuerKey(configuration.app.app, keyID: kid))) { _ in
            .answer(HTTPResponse(status: 204))
        }
    }

    static func listAPIKeys(_ call: Call) throws(Problem) -> Step {
        let keys = try call.configuration().apiKeys
        return .answer(.json(200, APIKeyListBody(apiKeys: keys.map { APIKeyBody($0) })))
    }

    /// The secret has 256 bits of chance, so a plain hash of it is as good as a slow one.
    static func createAPIKey(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        // The store refuses a third key too; here the way out is named.
        guard configuration.apiKeys.count < RuleLimits().apiKeys else {
            let ids = configuration.apiKeys.map(\.keyID).joined(separator: " and ")
            throw Problem(.limit, "two API keys are live, \(ids); revoke one first")
        }
        let secret = "rk_" + Base64URL.encode(Random.bytes(32))
        let record = APIKeyRecord(
            app: configuration.app.app, keyID: "k_" + Hex.encode(Random.bytes(6)),
            hash: Digest.sha256(Array(secret.utf8)), createdAt: call.now)
        return .commit(.administer(.putAPIKey(record))) { _ in
            .answer(.json(201, APIKeyBody(record, secret: secret)))
        }
    }

    static func revokeAPIKey(_ call: Call) throws(Problem) -> Step {
        let configuration = try call.configuration()
        let id = call.parameter("key")
        guard configuration.apiKeys.contains(where: { $0.keyID.isExactly(id) }) else {
            throw Problem(.notFound, "the app has no API key \(id)")
        }
        return .commit(.administer(.removeAPIKey(configuration.app.app, keyID: id))) { _ in
            .answer(HTTPResponse(status: 204))
        }
    }
}

import Crypto
import Testing

@testable import APNsSimulator

struct IdentityIssuerTests {
    @Test(arguments: ["anna", #"a"b\c"#, "tab\tline\nnull\u{0}", "Zoë 🦊"])
    func tokensCarryAnyName(_ user: String) throws {
        let key = PrivateKey.generate(.p256)
        let issuer = IdentityIssuer(issuer: "backend", keyID: "k\"1", key: key, app: "demo")
        let text = try #require(issuer.token(for: user, nonce: [0xFF, 0xFE], now: 1_700_000_000))
        let token = try CompactToken(text, maximumBytes: 8_192)
        #expect(token.keyIdentifier == "k\"1")
        #expect(token.verify(with: key.publicKey))
        let claims = try TokenMembers(json: token.payloadJSON)
        #expect(claims.string("sub") == user)
        #expect(claims.string("aud") == "demo")
        #expect(claims.string("nonce") == "__4")
        #expect(claims.integer("exp") == 1_700_000_300)
    }
}

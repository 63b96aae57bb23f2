import Foundation
import Testing

@testable import Crypto

/// Tokens exchanged with PyJWT and the Python package cryptography.
@Suite(.enabled(if: Child.hasJWT, "needs python3-jwt and python3-cryptography"))
struct TokenPeerTests {
    private struct Made: Decodable {
        let name: String
        let pem: String
        let token: String
        let valid: Bool
    }

    @Test func verifiesForeignTokens() throws {
        let (status, output) = try Child.run(Child.python, ["-c", signingScript])
        try #require(status == 0)
        let made = try JSONDecoder().decode([Made].self, from: output)
        #expect(made.count { $0.valid } == 3 && made.count == 10)
        for entry in made {
            let key = try PublicKey(pem: Array(entry.pem.utf8))
            let parsed = try? CompactToken(entry.token, maximumBytes: 4096)
            #expect((parsed?.verify(with: key) ?? false) == entry.valid, "\(entry.name)")
            guard entry.valid, let parsed else { continue }
            let claims = try TokenMembers(json: parsed.payloadJSON)
            #expect(claims.string("sub") == "Jürgen \u{1F600}")
            #expect(claims.strings("aud") == ["app"] && claims.integer("exp") == 4_102_444_800)
            #expect(parsed.keyIdentifier == "key-1")
        }
    }

    @Test(arguments: [PrivateKey.Generated.p256, .ed25519, .rsa2048])
    func signsForOthers(kind: PrivateKey.Generated) throws {
        let key = PrivateKey.generate(kind)
        let algorithm = key.kind.algorithm
        // Several, because r or s of an ECDSA signature has leading zeros once in 128 times.
        var lines = [algorithm, Base64URL.encode(Array(key.publicKeyPEM.utf8))]
        let count = kind == .rsa2048 ? 5 : 300
        for number in 0..<count {
            lines.append(
                try CompactToken.sign(
                    headerJSON: Array(#"{"alg":"\#(algorithm)"}"#.utf8),
                    payloadJSON: Array(#"{"n":\#(number)}"#.utf8), with: key))
        }
        let (status, output) = try Child.run(
            Child.python, ["-c", verifyingScript], input: lines.joined(separator: "\n"))
        #expect(status == 0)
        #expect(String(decoding: output, as: UTF8.self) == "\(count * (count - 1) / 2)\n")
    }
}

private let signingScript = """
    import base64, hashlib, hmac, json, jwt
    from cryptography.hazmat.primitives import hashes, serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    def pem(key):
        return key.public_key().public_bytes(
            s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo).decode()
    def b64(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    claims = {"sub": "J\\u00fcrgen \\U0001F600", "aud": ["app"], "exp": 4102444800}
    p256 = ec.generate_private_key(ec.SECP256R1())
    rsa_key = rsa.generate_private_key(65537, 2048)
    ed = ed25519.Ed25519PrivateKey.generate()
    out = []
    def add(name, key, token, valid):
        out.append({"name": name, "pem": pem(key), "token": token, "valid": valid})
    for name, key in [("ES256", p256), ("RS256", rsa_key), ("EdDSA", ed)]:
        token = jwt.encode(claims, key, algorithm=name, headers={"kid": "key-1"})
        add(name, key, token, True)
        add(name + " cut", key, token[:-8], False)
    add("PS256", rsa_key, jwt.encode(claims, rsa_key, algorithm="PS256"), False)
    add("none", rsa_key, jwt.encode(claims, None, algorithm="none"), False)
    text = b64(b'{"alg":"HS256"}') + "." + b64(json.dumps(claims).encode())
    mac = hmac.new(pem(rsa_key).encode(), text.encode(), hashlib.sha256).digest()
    add("HS256 with the public key", rsa_key, text + "." + b64(mac), False)
    text = b64(b'{"alg":"ES256"}') + "." + b64(json.dumps(claims).encode())
    der = p256.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    add("DER", p256, text + "." + b64(der), False)
    print(json.dumps(out))
    """

private let verifyingScript = """
    import base64, jwt, sys
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    name, pem, *tokens = sys.stdin.read().split()
    key = load_pem_public_key(base64.urlsafe_b64decode(pem + "=" * (-len(pem) % 4)))
    print(sum(jwt.decode(token, key, algorithms=[name])["n"] for token in tokens))
    """

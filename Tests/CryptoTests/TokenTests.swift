import Testing

@testable import Crypto

@Suite struct TokenTests {
    private func parse(_ text: String) throws(TokenError) -> CompactToken {
        try CompactToken(text, maximumBytes: 4096)
    }

    private func token(
        _ key: PrivateKey, header: String? = nil, payload: String = #"{"sub":"u"}"#
    ) throws -> String {
        let header = header ?? #"{"alg":"\#(key.kind.algorithm)","kid":"k1"}"#
        return try CompactToken.sign(
            headerJSON: Array(header.utf8), payloadJSON: Array(payload.utf8), with: key)
    }

    /// A token with any header, signed by the key all the same.
    private func forged(header: String, _ key: PrivateKey) -> String {
        let input = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array("{}".utf8))
        return input + "." + Base64URL.encode(key.sign(Array(input.utf8)))
    }

    @Test(arguments: [PrivateKey.Generated.p256, .ed25519, .rsa2048])
    func signsAndVerifies(kind: PrivateKey.Generated) throws {
        let key = PrivateKey.generate(kind)
        let text = try token(key)
        let parsed = try parse(text)
        #expect(parsed.declaredAlgorithm == key.kind.algorithm)
        #expect(parsed.keyIdentifier == "k1")
        #expect(parsed.payloadJSON == Array(#"{"sub":"u"}"#.utf8))
        #expect(parsed.verify(with: try PublicKey(pem: Array(key.publicKeyPEM.utf8))))
        #expect(!parsed.verify(with: PrivateKey.generate(kind).publicKey))
        let again = try PrivateKey(pem: Array(key.pem.utf8))
        #expect(try parse(try token(again)).verify(with: key.publicKey))
    }

    /// RFC 7515 appendix A.3.
    @Test func verifiesThePublishedES256() throws {
        let key = try PublicKey(pem: Array(publishedP256.utf8))
        let parsed = try parse(publishedES256)
        #expect(parsed.verify(with: key))
        let claims = try TokenMembers(json: parsed.payloadJSON)
        #expect(claims.string("iss") == "joe" && claims.integer("exp") == 1_300_819_380)
        #expect(claims["http://example.com/is_root"] == .boolean(true))
    }

    /// RFC 7515 appendix A.2.
    @Test func verifiesThePublishedRS256() throws {
        let key = try PublicKey(pem: Array(publishedRSA.utf8))
        #expect(key.kind == .rsa(bits: 2048))
        #expect(try parse(publishedRS256).verify(with: key))
    }

    /// RFC 8037 appendix A.4; Ed25519 signs without randomness, so signing can be compared too.
    @Test func verifiesAndMakesThePublishedEdDSA() throws {
        let key = try PublicKey(pem: Array(publishedEd25519.utf8))
        #expect(try parse(publishedEdDSA).verify(with: key))
        let made = try CompactToken.sign(
            headerJSON: Array(#"{"alg":"EdDSA"}"#.utf8),
            payloadJSON: Array("Example of Ed25519 signing".utf8),
            with: try PrivateKey(pem: Array(publishedEd25519Private.utf8)))
        #expect(made == publishedEdDSA)
    }

    /// Every change of one character makes the token unreadable or the signature wrong.
    @Test(arguments: [
        (publishedES256, publishedP256), (publishedEdDSA, publishedEd25519),
        (publishedRS256, publishedRSA),
    ])
    func refusesEveryChange(text: String, pem: String) throws {
        let key = try PublicKey(pem: Array(pem.utf8))
        let bytes = Array(text.utf8)
        for index in bytes.indices {
            var changed = bytes
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : 65
            guard let parsed = try? CompactToken(changed, maximumBytes: 4096) else { continue }
            #expect(!parsed.verify(with: key), "character \(index)")
        }
    }

    @Test func bindsTheAlgorithmToTheKey() throws {
        let keys = [PrivateKey.Generated.p256, .ed25519, .rsa2048].map { PrivateKey.generate($0) }
        for key in keys {
            for name in ["none", "None", "", "HS256", "ES256", "RS256", "EdDSA", "PS256", "es256"]
            where name != key.kind.algorithm {
                let parsed = try parse(forged(header: #"{"alg":"\#(name)"}"#, key))
                #expect(!parsed.verify(with: key.publicKey), "\(name) with \(key.kind)")
                #expect(throws: TokenError.algorithmMismatch) {
                    try token(key, header: #"{"alg":"\#(name)"}"#)
                }
            }
            let parsed = try parse(try token(key))
            for other in keys where other.kind != key.kind {
                #expect(!parsed.verify(with: other.publicKey))
            }
        }
    }

    /// RFC 8725 section 2.1: the two classic ways to fool a verifier.
    @Test func refusesNoneAndTheKeyAsASecret() throws {
        let key = PrivateKey.generate(.rsa2048)
        let none = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8)) + ".e30."
        #expect(try !parse(none).verify(with: key.publicKey))
        let input = Base64URL.encode(Array(#"{"alg":"HS256"}"#.utf8)) + ".e30"
        let mac = Digest.hmacSHA256(key: Array(key.publicKeyPEM.utf8), Array(input.utf8))
        #expect(try !parse(input + "." + Base64URL.encode(mac)).verify(with: key.publicKey))
        let asRSA = Base64URL.encode(Array(#"{"alg":"RS256"}"#.utf8)) + ".e30"
        let other = Digest.hmacSHA256(key: Array(key.publicKeyPEM.utf8), Array(asRSA.utf8))
        #expect(try !parse(asRSA + "." + Base64URL.encode(other)).verify(with: key.publicKey))
    }

    @Test(arguments: [PrivateKey.Generated.p256, .ed25519, .rsa2048])
    func refusesSignaturesOfOtherLengths(kind: PrivateKey.Generated) throws {
        let key = PrivateKey.generate(kind)
        let good = try parse(try token(key))
        let input = String(decoding: good.signingInput, as: UTF8.self)
        var bad = (0..<good.signature.count).map { Array(good.signature[..<$0]) }
        bad.append(good.signature + [0])
        bad.append([0] + good.signature)
        bad.append([UInt8](repeating: 0, count: good.signature.count))
        bad.append([UInt8](repeating: 0xFF, count: good.signature.count))
        for signature in bad {
            let changed = try parse(input + "." + Base64URL.encode(signature))
            #expect(!changed.verify(with: key.publicKey), "\(signature.count) bytes")
        }
    }

    @Test(arguments: [
        "", ".", "..", "a.b", "a.b.c.d", "e30.e30.e30", "eyJhbGciOiJFUzI1NiJ9..", " .e30.e30",
        "bnVsbA.e30.AA", "W10.e30.AA",
    ])
    func refusesWhatIsNoToken(text: String) throws {
        // The seventh has an empty payload and signature: readable, never valid.
        guard let parsed = try? parse(text) else { return }
        #expect(text == "eyJhbGciOiJFUzI1NiJ9..")
        #expect(!parsed.verify(with: PrivateKey.generate(.p256).publicKey))
    }

    @Test func refusesUnclearHeaders() throws {
        let key = PrivateKey.generate(.ed25519)
        for (header, expected) in [
            (#"{"alg":"EdDSA","alg":"none"}"#, TokenError.malformed),
            (#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#, .criticalExtension),
            (#"{"kid":"k"}"#, .headerIncomplete), (#"{"alg":7}"#, .headerIncomplete),
            (#"{"alg":"EdDSA","kid":7}"#, .headerIncomplete),
            (#"{"alg":"EdDSA"} x"#, .malformed),
        ] {
            #expect(throws: expected, "\(header)") { try parse(forged(header: header, key)) }
        }
        #expect(throws: TokenError.tooLong) {
            try CompactToken(try token(key), maximumBytes: 20)
        }
    }

    /// The last character of 64 bytes in base64url has four unused bits.
    @Test func refusesOtherSpellingsOfOneSignature() throws {
        let key = try PublicKey(pem: Array(publishedEd25519.utf8))
        var spellings = 0
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
            let text = String(publishedEdDSA.dropLast()) + String(last)
            if let parsed = try? parse(text), parsed.verify(with: key) { spellings += 1 }
        }
        #expect(spellings == 1)
        for suffix in ["=", "==", "\n", " "] {
            #expect(throws: TokenError.malformed) { try parse(publishedEdDSA + suffix) }
        }
        let standard = publishedEdDSA.replacing("_", with: "/")
        #expect(throws: TokenError.malformed) { try parse(standard) }
    }
}

let publishedES256 = """
    eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
    cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5dj\
    xLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q
    """

let publishedP256 = """
    -----BEGIN PUBLIC KEY-----
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
    6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
    -----END PUBLIC KEY-----
    """

let publishedRS256 = """
    eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
    cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XO\
    iZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_\
    nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwus\
    C-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlV\
    mtVrBp0igcN_IoypGlUPQGe77Rw
    """

let publishedRSA = """
    -----BEGIN PUBLIC KEY-----
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj
    NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz
    P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo
    9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB
    EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX
    FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp
    oQIDAQAB
    -----END PUBLIC KEY-----
    """

let publishedEdDSA = """
    eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-0\
    9PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg
    """

let publishedEd25519 = """
    -----BEGIN PUBLIC KEY-----
    MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
    -----END PUBLIC KEY-----
    """

/// RFC 8037 appendix A.1: public on purpose.
let publishedEd25519Private = """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
    -----END PRIVATE KEY-----
    """

import Testing

@testable import Crypto

@Suite struct KeyTests {
    @Test(arguments: [
        (p384, "curve secp384r1"), (shortRSA, "RSA of 1024 bits"),
        (explicitP256, "curve with explicit parameters"),
    ])
    func refusesOtherKinds(pem: String, reason: String) {
        #expect(throws: KeyError.unsupported(reason)) { try PublicKey(pem: Array(pem.utf8)) }
    }

    @Test func refusesUnreadableKeys() {
        let privatePEM = PrivateKey.generate(.p256).pem
        for bad in ["", "x", String(publishedRSA.dropLast(60)), privatePEM] {
            #expect(throws: KeyError.self, "\(bad)") { try PublicKey(pem: Array(bad.utf8)) }
        }
        for bad in ["", publishedP256, encryptedKey] {
            #expect(throws: KeyError.self, "\(bad)") { try PrivateKey(pem: Array(bad.utf8)) }
        }
    }

    /// The point's last byte changed: it no longer lies on the curve.
    @Test func refusesPointsOffTheCurve() {
        let pem = publishedP256.replacing("hYjlrQ==", with: "hYjlrA==")
        #expect(throws: KeyError.self) { try PublicKey(pem: Array(pem.utf8)) }
    }

    /// The library reads a key with an even exponent; only its check notices.
    @Test func refusesUnsoundRSA() {
        let pem = publishedRSA.replacing("oQIDAQAB", with: "oQIDAQAA")
        #expect(throws: KeyError.unsupported("a key that fails its check")) {
            try PublicKey(pem: Array(pem.utf8))
        }
    }

    @Test func writesWhatItReads() throws {
        #expect(try PublicKey(pem: Array(publishedP256.utf8)).pem == publishedP256 + "\n")
        let key = try PrivateKey(pem: Array(publishedEd25519Private.utf8))
        #expect(key.pem == publishedEd25519Private + "\n")
        #expect(key.publicKeyPEM == publishedEd25519 + "\n")
        #expect(key.kind == .ed25519 && PrivateKey.generate(.rsa2048).kind == .rsa(bits: 2048))
    }

    @Test func verifiesOnManyThreads() async throws {
        let key = PrivateKey.generate(.p256)
        let message = pattern(100)
        let signature = key.sign(message)
        let publicKey = key.publicKey
        let good = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<64 {
                group.addTask { publicKey.verifies(signature: signature, message: message) }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(good == 64)
    }
}

private let p384 = """
    -----BEGIN PUBLIC KEY-----
    MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEcnQoPXqNk8SoAMIDrwNGrUkKtU65EwBG
    y2DEbCB6dZcjIfBPVR4x3c/spY9d0w1x1FhqxkDdJ7o+82A+hVbMdD6tUkB1R/M9
    Egm7gFBQ9KlftGA1dEuIA4hlBb7Ap26p
    -----END PUBLIC KEY-----
    """

private let shortRSA = """
    -----BEGIN PUBLIC KEY-----
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDRW1dMnGjRqg+oXJkZq31XyrjE
    fIcx6ulv3+wqZ+5gzyyNsz0UBz2oq9KyjT2wTsgp/A0yv/EWndIvrzvXve1zRe2b
    AwzNwvu/cbp5S8o28VDyiI+x4ChataSlWQZ8yGl610pqhpHIvhwWg1ubl7VdVWkc
    aBMOwNdnv7Co56/CGwIDAQAB
    -----END PUBLIC KEY-----
    """

private let explicitP256 = """
    -----BEGIN PUBLIC KEY-----
    MIIBSzCCAQMGByqGSM49AgEwgfcCAQEwLAYHKoZIzj0BAQIhAP////8AAAABAAAA
    AAAAAAAAAAAA////////////////MFsEIP////8AAAABAAAAAAAAAAAAAAAA////
    ///////////8BCBaxjXYqjqT57PrvVV2mIa8ZR0GsMxTsPY7zjw+J9JgSwMVAMSd
    NgiG5wSTamZ44ROdJreBn36QBEEEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5
    RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9QIhAP////8AAAAA
    //////////+85vqtpxeehPO5ysL8YyVRAgEBA0IABKEZDyM9NKMogLTtyd3/dPZw
    M3qLIAnJIBSdn8OyhBSVz+JzQ0Y8PMADjNfnn7ebwXB8A48N+cFn+XzTtKWMdes=
    -----END PUBLIC KEY-----
    """

import Testing

@testable import Crypto

@Suite struct EncodingTests {
    /// RFC 4648 section 10, without padding.
    @Test(arguments: [
        ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"),
        ("fooba", "Zm9vYmE"), ("foobar", "Zm9vYmFy"),
    ])
    func base64URLVectors(bytes: String, text: String) {
        #expect(Base64URL.encode(Array(bytes.utf8)) == text)
        #expect(Base64URL.decode(text) == Array(bytes.utf8))
    }

    @Test func base64URLAllBytes() {
        for count in 0...257 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: 255 - $0) }
            #expect(Base64URL.decode(Base64URL.encode(bytes)) == bytes)
        }
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
    }

    @Test(arguments: ["A", "AAAAA", "Zh", "Zm9", "Zg==", "Zm 8", "+_8", "-/8", "Zm8\n", "ä"])
    func base64URLRefuses(text: String) {
        #expect(Base64URL.decode(text) == nil)
    }

    @Test func hex() {
        #expect(Hex.encode([0, 0x1F, 0xA0, 0xFF]) == "001fa0ff")
        #expect(Hex.decode("001fA0fF") == [0, 0x1F, 0xA0, 0xFF])
        for bad in ["0", "0g", " 00", "000", "/0", ":0", "@0", "G0", "`0"] {
            #expect(Hex.decode(bad) == nil, "\(bad)")
        }
    }

    /// FIPS 180-4 "abc", and RFC 4231 test cases 1 and 2.
    @Test func digests() {
        #expect(
            Hex.encode(Digest.sha256(Array("abc".utf8)))
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            Hex.encode(Digest.sha256([]))
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(
            Hex.encode(
                Digest.hmacSHA256(key: [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8)))
                == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        #expect(
            Hex.encode(
                Digest.hmacSHA256(
                    key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(
            Hex.encode(Digest.hmacSHA256(key: [], []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test func comparesBytes() {
        #expect(constantTimeEqual([], []) && constantTimeEqual([1, 2], [1, 2]))
        #expect(!constantTimeEqual([1, 2], [1, 3]) && !constantTimeEqual([1], [1, 2]))
    }

    @Test func randomBytesDiffer() {
        #expect(Random.bytes(0).isEmpty && Random.bytes(16).count == 16)
        #expect(Set((0..<100).map { _ in Random.bytes(16) }).count == 100)
    }
}

@Suite struct TokenMembersTests {
    private func members(_ json: String) throws -> TokenMembers {
        try TokenMembers(json: Array(json.utf8))
    }

    @Test func readsEveryKindOfValue() throws {
        let read = try members(
            #"""
             {"s":"a\"\\\/\b\f\n\r\tä\u00e4\ud83d\ude00","i":-12,"f":1.9,"e":1e3,"t":true,"n":null,
             "a":["x","y"],"m":["x",1],"o":{"s":["deep",{}]},"":0,"z":[],"big":9223372036854775808}
            """#)
        #expect(read.string("s") == "a\"\\/\u{8}\u{C}\n\r\tää\u{1F600}")
        #expect(read.integer("i") == -12 && read.integer("f") == 1 && read["e"] == .other)
        #expect(read["t"] == .boolean(true) && read["n"] == .other)
        #expect(read.strings("a") == ["x", "y"] && read["m"] == .other && read["o"] == .other)
        #expect(read.integer("") == 0 && read["z"] == .strings([]) && read["big"] == .other)
        #expect(read.strings("s")?.count == 1 && read["absent"] == nil)
        #expect(try members(" {} ")["s"] == nil)
    }

    @Test(arguments: [
        "", "{", "}", "[]", "null", "{}{}", "{} x", #"{"a":1,}"#, #"{"a"}"#, #"{a:1}"#,
        #"{"a":1,"a":2}"#, #"{"a":1,"\u0061":2}"#, #"{"a":01}"#, #"{"a":-}"#, #"{"a":1.}"#,
        #"{"a":.5}"#, #"{"a":1e}"#, #"{"a":+1}"#, #"{"a":tru}"#, #"{"a":nulll}"#, #"{"a":"x}"#,
        #"{"a":"\x"}"#, #"{"a":"\u12"}"#, #"{"a":"\ud800"}"#, #"{"a":"\udc00"}"#,
        #"{"a":"\ud800\ud800"}"#, "{\"a\":\"\n\"}", #"{"a":[1,]}"#, #"{"a":[1 2]}"#,
        #"{"a":{"b"}}"#, "{\"a\":\u{a0}1}", "\u{FEFF}{}", #"{"a":NaN}"#, #"{"a" 1}"#,
    ])
    func refuses(json: String) {
        #expect(throws: TokenMembers.Malformed.self) { try members(json) }
    }

    @Test func refusesInvalidUTF8() {
        for bad: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82]] {
            let json = Array(#"{"a":""#.utf8) + bad + Array(#""}"#.utf8)
            #expect(throws: TokenMembers.Malformed.self) { try TokenMembers(json: json) }
        }
    }

    @Test func boundsDepthAndNumber() throws {
        func nested(_ depth: Int) -> String {
            #"{"a":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
                + "}"
        }
        #expect(try members(nested(16))["a"] == .other)
        #expect(throws: TokenMembers.Malformed.self) { try members(nested(17)) }
        #expect(throws: TokenMembers.Malformed.self) { try members(nested(100_000)) }
        func wide(_ count: Int) -> String {
            "{" + (0..<count).map { "\"m\($0)\":0" }.joined(separator: ",") + "}"
        }
        #expect(try members(wide(64)).integer("m63") == 0)
        #expect(throws: TokenMembers.Malformed.self) { try members(wide(65)) }
    }
}

import EventLoop
import Foundation
import Testing
import Wake

@testable import BackendAPI

/// How bodies are read, and answers written.
@Suite struct JSONTextTests {
    private func fault(_ text: String) -> String? { fault(Array(text.utf8)) }

    private func fault(_ bytes: [UInt8]) -> String? {
        do throws(JSONFault) {
            _ = try JSONText.document(bytes)
            return nil
        } catch {
            return error.text
        }
    }

    @Test(
        "JSON is taken",
        arguments: [
            "{}", "[]", " [1, -0.5e+3, true, false, null] ", #"{"a":{"a":1},"b":{"a":[{}]}}"#,
            #""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#, "\"é😀\"", "0",
            "123456789012345678901234567890",
        ])
    func taken(_ text: String) {
        #expect(fault(text) == nil)
    }

    @Test(
        "what is no JSON, or could be read in two ways, is not",
        arguments: [
            "", " ", "{", "[1,]", #"{"a":1,}"#, "[1 2]", #"{"a" 1}"#, "{a:1}", "01", "1.", "1e",
            "+1",
            "NaN", "tru", "'a'", "\"a\nb\"", #""\x""#, #""\ud83d""#, #""\ude00""#,
            #""\ud83d\u0041""#,
            "{} {}", "1e999", "// a\n1", "\u{feff}{}",
        ])
    func refused(_ text: String) {
        #expect(fault(text) != nil)
    }

    @Test("a name stands once in an object, however it is written")
    func names() {
        #expect(fault(#"{"a":1,"a":1}"#)?.contains("twice") == true)
        #expect(fault(#"{"a":1,"\u0061":2}"#)?.contains("twice") == true)
        #expect(fault("{\"caf\u{e9}\":1,\"cafe\u{301}\":2}")?.contains("twice") == true)
        #expect(fault("{\"K\":1,\"\u{212a}\":2}")?.contains("twice") == true)
        #expect(fault("{\"\u{212a}\":1,\"b\":3,\"K\":2}")?.contains("twice") == true)
        #expect(fault("{\"\u{e9}\":1,\"e\":2}") == nil)
        #expect(fault(#"[{"a":1},{"a":1}]"#) == nil)
    }

    @Test("bytes that are not UTF-8 are not JSON")
    func encodings() {
        for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf32] {
            let bytes = Array(#"{"app":"a"}"#.data(using: encoding) ?? Data())
            #expect(fault(bytes) != nil)
        }
        #expect(fault([0x22, 0xFF, 0x22]) != nil)
    }

    @Test("depth and number of values are bounded before anything is decoded")
    func bounds() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(fault(nested(JSONText.depthMax)) == nil)
        #expect(fault(nested(JSONText.depthMax + 1))?.contains("levels") == true)
        #expect(fault(nested(200_000))?.contains("levels") == true)
        func list(_ count: Int) -> String {
            "[" + [String](repeating: "1", count: count).joined(separator: ",") + "]"
        }
        #expect(fault(list(JSONText.valuesMax - 1)) == nil)
        #expect(fault(list(JSONText.valuesMax))?.contains("values") == true)
    }

    @Test("custom data is taken as it stands")
    func customData() throws {
        let body = #"""
            {"push":{"title":"t","data":{"n":1.50,"big":18446744073709551616,"l":[null,true],"o":{"é":"x"}}}}
            """#
        struct Body: Decodable { let push: NewPush }
        let read = try StrictJSON.read(Body.self, Array(body.utf8))
        #expect(
            String(decoding: read.push.options.custom.members, as: UTF8.self)
                == #""big":18446744073709551616,"l":[null,true],"n":1.50,"o":{"é":"x"}"#)
    }

    @Test("custom data that is deep is refused, and the server goes on at once")
    func deepData() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("chess")
        let deep = [String](repeating: #"{"a":"#, count: 500).joined() + "1"
        let nested = deep + String(repeating: "}", count: 500)
        let siblings = (0..<8).map { #""s\#($0)":\#(nested)"# }.joined(separator: ",")
        // No part has a type: nobody has looked, for nothing is decoded.
        let body = #"{"parts":[{"text":"x"}],"push":{"title":"t","data":{\#(siblings)}}}"#
        let answer = try server.send(
            "POST", "/v1/conversations/0190a1b2-c3d4-7123-8456-789abcdef012/messages", key: key,
            body)
        #expect(answer.status == 400)
        #expect(answer.body.contains("levels deep"))
    }

    @Test("the admin socket answers while the thread of the backend API is held")
    func operatorGetsIn() throws {
        let (held, free) = (Latch(), Latch())
        let server = try TestServer(holding: {
            held.arrive()
            free.wait()
        })
        defer { server.stop() }
        let port = server.api.port
        let thread = Thread {
            _ = try? HTTPClient.send("GET", "/readyz", headers: [:], body: "", to: .port(port))
        }
        thread.start()
        held.wait()
        #expect(try server.admin("GET", "/apps").status == 200)
        free.arrive()
    }
}

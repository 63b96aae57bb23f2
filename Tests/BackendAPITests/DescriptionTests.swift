import Foundation
import Glibc
import Model
import Testing

/// What the server tells of itself: what it calls a request.
@Suite struct DescriptionTests {
    @Test("an answer names its request, as the log does")
    func requestNames() throws {
        var ends = [Int32](repeating: 0, count: 2)
        try #require(pipe(&ends) == 0)
        let server = try TestServer(log: ends[1])
        let key = try server.makeApp("shop")
        func name(_ path: String, _ own: String?, _ key: String? = nil) throws -> String {
            let headers = own.map { ["x-request-id": $0] } ?? [:]
            let answer = try server.send("GET", path, key: key, headers: headers)
            return try #require(answer.headers["x-request-id"])
        }
        let longest = String(repeating: "a", count: 128)
        for own in ["4bf92f35/77:a_b.c~d-e+f=@", longest] {
            #expect(try name("/v1/users/anna", own, key) == own)
            #expect(try name("/nowhere", own) == own)
        }
        var drawn: Set<String> = []
        for own in [nil, "", "two words", "quoted\"", "grün", longest + "a"] {
            drawn.insert(try name("/v1/users/anna", own, key))
        }
        #expect(drawn.count == 6 && drawn.allSatisfy { UUID(uuidString: $0) != nil })
        // Also one that is refused before it is routed, and one whose store fails.
        let raw = try server.sendRaw(
            "GET /v1 HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", "GET", "/v1")
        let refused = try #require(raw.headers["x-request-id"])
        server.faults.failReads(.corrupt("test"))
        #expect(try name("/v1/users/anna", "unlucky", key) == "unlucky")
        server.faults.failReads(nil)
        server.stop()
        close(ends[1])
        let log = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true).readDataToEndOfFile()
        let lines = String(decoding: log, as: UTF8.self).split(separator: "\n")
        func line(_ event: String, _ request: String) -> Bool {
            lines.contains { $0.contains("event=\(event) request=\(request) ") }
        }
        for request in drawn { #expect(line("api.answered", request), "\(request)") }
        #expect(line("api.refused", refused))
        #expect(line("api.store_failed", "unlucky"))
        #expect(lines.contains { $0.contains("request=\(longest) app=shop method=GET") })
    }
}

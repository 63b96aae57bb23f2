import Feed
import Foundation
import Glibc
import Model
import Testing

/// What the server tells of itself: its description, and what it calls a request.
@Suite struct DescriptionTests {
    static let root = SpecificationTests.root

    private func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
    }

    @Test("the description that is served is the file that clients are made from")
    func file() throws {
        let server = try TestServer()
        defer { server.stop() }
        let answer = try server.send("GET", "/openapi.yaml")
        #expect(answer.headers["content-type"] == "application/yaml")
        #expect(answer.body == (try text("Protocol/backend-api.yaml")))
    }

    @Test("the page that is served says the same, and a browser fetches and runs nothing for it")
    func page() throws {
        let server = try TestServer()
        defer { server.stop() }
        let answer = try server.send("GET", "/docs")
        #expect(answer.headers["content-type"] == "text/html; charset=utf-8")
        let policy = try #require(answer.headers["content-security-policy"])
        #expect(policy.hasPrefix("default-src 'none'; "))
        #expect(answer.body == (try text("Protocol/backend-api.html")))
        for word in ["<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "onload"] {
            #expect(!answer.body.contains(word), "\(word)")
        }
        for route in ["publishMessage", "createConversation", "listUserConversations"] {
            #expect(answer.body.contains("<article id=\"\(route)\">"))
        }
    }

    @Test("the page is the one that Deploy/api-page makes of the description")
    func pageIsMade() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [Self.root.appendingPathComponent("Deploy/api-page").path, "--check"]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "run Deploy/api-page")
    }

    @Test("the handbook says what each reason of explain means, and knows no other")
    func explainReasons() throws {
        let part = try text("Deploy/README.md").components(
            separatedBy: "one line a decision, with its reason.\n"
        ).last
        let section = try #require(part?.components(separatedBy: "\n### ").first)
        var told: Set<String> = []
        for row in section.split(separator: "\n") where row.hasPrefix("| `") {
            let cell = row.split(separator: "|")[0]
            told.formUnion(cell.matches(of: /`([a-z-]+)`/).map { String($0.1) })
        }
        let reasons = Set(ExplainReason.allCases.map(\.rawValue))
        #expect(told == reasons, "\(told.symmetricDifference(reasons))")
    }

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
        let tooLarge = "content-length: 99999999999\r\n\r\n"
        for own in ["host: a\r\nhost: b\r\n\r\n", "host: a\r\n" + tooLarge] {
            let named = try server.sendRaw(
                "POST /v1 HTTP/1.1\r\nx-request-id: mine\r\n" + own, "POST", "/v1")
            #expect(named.headers["x-request-id"] == "mine", "\(named.status)")
        }
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
        #expect(line("api.refused", refused) && line("api.refused", "mine"))
        #expect(line("api.store_failed", "unlucky"))
        #expect(lines.contains { $0.contains("request=\(longest) app=shop method=GET") })
    }
}

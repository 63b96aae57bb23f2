import Feed
import Foundation
import Model
import Testing

/// What a backend or an operator seldom means: it is refused in words, or stands in the description.
@Suite struct OddRequestTests {
    @Test("an app whose name hides something is not made; one that is there already goes on")
    func names() throws {
        let server = try TestServer()
        defer { server.stop() }
        for (name, words) in [
            (" shop", "a blank"), ("shop ", "a blank"), (" ", "a blank"), ("\u{a0}x", "a blank"),
            ("sh\u{200b}op", "U+200B"), ("\u{feff}shop", "U+FEFF"), ("shop\u{200d}", "U+200D"),
            ("sh\u{202e}op", "U+202E"), ("a\u{3164}b", "U+3164"), ("a\u{2028}b", "U+2028"),
            ("a\u{85}b", "U+0085"),
        ] {
            let made = try server.admin("POST", "/apps", #"{"app":"\#(name)"}"#)
            #expect(made.status == 400, "\(name.debugDescription): \(made.body)")
            let detail = try made.json["detail"].string ?? ""
            #expect(detail.hasPrefix("app: ") && detail.contains(words), "\(detail)")
        }
        for name in ["Sh op", "-x", "\u{5e97}", "\u{e9}t\u{e9}", "e\u{301}"] {
            #expect(try server.admin("POST", "/apps", #"{"app":"\#(name)"}"#).status == 201)
        }
        let old = "sh\u{200b}op "
        _ = try server.commit([
            .administer(.putApp(AppRecord(app: AppID(old), createdAt: Timestamp(milliseconds: 1))))
        ])
        let path = "/apps/sh%E2%80%8Bop%20"
        #expect(try server.admin("GET", path).json["app"].string == old)
        #expect(try server.admin("PATCH", path, #"{"grace_seconds":9}"#).status == 200)
        let key = try server.admin("POST", path + "/api-keys").json["secret"].string
        let made = try server.send(
            "POST", "/v1/conversations", key: try #require(key), #"{"participants":["anna"]}"#)
        #expect(made.status == 201)
        #expect(try server.admin("DELETE", path).status == 204)
    }
}

import Foundation
import Testing

extension SpecificationTests {
    static let announcementPath = "/v1/announcements/0190a1b2-c3d4-7123-8456-789abcdef01a"

    /// An announcement is made and taken back.
    func takeBack(_ server: TestServer, _ key: String, other: String) throws {
        let path = Self.announcementPath
        #expect(try server.send("DELETE", path, key: key).status == 404)
        let id = path.split(separator: "/").last ?? ""
        let made = try server.send(
            "POST", "/v1/announcements", key: key,
            #"{"id":"\#(id)","users":["anna"],"parts":[{"mime_type":"text/plain","text":"hi"}]}"#)
        #expect(made.status == 201)
        #expect(try server.send("DELETE", path).status == 401)
        #expect(try server.send("DELETE", path + "?x=1", key: key).status == 400)
        #expect(try server.send("DELETE", path, key: other).status == 404)
        // The word was used for another address.
        let used = ["idempotency-key": "end"]
        #expect(try server.send("DELETE", path, key: key, headers: used).status == 409)
        let big = String(repeating: " ", count: 600 * 1024)
        #expect(try server.send("DELETE", path, key: key, big).status == 413)
        let once = ["idempotency-key": "take-back"]
        for headers in [once, once, [:]] {
            #expect(try server.send("DELETE", path, key: key, headers: headers).status == 204)
        }
        let again = try server.send(
            "POST", "/v1/announcements", key: key,
            #"{"id":"\#(id)","users":["anna"],"parts":[{"mime_type":"text/plain","text":"hi"}]}"#)
        #expect(again.status == 409, "its id stays in use")
    }
}

import Foundation
import Testing

/// What a backend is told of pushes for an announcement, which belongs to nobody's conversation.
@Suite struct ExplainRouteTests {
    @Test("the recipient of an announcement must be named, and of a message need not")
    func recipients() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let parts = #""parts":[{"mime_type":"text/plain","text":"hi"}]"#
        let announced = try server.send(
            "POST", "/v1/announcements", key: key, #"{"users":["anna"],\#(parts)}"#)
        let announcement = try #require(try announced.json["id"].string)
        let nobody = try server.send("GET", "/v1/messages/\(announcement)/explain", key: key)
        #expect(nobody.status == 400)
        #expect(try nobody.json["detail"].string?.contains("user: name") == true)
        let anna = try server.send(
            "GET", "/v1/messages/\(announcement)/explain?user=anna", key: key)
        #expect(anna.status == 200)
        #expect(try anna.json["subjects"].count == 1)
        let ben = try server.send("GET", "/v1/messages/\(announcement)/explain?user=ben", key: key)
        #expect(ben.body.contains("not-recipient"))

        let room = #"{"participants":["anna","ben"]}"#
        let made = try server.send("POST", "/v1/conversations", key: key, room)
        let conversation = try #require(try made.json["id"].string)
        let published = try server.send(
            "POST", "/v1/conversations/\(conversation)/messages", key: key, "{\(parts)}")
        let message = try #require(try published.json["id"].string)
        let all = try server.send("GET", "/v1/messages/\(message)/explain", key: key)
        #expect(try all.json["subjects"].count == 2)
    }
}

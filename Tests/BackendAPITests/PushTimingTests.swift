import Feed
import Foundation
import Model
import Testing
import Wake

/// When an alert is shown, and until when, as a backend says it.
@Suite struct PushTimingTests {
    private static let room = "0190a1b2-c3d4-7123-8456-789abcdef0aa"

    /// With milliseconds.
    private static let tomorrow = Date(timeIntervalSinceNow: 86_400)
        .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))

    private func send(_ server: TestServer, _ key: String, _ fields: String) throws -> Exchange {
        try server.send(
            "POST", "/v1/conversations/\(Self.room)/messages", key: key,
            #"{"parts":[{"mime_type":"text/plain","text":"x"}],\#(fields)}"#)
    }

    @Test("times of alerts are taken and kept, and mistakes are named")
    func times() throws {
        let server = try TestServer()
        defer { server.stop() }
        let key = try server.makeApp("shop")
        let room = #"{"id":"\#(Self.room)","participants":["anna"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: key, room).status == 201)
        for push in [
            #""at":"2026-01-01T09:00:00Z""#, #""expires_at":"\#(Self.tomorrow)""#,
            #""local":"09:00","zone":"UTC","ttl_seconds":60"#, #""local":"23:59:59""#,
            #""local":"2026-01-01T09:00""#, #""local":"2026-01-01T09:00:30""#,
        ] {
            let answer = try send(server, key, #""push":{"body":"x",\#(push)}"#)
            #expect(answer.status == 201, "\(push): \(answer.body)")
        }
        for (push, field) in [
            (#""at":"tomorrow""#, "push.at"), (#""at":"2026-02-30T09:00:00Z""#, "push.at"),
            (#""at":"2026-01-01T25:00:00Z""#, "push.at"),
            (#""local":"9 o'clock""#, "push.local"),
            (#""local":"09:00:00.5""#, "push.local"),
            (#""local":"2026-01-01T09:00:30.500""#, "push.local"),
            (#""local":"2026-01-01T09:00Z""#, "push.local"),
            (#""loc_key":"NEW","more_loc_key":"""#, "push.more_loc_key"),
            (#""local":"25:00""#, "push.local"), (#""local":"2026-02-30T09:00""#, "push.local"),
            (#""at":"2026-01-01T09:00:00Z","local":"09:00""#, "push.at"),
            (#""zone":"UTC""#, "push.zone"), (#""local":"09:00","zone":"Nowhere""#, "time zone"),
            (#""ttl_seconds":0"#, "push.ttl_seconds"), (#""expires_at":7"#, "push.expires_at"),
            (#""at":"9999-01-01T09:00:00Z""#, "days ahead"),
        ] {
            let answer = try send(server, key, #""push":{"body":"x",\#(push)}"#)
            #expect(answer.status == 400, "\(push)")
            #expect(try answer.json["detail"].string?.contains(field) == true, "\(answer.body)")
        }
        let passive = #""urgency":"passive","push":{"body":"x","at":"2026-01-01T09:00:00Z"}"#
        #expect(try send(server, key, passive).status == 400)
    }
}

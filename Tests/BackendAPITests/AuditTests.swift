import BackendAPI
import EventLoop
import Feed
import Foundation
import Model
import Testing

/// What the audit log says of changes whose answers the store did not take.
@Suite struct AuditTests {
    /// Asks for a change whose note is written and whose own write is held.
    private func hold(
        _ server: TestServer, _ app: String
    ) throws -> (call: Background<Exchange>, open: Latch) {
        let note = server.faults.holdNextWrite()
        let socket = server.adminSocket
        let call = Background {
            try HTTPClient.send(
                "POST", "/apps", headers: ["content-type": "application/json"],
                body: #"{"app":"\#(app)"}"#, to: .path(socket))
        }
        #expect(note.entered.wait(seconds: 60))
        let change = server.faults.holdNextWrite()
        note.open.arrive()
        #expect(change.entered.wait(seconds: 60))
        return (call, change.open)
    }

    /// By the console: the admin socket answers one after the other.
    private func newest(_ visitor: ConsoleVisitor) throws -> JSONTree {
        try visitor.send("GET", "/console/api/audit?limit=1").json["changes"][0]
    }

    @Test("the status of a refused change is written once the store takes it again")
    func paidLater() throws {
        let server = try TestServer(hasConsole: true)
        defer { server.stop() }
        let visitor = try ConsoleVisitor.entered(server, role: "read-only")
        let (call, open) = try hold(server, "shop")
        server.faults.failWrites(.full("no space left"))
        open.arrive()
        let refused = try call.value()
        #expect(refused.status >= 500, "\(refused.status)")
        #expect(try newest(visitor)["status"].number == nil)
        server.faults.failWrites(nil)
        let end = Date(timeIntervalSinceNow: 20)
        while try newest(visitor)["status"].number == nil, Date() < end { usleep(50_000) }
        let row = try newest(visitor)
        #expect(row["status"].number == refused.status, "\(row)")
        #expect(row["action"].string == "POST /apps")
    }

    @Test("a change that an earlier process left is not under way")
    func leftByAnother() throws {
        let now = UInt64(Date().timeIntervalSince1970 * 1_000)
        for (began, isLost) in [(now - 60_000, false), (now + 600_000, true)] {
            let server = try TestServer(
                hasConsole: true, about: ServerFacts(startedAt: Timestamp(milliseconds: began)))
            defer { server.stop() }
            let visitor = try ConsoleVisitor.entered(server, role: "read-only")
            let (call, open) = try hold(server, "shop")
            let row = try newest(visitor)
            #expect(row["status"].number == nil)
            #expect((row["lost"].flag == true) == isLost, "\(row)")
            open.arrive()
            #expect(try call.value().status == 201)
            let settled = try newest(visitor)
            #expect(settled["status"].number == 201 && settled["lost"].flag == nil)
        }
    }

    @Test("the name of an app is kept however long it is, and a key that stands there is not")
    func longNames() throws {
        let server = try TestServer()
        defer { server.stop() }
        for count in [39, 40, 50, 64] {
            let name = String(repeating: "abcdefgh", count: 8).prefix(count)
            #expect(try server.admin("POST", "/apps", #"{"app":"\#(name)"}"#).status == 201)
            let row = try server.admin("GET", "/audit?limit=1").json["changes"][0]
            #expect(row["detail"].string == "app=\(name)")
        }
        // 20 bytes as hexadecimal digits, and 30 as base64.
        let hex = String(repeating: "0123456789abcdef", count: 3).prefix(40)
        let base64 = String(repeating: "QWxhZGRpbjpvcGVu", count: 3).prefix(40)
        for key in [hex, base64] {
            _ = try server.admin("POST", "/apps", #"{"app":"\#(key)"}"#)
            let row = try server.admin("GET", "/audit?limit=1").json["changes"][0]
            #expect(row["detail"].string == "app=(not kept)")
        }
    }
}

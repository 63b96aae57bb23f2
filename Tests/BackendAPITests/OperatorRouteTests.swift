import BackendAPI
import EventLoop
import Feed
import Foundation
import Model
import Testing

/// What operators ask for beyond apps: nodes and orders to them, users, the doctor.
@Suite struct OperatorRouteTests {
    @Test("nodes tell their phase, times and sessions, and what is ordered stands in their rows")
    func nodes() throws {
        let server = try TestServer(hasConsole: true)
        defer { server.stop() }
        _ = try server.makeApp("shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let reader = try ConsoleVisitor.entered(server, role: "read-only")
        // The boot under which devices are opened.
        let one = NodeBeat(boot: TestServer.boot, name: "one", version: "1.2", connections: 3)
        var two = NodeBeat(boot: BootID(high: 2, low: 2), name: "two", version: "1.2")
        two.phase = .ending
        _ = try server.commit([.beat(one), .beat(two)])
        _ = try server.openDevice("shop", user: "anna")
        _ = try server.openDevice("shop", user: "ben")
        func row(_ name: String) throws -> JSONTree {
            let nodes = try reader.send("GET", "/console/api/nodes").json["nodes"]
            return try #require(
                (0..<nodes.count).map { nodes[$0] }.first { $0["name"].string == name })
        }
        for (boot, name) in [(UInt64(1), "zoe"), (9, "abe"), (8, "bob")] {
            let later = NodeBeat(boot: BootID(high: boot, low: 9), name: name, version: "1.2")
            _ = try server.commit([.beat(later)])
        }
        let listed = try reader.send("GET", "/console/api/nodes").json["nodes"]
        #expect(
            (0..<listed.count).map { listed[$0]["name"].string } == [
                "abe", "bob", "one", "two", "zoe",
            ])
        #expect(try row("one")["phase"].string == "serving")
        #expect(try row("one")["sessions"].number == 2)
        #expect(try row("one")["connections"].number == 3)
        #expect(try row("one")["last_beat_at"].string == row("one")["started_at"].string)
        #expect(try row("two")["phase"].string == "ending")
        #expect(try row("two")["sessions"].number == 0)
        for path in ["nodes/one/drain", "nodes/one/resume", "nodes/rebalance"] {
            #expect(try reader.send("POST", "/console/api/\(path)").status == 403)
        }
        let told = try admin.send("POST", "/console/api/nodes/one/drain")
        #expect(told.status == 202, "\(told.body)")
        #expect(try told.json["nodes"][0]["name"].string == "one")
        #expect(try row("one")["phase"].string == "draining")
        #expect(try row("one")["drained_by"].string?.hasSuffix(" (anna)") == true)
        #expect(
            try row("one")["drains_since"].string
                == admin.send("GET", "/console/api/audit?limit=1").json["changes"][0]["at"].string)
        #expect(try admin.send("POST", "/console/api/nodes/three/drain").status == 404)
        #expect(try server.admin("POST", "/nodes/one/resume").status == 202)
        #expect(try row("one")["phase"].string == "serving")
        #expect(try row("one")["drains_since"].string == nil)
        #expect(try admin.send("POST", "/console/api/nodes/rebalance").status == 202)
        let log = try admin.send("GET", "/console/api/audit?limit=4").json["changes"]
        #expect(
            (0..<4).map { log[$0]["action"].string ?? "" } == [
                "POST /nodes/rebalance", "POST /nodes/one/resume", "POST /nodes/three/drain",
                "POST /nodes/one/drain",
            ])
        #expect((0..<4).map { log[$0]["status"].number ?? 0 } == [202, 202, 404, 202])
    }

    @Test("a user is found by how the name begins, and told of without what the user wrote")
    func users() throws {
        let server = try TestServer(hasConsole: true)
        defer { server.stop() }
        let key = try server.makeApp("shop")
        _ = try server.makeApp("other")
        let reader = try ConsoleVisitor.entered(server, role: "read-only")
        for user in ["anna", "anna b", "Anna", "ann", "ben"] {
            _ = try server.openDevice("shop", user: user)
        }
        func found(_ query: String) throws -> (names: [String], next: String?) {
            let answer = try reader.send("GET", "/console/api/apps/shop/users\(query)")
            #expect(answer.status == 200, "\(answer.body)")
            let users = try answer.json["users"]
            return (
                (0..<users.count).map { users[$0]["user"].string ?? "" },
                try answer.json["next"].string
            )
        }
        #expect(try found("").names == ["Anna", "ann", "anna", "anna b", "ben"])
        #expect(try found("?prefix=anna").names == ["anna", "anna b"])
        #expect(try found("?prefix=ann").names == ["ann", "anna", "anna b"])
        #expect(try found("?prefix=x").names == [])
        let first = try found("?prefix=ann&limit=2")
        #expect(first.names == ["ann", "anna"])
        let rest = try found("?prefix=ann&limit=2&cursor=\(try #require(first.next))")
        #expect(rest.names == ["anna b"] && rest.next == nil)
        #expect(try reader.send("GET", "/console/api/apps/shop/users?prefix=%00").status == 400)
        #expect(try reader.send("GET", "/console/api/apps/none/users").status == 404)
        #expect(
            try reader.send("GET", "/console/api/apps/other/users").json["users"].count == 0)

        let body = #"{"participants":["anna","ben"]}"#
        #expect(try server.send("POST", "/v1/conversations", key: key, body).status == 201)
        let anna = try reader.send("GET", "/console/api/apps/shop/users/anna").json
        #expect(anna["conversation_count"].number == 1 && anna["muted_count"].number == 0)
        #expect(anna["blocked_count"].number == 0 && anna["is_cut"].flag == false)
        #expect(anna["device_count"].number == 1 && anna["is_suspended"].flag == false)
        #expect(try reader.send("GET", "/console/api/apps/other/users/anna").status == 404)
        #expect(try server.send("DELETE", "/v1/users/anna", key: key).status == 202)
        #expect(try reader.send("GET", "/console/api/apps/shop/users/anna").status == 404)
        #expect(try found("?prefix=anna").names == ["anna b"])
    }

    @Test("while the doctor waits for the network, others change things")
    func doctor() throws {
        let (begun, held) = (Latch(), Latch())
        let server = try TestServer(
            hasConsole: true,
            examining: { app, environment, name in
                begun.arrive()
                held.wait()
                return [
                    ExaminedCredential(
                        app: app, environment: environment, name: name, isGood: true, findings: [])
                ]
            })
        defer { server.stop() }
        _ = try server.makeApp("shop")
        try server.addPushCredential(to: "shop")
        let admin = try ConsoleVisitor.entered(server, role: "admin")
        let path = "/console/api/apps/shop/push/development/default/check"
        let examined = Latch()
        // Written before the latch opens, read after it.
        nonisolated(unsafe) var status = 0
        nonisolated(unsafe) let asking = admin
        let patient = Thread {
            status = (try? asking.send("POST", path).status) ?? -1
            examined.arrive()
        }
        patient.start()
        begun.wait()
        let changed = try admin.send("PATCH", "/console/api/apps/shop", #"{"grace_seconds":9}"#)
        #expect(changed.status == 200)
        #expect(try admin.send("GET", "/console/api/apps/shop").json["grace_seconds"].number == 9)
        held.arrive()
        examined.wait()
        #expect(status == 200)
        let log = try admin.send("GET", "/console/api/audit?limit=2").json["changes"]
        #expect((0..<2).map { log[$0]["status"].number ?? 0 } == [200, 200])
    }
}

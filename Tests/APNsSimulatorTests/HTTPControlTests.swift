import APNsSimulator
import DeviceModel
import Foundation
import Testing

/// The control API over HTTP, as curl speaks it.
struct HTTPControlTests {
    let harness: SimulatorHarness
    let base: String

    init() throws {
        harness = try SimulatorHarness { $0.httpPort = 0 }
        base = "http://127.0.0.1:\(try #require(harness.ports.httpPort))"
    }

    func curl(_ path: String, _ arguments: String...) throws -> (status: Int, body: String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
        process.arguments = ["-s", "-w", "\n%{http_code}", base + path] + arguments
        process.standardOutput = pipe
        try process.run()
        let text = String(
            decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return (
            Int(lines.last ?? "") ?? 0, lines.dropLast().joined(separator: "\n")
        )
    }

    func decoded(_ body: String) throws -> ControlResponse {
        try JSONDecoder().decode(ControlResponse.self, from: Data(body.utf8))
    }

    @Test func commandsAreWrittenAndRead() throws {
        let added = try curl(
            "/device_create", "-d", #"{"device":"phone","topic":"\#(CheckFixture.topic)"}"#)
        #expect(added.status == 200)
        #expect(try decoded(added.body).token?.count == 64)
        #expect(try decoded(try curl("/devices").body).devices == ["phone"])
        let opened = try curl("/device_open", "-d", #"{"device":"phone"}"#)
        #expect(opened.status == 200)
        let status = try decoded(try curl("/device_status?device=phone").body).status
        #expect(status?.state == .foreground)
    }

    @Test func theLogComesInPages() throws {
        _ = try harness.device("phone")
        for command in ["device_open", "device_suspend", "device_open"] {
            _ = try curl("/" + command, "-d", #"{"device":"phone"}"#)
        }
        _ = try curl("/clock", "-d", #"{"advanceMs":1000}"#)
        var cursor: UInt64 = 0
        var states: [String?] = []
        while true {
            let page = try decoded(
                try curl("/log?kinds=state&limit=1&after=\(cursor)").body)
            guard let event = page.events?.first else { break }
            states.append(event.state)
            cursor = page.next ?? 0
        }
        #expect(states == ["foreground", "suspended", "foreground"])
    }

    @Test func mistakesAreSaid() throws {
        #expect(try curl("/nonsense").status == 404)
        #expect(try curl("/events").status == 404)
        #expect(try curl("/device_open").status == 405)
        let missing = try curl("/device_open", "-d", "{}")
        #expect(missing.status == 400)
        #expect(try decoded(missing.body).error == "`device` is missing")
        #expect(try curl("/device_open", "-d", "[]").status == 400)
        #expect(try curl("/device_open", "-d", "nonsense").status == 400)
        #expect(try curl("/devices", "-X", "DELETE").status == 405)
        // A name that somebody made point here is not ours.
        #expect(try curl("/devices", "-H", "host: attacker.example").status == 403)
    }

    @Test func thePageIsForPeople() throws {
        let page = try curl("/")
        #expect(page.status == 200)
        #expect(page.body.contains(CheckFixture.topic))
        for check in Check.allCases { #expect(page.body.contains(check.rawValue)) }
    }

    @Test func theStatusHasNumbers() throws {
        _ = try harness.device("phone")
        let status = try #require(try decoded(try curl("/status").body).simulator)
        #expect(status.tokens == 1)
        #expect(status.apps == [CheckFixture.topic: CheckFixture.team])
        #expect(status.keys == [CheckFixture.keyID])
        #expect(try decoded(try curl("/checks").body).checks == CheckRow.table)
    }
}

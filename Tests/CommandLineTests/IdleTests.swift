import Foundation
import Testing

/// A server with connected devices that nobody asks anything rests: it writes nothing, and is
/// there at once when something comes or becomes due.
@Suite struct IdleTests {
    private static let counters = ["rouse_store_commits_total", "rouse_store_requests_total"]

    /// Phones of the simulator, logged in and in sync.
    private final class Phones {
        let server: ServedProgram
        private let process = Process()
        private let input = Pipe()

        private struct Ports: Decodable { let production: Int }

        init(_ server: ServedProgram, users: [String]) throws {
            self.server = server
            let program = server.program
            for key in ["issuer", "push"] { _ = try program.rouse("dev", "key", key) }
            _ = try program.rouse(
                "app", "issuer-key", "add", "shop", "--kid", "dev", "--key", "issuer.pub.pem",
                "--config", "rouse.conf")
            process.executableURL = URL(fileURLWithPath: Program.path)
            process.arguments = [
                "apns-simulator", "--certificates", "apns", "--control", "s", "--directory",
                "phones", "--json", "--with-parent",
            ]
            process.currentDirectoryURL = program.folder
            let output = Pipe()
            process.standardInput = input
            process.standardOutput = output
            try process.run()
            let line = output.fileHandleForReading.availableData
            let port = try JSONDecoder().decode(Ports.self, from: line).production
            try tell(["cmd": "app_add", "topic": "org.example.shop", "team": "TEAM000001"])
            let pem = try String(contentsOfFile: program.path("push.pub.pem"), encoding: .utf8)
            try tell([
                "cmd": "key_add", "kid": "DEVELOP001", "team": "TEAM000001", "publicKey": pem,
            ])
            let set = try program.rouse(
                "app", "push", "set", "shop", "--environment", "production", "--key", "push.pem",
                "--key-id", "DEVELOP001", "--team", "TEAM000001", "--topic", "org.example.shop",
                "--host", "localhost", "--port", "\(port)", "--trust", "apns/authority.pem",
                "--config", "rouse.conf")
            #expect(set.status == 0, "\(set.errors)")
            for user in users {
                try tell([
                    "cmd": "device_create", "device": user, "topic": "org.example.shop",
                    "user": user, "app": "shop", "host": "127.0.0.1", "serverName": "localhost",
                    "port": server.devicePort, "trust": program.path("tls/ca.pem"),
                    "issuerKey": program.path("issuer.pem"), "issuerKid": "dev",
                ])
                try tell(["cmd": "device_open", "device": user])
            }
        }

        deinit {
            process.terminate()
            process.waitUntilExit()
        }

        @discardableResult
        func tell(_ command: [String: Any]) throws -> String {
            let text = String(
                decoding: try JSONSerialization.data(withJSONObject: command), as: UTF8.self)
            let answer = try server.program.rouse("apns-simulator", "tell", "--control", "s", text)
            #expect(answer.status == 0, "\(text): \(answer.all)")
            return answer.output
        }

        func wait(_ command: [String: Any], for text: String) throws -> Bool {
            let end = Date(timeIntervalSinceNow: 60)
            while Date() < end {
                if try tell(command).contains(text) { return true }
                usleep(100_000)
            }
            return false
        }
    }

    private func post(_ server: ServedProgram, _ path: String, _ body: String) throws -> String {
        try server.program.run([
            "/usr/bin/curl", "-fsS", "-H", "Authorization: Bearer \(server.apiKey)", "-H",
            "Content-Type: application/json", "-d", body,
            "http://127.0.0.1:\(server.apiPort)\(path)",
        ]).output
    }

    private func id(_ answer: String) throws -> String {
        struct Answer: Decodable { let id: String }
        return try JSONDecoder().decode(Answer.self, from: Data(answer.utf8)).id
    }

    /// Waits until nothing was written for some seconds.
    private func settled(_ server: ServedProgram) throws -> [String: Double]? {
        var before = try server.metrics(Self.counters)
        let end = Date(timeIntervalSinceNow: 90)
        while Date() < end {
            sleep(4)
            let now = try server.metrics(Self.counters)
            if now == before { return now }
            before = now
        }
        return nil
    }

    @Test("with idle devices connected there is no commit and no request, and nothing comes late")
    func rests() throws {
        let server = try ServedProgram()
        let phones = try Phones(server, users: ["anna", "ben"])
        for user in ["anna", "ben"] {
            let status = ["cmd": "device_status", "device": user]
            #expect(try phones.wait(status, for: "\"isInSync\":true"))
        }
        let quiet = try #require(try settled(server), "it does not rest")
        #expect(quiet.count == 2)
        sleep(10)
        #expect(try server.metrics(Self.counters) == quiet)
        // What is published is there as ever, and so is what is due at a time.
        let room = try id(post(server, "/v1/conversations", #"{"participants":["anna","ben"]}"#))
        func message(_ text: String, _ more: String = "") -> String {
            #"{"sender":"anna","parts":[{"mime_type":"text/plain","text":"\#(text)"}]\#(more)}"#
        }
        let messages = "/v1/conversations/\(room)/messages"
        let first = try id(post(server, messages, message("now")))
        let seen: [String: Any] = [
            "cmd": "device_messages", "device": "ben", "conversation": room,
        ]
        #expect(try phones.wait(seen, for: first))
        let moment = Date(timeIntervalSinceNow: 12)
        let later = try id(
            post(
                server, messages, message("later", #","send_at":"\#(moment.formatted(.iso8601))""#))
        )
        #expect(try phones.wait(seen, for: later))
        #expect(Date().timeIntervalSince(moment) < 5)
        #expect(try settled(server) != nil)
    }
}

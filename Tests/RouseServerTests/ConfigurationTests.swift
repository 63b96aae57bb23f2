import Foundation
import Telemetry
import Testing

@testable import RouseServer

@Suite struct ConfigurationTests {
    func read(
        _ text: String, _ environment: [String: String] = [:]
    ) throws(ConfigurationError) -> Configuration {
        try Configuration(text: text, name: "rouse.conf", environment: environment)
    }

    @Test("values, comments, quotes and blanks")
    func values() throws {
        let configuration = try read(
            """
            # a comment
            listen.port = 9000   # another
            store.path = "/var/lib/rouse/a # b.db"

            log.level=warning
            """)
        #expect(configuration.listenPort == 9000)
        #expect(configuration.storePath == "/var/lib/rouse/a # b.db")
        #expect(configuration.logLevel == .warning)
        #expect(configuration.adminSocketPath == "/var/lib/rouse/a # b.db.admin")
    }

    @Test("lines may end as on Windows")
    func carriageReturns() throws {
        let configuration = try read("loops = 2\r\n# x\r\n\r\nstore.path = a\r\n")
        #expect(configuration.loops == 2)
        #expect(configuration.storePath == "a")
    }

    @Test("what is in force is shown so that it can be read again", arguments: ["a # b", " a", ""])
    func shown(_ path: String) throws {
        let configuration = try read("store.path = \"\(path)\"")
        #expect(configuration.storePath == path)
        #expect(try read(configuration.text) == configuration)
    }

    @Test("a variable is like a setting by what follows ROUSE_")
    func likeVariables() {
        for (name, meant) in [("ROUSE_FOO", nil), ("ROUSE_LOPS", "ROUSE_LOOPS")] {
            #expect(
                throws: ConfigurationError(
                    "environment: \(name) names no setting"
                        + (meant.map { "; did you mean \($0)?" } ?? ""))
            ) { try read("", [name: "1"]) }
        }
    }

    @Test("the environment stands over the file")
    func environment() throws {
        let configuration = try read(
            "listen.port = 1", ["ROUSE_LISTEN_PORT": "2", "HOME": "/", "ROUSE_LOOPS": "3"])
        #expect(configuration.listenPort == 2)
        #expect(configuration.loops == 3)
    }

    @Test(
        "what is wrong is named with its place",
        arguments: [
            (
                "listen.prot = 1",
                "rouse.conf:1: unknown key `listen.prot`; did you mean `listen.port`?"
            ),
            ("\nlisten.port = x", "rouse.conf:2: listen.port must be a port, 0 to 65535, not `x`"),
            (
                "listen.port = 65536",
                "rouse.conf:1: listen.port must be a port, 0 to 65535, not `65536`"
            ),
            ("listen.port", "rouse.conf:1: expected `key = value`, found `listen.port`"),
            (
                "loops = 1\nloops = 2",
                "rouse.conf:2: loops is set already at rouse.conf:1; keep one"
            ),
            ("store.path = \"x", "rouse.conf:1: a quote is not closed"),
            ("store.path = x\"y\"", "rouse.conf:1: quotes go around a whole value"),
            (
                "timers.drain = 0",
                "rouse.conf:1: timers.drain must be a time from 1s to 1h, as 90s, 15m or 2h, not `0`"
            ),
            (
                "log.level = loud",
                "rouse.conf:1: log.level must be debug, info, warning or error, not `loud`"
            ),
        ])
    func errors(_ text: String, _ expected: String) {
        #expect(throws: ConfigurationError(expected)) { try read(text) }
    }

    @Test("a variable of ours that names no setting is an error")
    func unknownVariable() {
        #expect(
            throws: ConfigurationError(
                "environment: ROUSE_LISTEN_PROT names no setting; did you mean ROUSE_LISTEN_PORT?")
        ) {
            try read("", ["ROUSE_LISTEN_PROT": "1"])
        }
    }

    @Test("every setting survives being shown and read again")
    func roundTrip() throws {
        var configuration = Configuration()
        configuration.listenPort = 1
        configuration.certificateFile = "a b"
        configuration.receivingBytesMax = 1 << 21
        configuration.drainSeconds = 7
        #expect(try read(configuration.text) == configuration)
    }

    @Test("the example names every setting and reads as the defaults, commented or not")
    func example() throws {
        #expect(try read(Configuration.example) == Configuration())
        let bare = Configuration.example.split(separator: "\n").map { line in
            line.hasPrefix("#") && !line.hasPrefix("# ") ? String(line.dropFirst()) : String(line)
        }
        #expect(try read(bare.joined(separator: "\n")) == Configuration())
        for field in Configuration.fields { #expect(Configuration.example.contains(field.key)) }
    }

    @Test("the range that is told of a setting is the one that is taken")
    func ranges() throws {
        let ranged = Configuration.fields.filter { !$0.range.isEmpty }
        #expect(ranged.count > 20)
        for field in ranged {
            let ends = field.range.components(separatedBy: " to ")
            try #require(ends.count == 2, "\(field.key)")
            var configuration = Configuration()
            for end in ends {
                #expect(field.read(&configuration, end) == nil, "\(field.key) = \(end)")
            }
            // What is beyond them is refused, with the same range.
            for beyond in ["99999999999", "-1"] {
                let wrong = try #require(field.read(&configuration, beyond), "\(field.key)")
                #expect(wrong.contains("from \(ends[0]) to "), "\(field.key): \(wrong)")
            }
        }
    }

    @Test("Deploy/rouse.conf.example is what `rouse serve --example-config` prints")
    func exampleFile() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appendingPathComponent("Deploy/rouse.conf.example")
        #expect(try String(contentsOf: file, encoding: .utf8) == Configuration.example)
    }
}

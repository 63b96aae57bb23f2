import Foundation
import Testing

/// What cannot be served is refused as a wrong setting, by `--check-config` as by a start.
@Suite struct StartTests {
    private func prepared() throws -> Program {
        let program = try Program()
        _ = try program.rouse("dev", "certificates", "tls")
        try program.write(ServedProgram.base, "rouse.conf")
        return program
    }

    /// Runs `rouse serve` with so many descriptors; a server that starts ends at once.
    private func serve(
        _ program: Program, descriptors: Int, _ words: String...
    ) throws -> Program.Outcome {
        try program.run(
            [
                "/bin/sh", "-c", "ulimit -n \(descriptors); : | \"$@\"", "sh", Program.path,
                "serve", "--config", "rouse.conf", "--with-parent",
            ] + words)
    }

    @Test("too few descriptors are refused with what to do", arguments: [64, 256, 300])
    func tooFewDescriptors(_ count: Int) throws {
        let program = try prepared()
        for words in [["--check-config"], []] {
            let outcome =
                words.isEmpty
                ? try serve(program, descriptors: count)
                : try serve(program, descriptors: count, words[0])
            #expect(outcome.status == 78, "\(count) \(words): \(outcome.all)")
            #expect(
                outcome.errors.contains(
                    "limits.connections: the descriptor limit is \(count), and a server needs 320"),
                "\(outcome.errors)")
            #expect(outcome.errors.contains("ulimit -Hn"))
        }
        #expect(!program.exists("rouse.db"))
    }

    @Test("few descriptors are warned of, unless so few devices are meant")
    func fewDescriptors() throws {
        let program = try prepared()
        let loops = max(1, ProcessInfo.processInfo.activeProcessorCount - 1)
        let told = "the descriptor limit 400 leaves room for \(226 - 7 * loops) devices"
        let checked = try serve(program, descriptors: 400, "--check-config")
        #expect(checked.status == 0, "\(checked.errors)")
        #expect(checked.errors.contains("warning: limits.connections: \(told)"))
        let served = try serve(program, descriptors: 400)
        #expect(served.status == 0, "\(served.errors)")
        let line = served.errors.split(separator: "\n").first {
            $0.contains("event=server.few_descriptors ")
        }
        #expect(line?.contains("level=warning") == true && line?.contains(told) == true)
        let meant = try serve(
            program, descriptors: 400, "--check-config", "--set", "limits.connections=100")
        #expect(meant.status == 0 && !meant.errors.contains("descriptor"), "\(meant.errors)")
    }

    @Test(
        "an address that is none is told before a start",
        arguments: [
            ("listen.host=localhost", "listen.host: `localhost` is not a numeric address"),
            ("listen.host=[::1]", "listen.host: `[::1]` is not a numeric address"),
            ("listen.host=nonsense.example", "listen.host: `nonsense.example` is not a numeric"),
            ("listen.host=", "listen.host: `` is not a numeric address"),
            ("api.host=", "api.host: `` is neither a numeric address"),
            ("api.host=[::1]", "api.host: `[::1]` is neither a numeric address"),
            ("api.port=9000", "api.port: 9000 is listen.port, too"),
            ("console.port=9000", "console.port: 9000 is listen.port, too"),
            ("node.agent_port=9000", "node.agent_port: 9000 is listen.port, too"),
            ("node.name=\u{1B}[31mred", "node.name must be at most 128 bytes, all of them visible"),
            (
                "node.name=\(String(repeating: "n", count: 3_000))",
                "node.name must be at most 128 bytes, all of them visible"
            ),
        ])
    func addresses(_ setting: String, _ told: String) throws {
        let program = try prepared()
        try program.write(
            ServedProgram.base.replacingOccurrences(
                of: "listen.port = 0", with: "listen.port = 9000"), "rouse.conf")
        let place = "--set \(setting.prefix { $0 != "=" }): "
        for words in [["--check-config"], ["--with-parent"]] {
            let outcome = try program.rouse(
                ["serve", "--config", "rouse.conf", "--set", setting] + words)
            #expect(outcome.status == 78, "\(words): \(outcome.all)")
            #expect(outcome.errors.contains(place + told), "\(outcome.errors)")
            #expect(!outcome.errors.contains("\u{1B}") && outcome.errors.utf8.count < 800)
        }
    }

    @Test(
        "what can be served is sound",
        arguments: [
            "listen.host=::", "listen.host=::1", "listen.host=fe80::1%lo", "api.host=localhost",
            "api.host=::", "api.port=0", "node.name=Büro 7", "node.name=",
            "node.name=\(String(repeating: "n", count: 128))",
        ])
    func sound(_ setting: String) throws {
        let outcome = try prepared().rouse(
            "serve", "--config", "rouse.conf", "--set", setting, "--check-config")
        #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.all)")
    }
}

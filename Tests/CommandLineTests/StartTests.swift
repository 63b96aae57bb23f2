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
        let told = "the descriptor limit 400 leaves room for 144 devices"
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
}

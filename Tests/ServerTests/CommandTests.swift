import Foundation
import Testing

/// What the program says to people: help, mistakes, exit statuses.
@Suite struct CommandTests {
    @Test("help lists the commands, and each command helps with an example")
    func help() throws {
        let overview = try Program.run(["--help"])
        #expect(overview.status == 0)
        for command in ["serve", "replay", "app create", "apns-simulator"] {
            #expect(overview.output.contains("  \(command) "), "\(overview.output)")
            let help = try Program.run(
                command.split(separator: " ").map(String.init) + ["--help"])
            #expect(help.status == 0 && help.output.contains("usage: rouse \(command)"))
            #expect(help.output.contains("examples:"), "\(command)")
        }
    }

    @Test(
        "mistakes are named, with the status of a usage error",
        arguments: [
            (["frobnicate"], "no command `frobnicate`"),
            (["serve", "--prot", "1"], "--prot"),
            (["replay"], "missing FILE"),
            (["replay", "x", "--factor", "fast"], "--factor must be a number"),
            (["serve", "--config"], "--config needs a value"),
        ])
    func mistakes(_ arguments: [String], _ expected: String) throws {
        let outcome = try Program.run(arguments)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains(expected), "\(outcome.errors)")
    }

    @Test("a configuration that cannot work is refused with its place and status 78")
    func configuration() throws {
        let unknown = try Program.run(["serve", "--set", "listen.prot=1", "--check-config"])
        #expect(unknown.status == 78 && unknown.errors.contains("unknown key `listen.prot`"))
        let file = try Program.run(
            ["serve", "--set", "tls.certificate_file=/nonexistent", "--check-config"])
        #expect(file.status == 78 && file.errors.contains("tls.certificate_file"))
    }

    @Test("the version is told")
    func version() throws {
        let outcome = try Program.run(["--version"])
        #expect(outcome.status == 0 && outcome.output.hasPrefix("rouse "))
    }
}

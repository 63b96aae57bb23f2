import Foundation
import Testing

/// The manual pages as man(1) and groff(1) see them.
@Suite struct ManualTests {
    private func pages(_ program: Program) throws -> [String] {
        let written = try program.rouse("man", "--to", "pages")
        #expect(written.status == 0, "\(written.errors)")
        var files: [String] = []
        for section in ["man1", "man5"] {
            files += try FileManager.default.contentsOfDirectory(
                atPath: program.path("pages/\(section)")
            ).map { program.path("pages/\(section)/\($0)") }
        }
        return files.sorted()
    }

    @Test("there is a page of every command, one of all of them, and one of the settings")
    func whole() throws {
        let program = try Program()
        let commands = try TableCommand.all(program)
        let names = Set(try pages(program).map { URL(fileURLWithPath: $0).lastPathComponent })
        let expected =
            commands.map { "rouse-\($0.words.joined(separator: "-")).1" }
            + ["rouse.1", "rouse.conf.5"]
        #expect(names == Set(expected))
        let settings = try program.rouse("man", "--settings").output
        #expect(settings.contains(".B store.path = rouse.db"))
        #expect(settings.contains(".B timers.drain = 5s"))
        let one = try String(
            contentsOfFile: program.path("pages/man1/rouse-app-create.1"), encoding: .utf8)
        #expect(try program.rouse("man", "app", "create").output == one)
        #expect(one.contains("\\-\\-new\\-store"))
    }

    @Test(
        "groff finds nothing to warn of in any page",
        .enabled(if: Program.find("groff") != nil, "groff-base is not installed"))
    func warnings() throws {
        let program = try Program()
        let groff = try #require(Program.find("groff"))
        let printed = try program.run([groff, "-man", "-ww", "-Tutf8"] + pages(program))
        #expect(printed.status == 0)
        #expect(printed.errors == "", "\(printed.errors.prefix(2_000))")
        #expect(printed.output.contains("RouseServer") == false)
    }

    @Test(
        "man prints a page of a file, and finds it by its name",
        .enabled(if: Program.find("man") != nil, "man-db is not installed"))
    func man() throws {
        let program = try Program()
        let files = try pages(program)
        let man = try #require(Program.find("man"))
        let settings = ["MANWIDTH": "80", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"]
        let file = try #require(files.first { $0.hasSuffix("/rouse-serve.1") })
        let printed = try program.run(
            [man, "--warnings", "-l", file], settings: settings)
        #expect(printed.status == 0 && printed.errors == "", "\(printed.errors)")
        #expect(printed.output.contains("run the server"))
        #expect(printed.output.contains("--check-config"))
        let found = try program.run(
            [man, "-M", program.path("pages"), "rouse.conf"], settings: settings)
        #expect(found.status == 0, "\(found.errors)")
        #expect(found.output.contains("timers.drain = 5s"))
    }
}

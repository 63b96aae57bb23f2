import Foundation
import Testing

/// What the program says to people who ask, and to those who mistype.
@Suite struct HelpTests {
    @Test("help shows every command once, in its group, and every command has help")
    func overview() throws {
        let program = try Program()
        let overview = try program.rouse("--help")
        #expect(overview.status == 0)
        let help = try program.rouse("help")
        #expect(help.output == overview.output && help.status == 0)
        let commands = try TableCommand.all(program)
        #expect(commands.count > 60)
        let lines = overview.output.split(separator: "\n").map(String.init)
        for command in commands {
            let shown = lines.filter { $0.hasPrefix("  \(command.name)  ") }
            #expect(shown.count == 1, "\(command.name)")
        }
        var order: [String] = []
        for command in commands where order.last != command.group { order.append(command.group) }
        #expect(order.count == Set(order).count && order.count >= 5)
        #expect(lines.filter { order.contains($0) } == order)
        // Nobody reads on at the right of the screen.
        #expect(lines.allSatisfy { $0.count <= 100 })
    }

    @Test("help of a command is what its --help prints, and a group's lists its commands")
    func ofCommand() throws {
        let program = try Program()
        for command in try TableCommand.all(program) {
            let help = try program.rouse(["help"] + command.words)
            #expect(help.status == 0)
            #expect(help.output.hasPrefix("rouse \(command.name) - "), "\(command.name)")
            #expect(help.output.contains("usage: rouse \(command.name)"))
        }
        let serve = try program.rouse("serve", "--help").output
        #expect(try program.rouse("help", "serve").output == serve)
        let group = try program.rouse("help", "app", "user")
        #expect(group.status == 0 && group.output.contains("app user revoke"))
        #expect(!group.output.contains("app create"))
        #expect(try program.rouse("help", "conform").output.contains("see also:"))
    }

    @Test(
        "a slip of the finger is told what was meant",
        arguments: [
            (["serv"], "did you mean `rouse serve`?"),
            (["app", "creat", "shop"], "did you mean `rouse app create`?"),
            (["ap", "create", "shop"], "did you mean `rouse app create`?"),
            (["app", "usr", "revoke", "shop", "anna"], "did you mean `rouse app user revoke`?"),
            (["help", "repaly"], "did you mean `rouse replay`?"),
            (["camapign"], "did you mean `rouse campaign`?"),
            (["serve", "--chek-config"], "did you mean --check-config?"),
            (["serve", "--conf", "x"], "did you mean --config?"),
            (["app", "set", "shop", "--grase", "3"], "did you mean --grace?"),
            (["app", "policy", "shop", "--preset", "adaptiv"], "--preset must be"),
            (["completion", "fish"], "expected bash or zsh, not `fish`"),
            (["serve", "--config", "--check-config"], "--config needs a value: FILE"),
        ])
    func slips(_ words: [String], _ said: String) throws {
        let outcome = try Program().rouse(words)
        #expect(outcome.status == 64)
        #expect(outcome.errors.contains(said), "\(outcome.errors)")
        #expect(outcome.output.isEmpty)
    }

    @Test("a chat's examples lack nothing but a terminal")
    func chatExamples() throws {
        let program = try Program()
        #expect(try program.rouse("dev", "certificates", "tls").status == 0)
        #expect(try program.rouse("dev", "key", "keys/issuer").status == 0)
        let help = try program.rouse("chat", "--help").output
        let examples = help.split(separator: "\n").filter { $0.hasPrefix("  rouse chat ") }
        #expect(examples.count == 2)
        for example in examples {
            let words = example.split(separator: " ").dropFirst().map(String.init)
            let outcome = try program.rouse(words)
            #expect(outcome.status == 69, "\(example): \(outcome.errors)")
        }
    }

    @Test("nobody is told that they meant something quite different")
    func strangers() throws {
        for words in [["frobnicate"], ["app", "frobnicate"], ["serve", "--frobnicate"], ["app"]] {
            let outcome = try Program().rouse(words)
            #expect(outcome.status == 64 && !outcome.errors.contains("did you mean"), "\(words)")
        }
    }

    @Test("the help of every command shows how it is called, by calls that begin with its words")
    func examples() throws {
        let program = try Program()
        for command in try TableCommand.all(program) {
            let help = try program.rouse(command.words + ["--help"]).output
            let parts = help.components(separatedBy: "\nexamples:\n")
            #expect(parts.count == 2, "\(command.name) has no examples")
            let shown = (parts.last ?? "").components(separatedBy: "\n\n").first ?? ""
            #expect(shown.contains("rouse \(command.name)"), "\(command.name): \(shown)")
        }
    }
}

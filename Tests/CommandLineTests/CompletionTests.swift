import Foundation
import Testing

/// What Tab makes of a line, typed into real shells on a terminal.
@Suite struct CompletionTests {
    /// Lines that end where Tab is pressed, and what the words become.
    static let lines: [(typed: String, completed: [String])] = [
        ("rouse ser", ["rouse", "serve"]),
        ("rouse app cr", ["rouse", "app", "create"]),
        ("rouse app api-key re", ["rouse", "app", "api-key", "revoke"]),
        ("rouse help node l", ["rouse", "help", "node", "list"]),
        ("rouse serve --check", ["rouse", "serve", "--check-config"]),
        ("rouse serve --set listen.proxy", ["rouse", "serve", "--set", "listen.proxy_networks="]),
        ("rouse serve --config some", ["rouse", "serve", "--config", "some file.conf"]),
        ("rouse serve --config x --js", ["rouse", "serve", "--config", "x", "--json"]),
        (
            "rouse app push set shop --environment prod",
            ["rouse", "app", "push", "set", "shop", "--environment", "production"]
        ),
        ("rouse conform --format=j", ["rouse", "conform", "--format=j"]),
        ("rouse conform --format=ta", ["rouse", "conform", "--format=tap"]),
        ("rouse dev certificates fold", ["rouse", "dev", "certificates", "folder/"]),
        ("rouse completion z", ["rouse", "completion", "zsh"]),
        ("rouse fleet --policy alert", ["rouse", "fleet", "--policy", "alerts-only"]),
    ]

    private func complete(_ shell: String, _ program: Program) throws -> [[String]] {
        let script = try program.rouse("completion", shell)
        #expect(script.status == 0)
        try program.write(script.output, "completion")
        try program.write("", "some file.conf")
        try program.write("", "folder/x")
        let typed = try JSONEncoder().encode(Self.lines.map(\.typed))
        try typed.write(to: program.folder.appendingPathComponent("lines.json"))
        let peer = Program.root.appendingPathComponent("Tests/peers/completion.py").path
        let outcome = try program.run(
            ["/usr/bin/python3", peer, shell, "completion", "lines.json"], seconds: 240)
        #expect(outcome.status == 0, "\(outcome.errors)")
        return try JSONDecoder().decode([[String]].self, from: Data(outcome.output.utf8))
    }

    private func check(_ shell: String) throws {
        let completed = try complete(shell, try Program())
        #expect(completed.count == Self.lines.count)
        for (line, words) in zip(Self.lines, completed) {
            #expect(words == line.completed, "\(line.typed)")
        }
    }

    @Test("bash completes commands, options, words, settings and files")
    func bash() throws { try check("bash") }

    @Test(
        "zsh completes the same",
        .enabled(if: Program.find("zsh") != nil, "zsh is not installed"))
    func zsh() throws { try check("zsh") }

    @Test("bash reads both scripts, or its own, without a complaint")
    func syntax() throws {
        let program = try Program()
        try program.write(try program.rouse("completion", "bash").output, "script")
        let read = try program.run(["/bin/bash", "-n", "script"])
        #expect(read.status == 0 && read.all == "", "\(read.all)")
    }

    @Test("every command and every option stands in both scripts")
    func whole() throws {
        let program = try Program()
        for shell in ["bash", "zsh"] {
            let script = try program.rouse("completion", shell).output
            for command in try TableCommand.all(program) {
                let words = command.options.map { "--\($0.name)" } + ["--help"]
                let line = "'\(command.name)') echo '\(words.joined(separator: " "))' ;;"
                #expect(script.contains(line), "\(shell): \(command.name)")
            }
        }
    }
}

import Foundation
import Testing

/// What cannot be written is told, by words and by the exit status.
@Suite struct OutputTests {
    /// Runs one line of a shell, in which `$R` is the program.
    private func shell(_ line: String, _ program: Program) throws -> Program.Outcome {
        try program.run(["/bin/bash", "-c", line], settings: ["R": Program.path])
    }

    @Test(
        "a full disk is told, and ends with 73",
        arguments: [
            "--help", "--version", "help app", "help --json", "app list --help", "man serve",
            "man --settings", "completion bash", "serve --example-config", "serve --print-config",
            "app list", "app list --json", "app show shop", "backup copy",
            "dev certificates more",
        ])
    func fullDisk(words: String) throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        let full = try shell("\"$R\" \(words) > /dev/full", program)
        #expect(full.status == 73, "\(words): \(full.status)")
        #expect(full.errors.contains("cannot be written: No space left"), "\(full.errors)")
        let last = full.errors.split(separator: "\n").last ?? ""
        #expect(last.hasPrefix("rouse"), "\(full.errors)")
    }

    @Test("nor does a closed standard output pass for one that was read")
    func closed() throws {
        let program = try Program()
        let closed = try shell("\"$R\" serve --example-config >&-", program)
        #expect(closed.status == 73, "\(closed.status)")
        #expect(closed.errors.contains("Bad file descriptor"), "\(closed.errors)")
    }

    @Test("what was wrong before stays the exit status")
    func wrongBefore() throws {
        let wrong = try shell("\"$R\" > /dev/full", Program())
        #expect(wrong.status == 64 && wrong.errors.contains("No space left"), "\(wrong.all)")
    }

    @Test("a reader that has enough is no failure")
    func closedPipe() throws {
        let program = try Program()
        for ending in ["", "trap '' PIPE; "] {
            let line = "\(ending)\"$R\" help --json | head -c 1; echo ${PIPESTATUS[0]}"
            let outcome = try shell(line, program)
            #expect(outcome.errors.isEmpty, "\(outcome.errors)")
            #expect(outcome.output == "[0\n" || outcome.output == "[141\n", "\(outcome.output)")
        }
    }

    @Test("a secret that nobody saw is named, with what ends it", arguments: ["", " --json"])
    func lostSecrets(ending: String) throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        for (words, list) in [
            ("app api-key create shop", "app api-key list shop"),
            ("console token --label anna", "console token list"),
            ("app webhook add shop --url https://shop.example/x", "app webhook list shop"),
        ] {
            for place in ["> /dev/full", "| true", "| cat > /dev/null"] {
                let wait = place == "| true" ? "sleep 0.2; " : ""
                let line = "{ \(wait)\"$R\" \(words)\(ending); } \(place); exit ${PIPESTATUS[0]}"
                let made = try shell(line, program)
                if place.contains("cat") {
                    #expect(made.status == 0 && !made.errors.contains("lost"), "\(made.errors)")
                    continue
                }
                #expect(made.status == 73, "\(words) \(place): \(made.status)")
                #expect(made.errors.contains("is lost"), "\(words) \(place): \(made.errors)")
                // The command that is named ends what was made.
                let advice = made.errors.split(separator: "`").dropFirst().first ?? ""
                let id = advice.split(separator: " ").last ?? "?"
                #expect(try program.rouse(words: list).output.contains(id), "\(made.errors)")
                let ended = try program.rouse(words: String(advice.dropFirst("rouse ".count)))
                #expect(ended.status == 0, "\(advice): \(ended.errors)")
                #expect(try !program.rouse(words: list).output.contains(id), "\(advice)")
            }
        }
    }

    @Test("of a new secret beside the old one it is told how to come to another")
    func lostRotation() throws {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        _ = try program.rouse(words: "app webhook add shop --url https://shop.example/x")
        let list = try program.rouse(words: "app webhook list shop --json").output
        let id = try #require(list.firstMatch(of: /"id":"([^"]+)"/)?.1)
        let lost = try shell("\"$R\" app webhook rotate shop \(id) > /dev/full", program)
        #expect(lost.status == 73, "\(lost.all)")
        #expect(lost.errors.contains("`rouse app webhook rotate shop \(id) --undo`"))
    }
}

extension Program {
    /// A command line whose words hold no spaces.
    func rouse(words line: String) throws -> Outcome {
        try rouse(line.split(separator: " ").map(String.init))
    }
}

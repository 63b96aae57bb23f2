import Foundation
import Testing

/// What a restore says of what it took away.
@Suite struct RestoreTests {
    private func backedUp(tokens: Int) throws -> Program {
        let program = try Program()
        #expect(try program.rouse("app", "create", "shop", "--new-store").status == 0)
        for _ in 0..<tokens { #expect(try program.rouse("console", "token").status == 0) }
        #expect(try program.rouse("backup", "copy").status == 0)
        return program
    }

    @Test("operators are told that their console tokens are gone, in words and in JSON")
    func consoleTokens() throws {
        let program = try backedUp(tokens: 2)
        let restored = try program.rouse("restore", "copy")
        #expect(restored.status == 0, "\(restored.all)")
        #expect(
            restored.output.contains(
                "2 console tokens dropped; make new ones with `rouse console token`"),
            "\(restored.output)")
        let list = try program.rouse("console", "token", "list", "--json")
        #expect(list.output.contains("\"tokens\":[]"), "\(list.output)")
        let json = try program.rouse("restore", "copy", "--json")
        #expect(json.output.contains("\"console_tokens_dropped\":2"), "\(json.output)")
        #expect(try program.rouse("console", "token").status == 0)
        let drawn = try program.rouse("epoch", "new")
        #expect(drawn.output.contains("1 console tokens dropped"), "\(drawn.all)")
        let again = try program.rouse("epoch", "new", "--json")
        #expect(again.output.contains("\"console_tokens\":0"), "\(again.output)")
    }

    @Test("where there were none, nothing is said of them")
    func none() throws {
        let restored = try backedUp(tokens: 0).rouse("restore", "copy")
        #expect(restored.status == 0 && !restored.output.contains("console"), "\(restored.all)")
    }
}

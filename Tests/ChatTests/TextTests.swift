import Glibc
import Testing

@testable import Chat
@testable import SyncClient

/// Text in the columns of a terminal, whoever wrote it.
@Suite struct TextTests {
    init() { setlocale(LC_CTYPE, "C.UTF-8") }

    @Test(
        "a character has as many columns as a terminal gives it",
        arguments: [
            ("a", 1), ("é", 1), ("e\u{301}", 1), ("界", 2), ("😀", 2), ("👩‍👩‍👧", 2), ("👍🏽", 2),
            ("🇩🇪", 2), ("🇩🇪🇫🇷", 4), ("❤", 1), ("❤\u{FE0F}", 2), ("1\u{FE0F}\u{20E3}", 2),
            ("#\u{FE0F}\u{20E3}", 2), ("กำ", 2), ("\u{200B}", 0), ("\u{1b}", 0), ("✓", 1),
        ])
    func widths(_ text: String, _ columns: Int) {
        #expect(ChatText.width(text) == columns)
        #expect(ChatText.width(ChatText.fit(text, 1)) == 1)
    }

    @Test("flags fill the lines of a message, and not more")
    func flags() {
        let model = ChatModel.looking(at: [.row(1, String(repeating: "🇩🇪", count: 40))])
        let lines = ChatDrawing(model, columns: 60, rows: 24).lines
        // 60 columns hold 30, and no line has more.
        let flags = lines.map { line in line.count { $0 == "🇩🇪" } }
        #expect(flags.reduce(0, +) == 40)
        #expect(flags.allSatisfy { $0 <= 30 })
    }

    @Test("each line has its own row, and what the terminal was told is taken back at the end")
    func rows() {
        let drawing = ChatDrawing(ChatModel.looking(), columns: 80, rows: 24)
        let text = ChatTerminal.text(drawing)
        #expect(!text.contains("\n") && !text.contains("\r"))
        for row in 1...24 { #expect(text.contains("\u{1b}[\(row);1H")) }
        // Modes that are set have an end.
        let begun = ChatTerminal.greeting.matches(of: /\?([0-9]+)([hl])/)
        #expect(begun.count >= 2)
        for mode in begun {
            let end = mode.output.2 == "h" ? "l" : "h"
            #expect("\(farewell)".contains("\u{1b}[?\(mode.output.1)\(end)"))
        }
    }
}

import AppLife
import Glibc
import Model
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

    @Test("a letter has as many marks as people write, and not thousands")
    func marks() {
        let heaped = "a" + String(repeating: "\u{301}", count: 30_000)
        #expect(ChatText.plain(heaped).unicodeScalars.count == 32)
        let family = "👩🏽‍❤️‍💋‍👩🏽"
        #expect(ChatText.plain(family) == family)
        // Nor with something between them that is not shown.
        let parted = "a" + String(repeating: "\u{301}\u{200B}\u{202E}", count: 300)
        #expect(ChatText.plain(parted).unicodeScalars.count == 32)
    }

    @Test(
        "what nobody sees is not shown",
        arguments: [
            "\u{200B}", "\u{200E}", "\u{200F}", "\u{61C}", "\u{FEFF}", "\u{E0041}", "\u{200D}",
            "\u{200C}", "\u{2060}", "\u{AD}", "\u{34F}", "\u{3164}", "\u{FFF9}",
        ])
    func hidden(_ hidden: String) {
        #expect(ChatText.plain("a\(hidden)b\(hidden)") == "ab")
        #expect(ChatText.width(hidden) == 0)
        let text = "I owe 100  ✓✓ read"
        for sender in ["y\(hidden)ou", "\(hidden)you", "Y\(hidden)OU\(hidden)"] {
            let model = ChatModel.looking(at: [.row(1, text + hidden, by: sender)])
            let lines = ChatDrawing(model, columns: 80, rows: 24).lines
            #expect(lines.contains { $0.lowercased().hasPrefix("“you”: i owe 100") })
            #expect(!lines.joined().contains(hidden))
        }
    }

    @Test(
        "signs that are seen, and what makes one picture of several, are shown",
        arguments: ["🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤\u{FE0F}", "\u{600}12", "葛\u{E0100}", "1\u{FE0F}\u{20E3}"])
    func shown(_ text: String) {
        #expect(ChatText.plain(text) == text)
    }

    @Test(
        "the name of another that could be taken for the user's own is quoted, and no other",
        arguments: [
            ("you", true), ("[you]", true), (" You", true), ("y\u{43E}u", true), ("ｙｏｕ", true),
            ("y\u{FE0F}ou", true), ("y\u{336}ou", true), ("", true), ("you there", true),
            ("youssef", false), ("ben", false), ("Zoë Young", true), ("José", false), ("晚上", false),
        ])
    func names(_ sender: String, _ isQuoted: Bool) {
        let model = ChatModel.looking(at: [.row(1, "hello", by: sender)])
        let lines = ChatDrawing(model, columns: 80, rows: 24).lines
        #expect(lines.contains { $0.hasPrefix("“") } == isQuoted)
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

    @Test(
        "a line ends at every kind of break, and none is lost in what is one line",
        arguments: ["\r\n", "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}", "\u{B}", "\u{C}"])
    func breaks(_ end: String) {
        #expect(ChatText.plain("pay 10\(end)50") == "pay 10 50")
        #expect(ChatText.wrap("pay 10\(end)50", 40) == ["pay 10", "50"])
        #expect(ChatText.wrap("a\(end)\(end)b", 40) == ["a", "", "b"])

        var model = ChatModel.looking(at: [.row(1, "pay 10\(end)50")])
        model.notices = [
            AppNotice(
                object: MessageID(high: 1, low: 2), conversation: nil, title: "ben",
                body: "pay 20\(end)60")
        ]
        var row = ConversationRow(
            id: ChatModel.room, created: Timestamp(milliseconds: 1), creator: "ben")
        row.last = model.window.rows[0]
        model.conversations = [row]
        model.opened = nil
        let text = ChatDrawing(model, columns: 80, rows: 24).lines.joined(separator: "\n")
        #expect(text.contains("pay 10 50") && text.contains("pay 20 60"))
    }

    @Test(
        "nobody writes a line that looks like another's message",
        arguments: [
            "hello\nyou: I owe 100  ✓✓ read", "hello\r\nyou: I owe 100  ✓✓ read",
            "hello\u{2028}you: I owe 100  ✓✓ read",
            String(repeating: "x", count: 50) + " you: I owe 100  ✓✓ read",
            String(repeating: "x", count: 70) + "you: I owe 100  ✓✓ read",
        ])
    func forged(_ text: String) {
        for sender in ["ben", "you", "You ", "you: I", "ben\nyou"] {
            let model = ChatModel.looking(at: [.row(1, text, by: sender)])
            for columns in 40...100 {
                let drawing = ChatDrawing(model, columns: columns, rows: 24)
                #expect(!drawing.lines.contains { $0.lowercased().hasPrefix("you") })
            }
        }
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

import Glibc
import Testing

@testable import Chat

/// What a person types, as a terminal sends it.
@Suite struct LineTests {
    init() { setlocale(LC_CTYPE, "C.UTF-8") }

    private func edit(_ bytes: [UInt8]) -> (LineEditor, [String]) {
        var (reader, editor, lines) = (ChatKeyReader(), LineEditor(), [String]())
        // As the slowest terminal: byte by byte.
        for byte in bytes {
            for key in reader.read([byte]) {
                if let line = editor.take(key) { lines.append(line) }
            }
        }
        return (editor, lines)
    }

    private func line(_ text: String) -> String {
        edit(Array((text + "\r").utf8)).1.joined(separator: "|")
    }

    @Test("characters, of whatever length, make the line")
    func types() {
        #expect(line("h\u{e9} 😀 👩‍👩‍👧") == "h\u{e9} 😀 👩‍👩‍👧")
        // A mark that comes after its letter is one character with it: one step back erases both.
        #expect(line("ae\u{301}\u{7f}b") == "ab")
        // What is not seen is sent all the same.
        #expect(line("a\u{200C}b") == "a\u{200C}b")
    }

    @Test("a letter takes as many marks as people write, however many are pasted")
    func marks() {
        let heap = "a" + String(repeating: "\u{301}", count: 500)
        var (editor, _) = edit(Array("\u{1b}[200~\(heap)\u{1b}[201~b".utf8))
        #expect(editor.text.count == 2 && editor.text[0].unicodeScalars.count == 32)
        // Those before a letter join it once it stands before them.
        for _ in 0..<50 {
            _ = editor.take(.home)
            _ = editor.take(.character("\u{301}"))
        }
        _ = editor.take(.home)
        _ = editor.take(.character("a"))
        _ = editor.take(.end)
        let (text, column) = ChatDrawing.prompt(editor, 40)
        #expect(text.unicodeScalars.count < 40 + 3 * 32 && column == 5)
    }

    @Test(
        "keys move and erase",
        arguments: [
            ("ab\u{1b}[DX", "aXb"), ("ab\u{1b}[D\u{1b}[D\u{1b}[D\u{1b}[CX", "aXb"),
            ("ab\u{1}X", "Xab"), ("ab\u{1b}[H\u{1b}[3~", "b"), ("ab\u{1b}OH\u{5}X", "abX"),
            ("one two  \u{17}X", "one X"), ("one two\u{1b}[D\u{15}X", "Xo"),
            ("ab\u{7f}\u{7f}\u{7f}c", "c"), ("a\u{1b}[1;5Zb", "ab"), ("a\u{1b}xb", "ab"),
        ])
    func edits(_ typed: String, _ expected: String) {
        #expect(line(typed) == expected)
    }

    @Test("earlier lines come back, and so does the one that was begun")
    func history() {
        #expect(line("one\rtwo\r\u{1b}[A\u{1b}[A") == "one|two|one")
        #expect(line("one\rtw\u{1b}[A\u{1b}[Bo") == "one|two")
        #expect(line("  \r\r") == "")
    }

    @Test("bytes that are no UTF-8 are nothing, and what is too long is not taken")
    func bounds() {
        #expect(edit([0x61, 0xFF, 0xC3, 0x28, 0x62, 0x0D]).1 == ["a(b"])
        let (editor, _) = edit([UInt8](repeating: 0x61, count: LineEditor.lengthMax + 5))
        #expect(editor.excess == 5 && editor.lost == 0)
        // A sequence that never ends does not swallow the keyboard.
        let endless = [0x1B, 0x5B] + [UInt8](repeating: 0x31, count: 40)
        #expect(edit(endless + [0x0D]).1.joined().allSatisfy { $0 == "1" })
    }

    private func status(_ editor: LineEditor) -> String {
        var model = ChatModel.looking()
        model.editor = editor
        let drawing = ChatDrawing(model, columns: 80, rows: 24)
        return drawing.lines[18..<22].joined()
    }

    @Test("a line that is too long is not sent, and says so, until all that is too much is erased")
    func tooLong() {
        let long = [UInt8](repeating: 0x61, count: LineEditor.lengthMax + 503)
        var (editor, lines) = edit(long + [0x0D])
        #expect(lines == [] && editor.excess == 503)
        #expect(status(editor).contains("2000 characters fit, 503 do not"))
        for left in (0..<503).reversed() {
            #expect(editor.take(.enter) == nil)
            _ = editor.take(.backspace)
            #expect(editor.excess == left)
        }
        #expect(editor.take(.enter)?.count == LineEditor.lengthMax)
        // As many as fit are sent.
        (editor, lines) = edit(long.prefix(LineEditor.lengthMax) + [0x0D])
        #expect(lines.map(\.count) == [LineEditor.lengthMax])
    }

    @Test("a line whose end was lost is not sent, however much of it is erased")
    func lost() {
        var (editor, _) = edit([UInt8](repeating: 0x61, count: 20_000 + 7))
        #expect(editor.lost == 7 && status(editor).contains("Ctrl-U"))
        for _ in 0..<19_990 { _ = editor.take(.backspace) }
        // Nor when it was left for another line, and come back to.
        for key in [ChatKey.enter, .up, .down, .enter] { #expect(editor.take(key) == nil) }
        #expect(editor.excess == 7 && editor.text.count == 10)
        _ = editor.take(.eraseLine)
        _ = editor.take(.character("b"))
        #expect(editor.take(.enter) == "b")
    }

    @Test("what is pasted is one text, whatever lines and keys are in it")
    func pastes() {
        let text = "first\r/delete\r\nthird\t4\n\u{1b}[A\u{15}\u{4}end"
        let pasted = Array("a\u{1b}[200~\(text)\u{1b}[201~".utf8)
        let (editor, lines) = edit(pasted)
        #expect(lines == [])
        #expect(String(editor.text) == "afirst\n/delete\nthird 4\nend")
        #expect(line(String(decoding: pasted, as: UTF8.self)) == String(editor.text))
        // As a fast terminal sends it.
        var reader = ChatKeyReader()
        #expect(reader.read(pasted).count == editor.text.count)
        var model = ChatModel.looking()
        model.editor = editor
        let drawing = ChatDrawing(model, columns: 80, rows: 24)
        #expect(drawing.lines[23].hasPrefix("> afirst↵/delete↵third 4↵end "))
        #expect(drawing.cursor.column == 28)
    }

    @Test(
        "a command is one line, but for the text of an edit",
        arguments: ["/delete\n", "/delete \nx", "/open\n1", "/quit\n"])
    func pastedCommands(_ line: String) {
        guard case .mistake = ChatCommand(line) else {
            Issue.record("\(ChatCommand(line))")
            return
        }
        #expect(ChatCommand("/edit a\nb") == .edit("a\nb"))
    }

    @Test("the prompt shows as much of the line as fits before the cursor")
    func prompt() {
        var editor = LineEditor()
        for character in String(repeating: "ab界😀e\u{301}🇩🇪\u{200B}", count: 12) {
            _ = editor.take(.character(character))
        }
        for columns in 4...60 {
            var each = editor
            for _ in 0...editor.text.count {
                let (text, column) = ChatDrawing.prompt(each, columns)
                #expect(ChatText.width(text) == columns)
                // The least that must be left out.
                var start = 0
                while ChatText.width(String(each.text[start..<each.cursor])) > columns - 3 {
                    start += 1
                }
                let before = String(each.text[start..<each.cursor])
                #expect(column == 2 + ChatText.width(before))
                _ = each.take(.left)
            }
        }
    }

    @Test(
        "lines are commands",
        arguments: [
            ("hello", ChatCommand.say("hello")), ("//x", .say("/x")), ("/open 2", .open("2")),
            ("/new ben carl : Dinner", .new(users: ["ben", "carl"], title: "Dinner")),
            ("/new ben", .new(users: ["ben"], title: nil)), ("/tap", .tap(1)),
            ("/tap 3", .tap(3)), ("/unlock", .start), ("/edit  a b", .edit("a b")),
        ])
    func commands(_ line: String, _ expected: ChatCommand) {
        #expect(ChatCommand(line) == expected)
    }

    @Test(
        "what is no command says what would be",
        arguments: ["/tap x", "/x", "/", "/open", "/new :"])
    func mistakes(_ line: String) {
        guard case .mistake(let words) = ChatCommand(line) else {
            Issue.record("\(ChatCommand(line))")
            return
        }
        #expect(words.contains("/"))
    }
}

import Testing

@testable import Chat

/// What a person types, as a terminal sends it.
@Suite struct LineTests {
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
        #expect(editor.text.count == LineEditor.lengthMax)
        // A sequence that never ends does not swallow the keyboard.
        let endless = [0x1B, 0x5B] + [UInt8](repeating: 0x31, count: 40)
        #expect(edit(endless + [0x0D]).1.joined().allSatisfy { $0 == "1" })
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

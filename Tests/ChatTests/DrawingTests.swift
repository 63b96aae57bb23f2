import AppLife
import Glibc
import Model
import RouseClient
import SyncClient
import Testing

@testable import Chat

/// What stands on the terminal.
@Suite struct DrawingTests {
    init() { setlocale(LC_CTYPE, "C.UTF-8") }

    private func model() -> ChatModel {
        var model = ChatModel(user: "anna")
        model.phase = .front
        model.connection = .inSync
        return model
    }

    private func notice(_ title: String, _ body: String) -> AppNotice {
        AppNotice(object: MessageID(high: 1, low: 2), conversation: nil, title: title, body: body)
    }

    @Test("every line is as wide as the terminal, whatever stands on it")
    func widths() {
        var model = model()
        model.icon = 12
        model.notices = [
            notice("ben", "晚上八点吃饭吗？ 😀 and a long line that does not fit"),
            notice("", "\u{1b}[31mred\u{1b}[0m\u{202e}"),
        ]
        model.remark = String(repeating: "a remark ", count: 40)
        for character in "wörds 界面 👩‍👩‍👧 to type that go on and on and on and on and on and on" {
            _ = model.editor.take(.character(character))
        }
        for (columns, rows) in [(80, 24), (72, 8), (71, 24), (40, 8), (200, 60), (10, 3)] {
            for help in [false, true] {
                model.showsHelp = help
                let drawing = ChatDrawing(model, columns: columns, rows: rows)
                #expect(drawing.lines.count == rows)
                for line in drawing.lines {
                    #expect(ChatText.width(line) == columns, "\(columns): \(line)")
                    #expect(!line.contains("\u{1b}") && !line.contains("\u{202e}"))
                }
                #expect(drawing.cursor.row < rows && drawing.cursor.column < columns)
            }
        }
    }

    @Test("the phone stands beside the app in 80 x 24, with the newest notification first")
    func phone() {
        var model = model()
        model.phase = .suspended
        model.icon = 2
        model.notices = [notice("ben", "At eight?"), notice("carl", "Ok")]
        let text = ChatDrawing(model, columns: 80, rows: 24).lines.joined(separator: "\n")
        #expect(text.contains("anna's phone (2)"))
        #expect(text.contains("app suspended"))
        let halves = text.split(separator: "1 ben")
        #expect(halves.count == 2 && halves[1].contains("2 carl"))
        #expect(text.contains("At eight?"))
    }

    @Test("an edit that waits is told from one that everybody has")
    func edits() {
        var (waits, done) = (MessageRow.row(1, "one", by: "anna"), MessageRow.row(2, "two"))
        waits.isEditQueued = true
        done.editedAt = Timestamp(milliseconds: 2)
        let drawing = ChatDrawing(.looking(at: [waits, done]), columns: 80, rows: 24)
        let text = drawing.lines.joined(separator: "\n")
        #expect(text.contains("you: one (edit waits)"))
        #expect(text.contains("ben: two (edited)"))
    }

    @Test("colours change nothing but the colours")
    func colours() {
        var model = model()
        model.notices = [notice("ben", "At eight?")]
        let plain = ChatDrawing(model, columns: 80, rows: 24).lines
        let coloured = ChatDrawing(model, columns: 80, rows: 24, hasColour: true).lines
        #expect(coloured != plain)
        #expect(coloured.map { $0.replacing(/\u{1b}\[[0-9]*m/, with: "") } == plain)
    }
}

import Glibc
import Model
import Testing
import Wire

@testable import Chat
@testable import SyncClient

/// What is seen of a conversation, and what is read with it. A terminal of 80 x 24 has 19 lines for
/// it.
@Suite struct PageTests {
    init() { setlocale(LC_CTYPE, "C.UTF-8") }

    private func lines(_ count: Int, from first: Int = 1) -> [MessageRow] {
        (first..<first + count).map { .row(UInt64($0), "line \($0)", isUnread: true) }
    }

    private func draw(_ model: ChatModel) -> (drawing: ChatDrawing, text: String) {
        let drawing = ChatDrawing(model, columns: 80, rows: 24)
        return (drawing, drawing.lines.joined(separator: "\n"))
    }

    private func turn(_ model: inout ChatModel, up: Bool) -> Bool {
        model.turn(up: up, columns: 80, rows: 24)
    }

    @Test("only what was drawn is read, and PageUp reaches what is above it")
    func pages() {
        var model = ChatModel.looking(at: lines(40))
        var (drawing, text) = draw(model)
        #expect(drawing.seen == 21..<40)
        #expect(text.contains("21 unread above: PageUp"))
        #expect(model.reading(of: drawing.seen) == .between(22, 40))
        for row in 21..<40 { model.window.rows[row].isUnread = false }
        #expect(model.reading(of: drawing.seen) == nil)

        #expect(turn(&model, up: true) == false)
        (drawing, text) = draw(model)
        #expect(drawing.seen == 3..<22)
        #expect(text.contains("line 4 ") && !text.contains("line 23"))
        #expect(text.contains("3 unread above: PageUp") && text.contains("newer below: PageDown"))
        #expect(model.reading(of: drawing.seen) == .between(4, 21))

        // The first page is full, and nothing is above it.
        #expect(turn(&model, up: true) == true)
        (drawing, text) = draw(model)
        #expect(drawing.seen == 0..<19)
        #expect(!text.contains("PageUp"))
        #expect(model.reading(of: drawing.seen) == .through(19))

        for _ in 1...3 { _ = turn(&model, up: false) }
        #expect(model.place == nil)
        #expect(draw(model).drawing.seen == 21..<40)
    }

    @Test("a message longer than the screen is read when its last line was drawn")
    func long() {
        let text = (1...50).map { "row \($0)" }.joined(separator: "\n")
        var model = ChatModel.looking(at: [
            .row(1, "hi"), .row(2, text, isUnread: true), .row(3, "end", isUnread: true),
        ])
        #expect(draw(model).drawing.seen == 1..<3)
        for (seen, isLast) in [(1..<1, false), (0..<1, true)] {
            #expect(turn(&model, up: true) == isLast)
            #expect(draw(model).drawing.seen == seen)
            #expect(model.reading(of: seen) == nil)
        }
        #expect(draw(model).text.contains("row 18") && !draw(model).text.contains("row 19"))
        #expect(turn(&model, up: false) == false)
        #expect(draw(model).text.contains("row 36"))
    }

    @Test("who reads further up stays there when something comes, and it is not read")
    func stays() {
        var model = ChatModel.looking(
            at: lines(40).map { row in
                var row = row
                row.isUnread = false
                return row
            })
        _ = turn(&model, up: true)
        let before = draw(model)
        model.window.rows += lines(2, from: 41)
        let after = draw(model)
        #expect(after.drawing.seen == before.drawing.seen)
        #expect(after.text.contains("2 unread below: PageDown"))
        #expect(model.reading(of: after.drawing.seen) == nil)
        // Older ones that come change nothing either, nor that the last one seen is deleted.
        model.window.rows.insert(.row(0, "older"), at: 0)
        #expect(draw(model).drawing.seen == 4..<23)
        model.window.rows.remove(at: 22)
        #expect(draw(model).drawing.seen == 3..<22)
    }

    @Test("what is not drawn is not read")
    func hidden() {
        var model = ChatModel.looking(at: lines(3))
        #expect(model.reading(of: draw(model).drawing.seen) == .through(3))
        #expect(ChatDrawing(model, columns: 30, rows: 24).seen.isEmpty)
        model.showsHelp = true
        #expect(draw(model).drawing.seen.isEmpty)
        model.showsHelp = false
        model.phase = .background
        #expect(model.reading(of: 0..<3) == nil)
    }

    @Test("what is unread beyond the window stays unread")
    func beyond() {
        var model = ChatModel.looking(at: lines(2, from: 30))
        model.window.hasOlder = true
        var row = ConversationRow(
            id: ChatModel.room, created: Timestamp(milliseconds: 1), creator: "ben")
        row.unread = 9
        model.conversations = [row]
        let (drawing, text) = draw(model)
        #expect(text.contains("7 unread above: PageUp"))
        #expect(model.reading(of: drawing.seen) == .between(30, 31))
        model.conversations[0].unread = 2
        #expect(model.reading(of: drawing.seen) == .through(31))
        model.conversations[0].hasOlderUnread = true
        #expect(model.reading(of: drawing.seen) == .between(30, 31))
    }

    @Test("an own message that is only accepted says nothing of those below it")
    func accepted() {
        var accepted = MessageRow.row(9, "mine", by: "anna")
        accepted.version = 0
        let model = ChatModel.looking(at: lines(2) + [accepted])
        #expect(model.reading(of: 0..<3) == .through(2))
    }

    @Test("a list longer than the screen has pages, too")
    func list() {
        var model = ChatModel.looking()
        model.opened = nil
        model.conversations = (1...30).map { number in
            ConversationRow(
                id: ConversationID(high: 1, low: number), created: Timestamp(milliseconds: 1),
                creator: "ben")
        }
        #expect(draw(model).text.contains("19 only you") && !draw(model).text.contains("20 only"))
        for _ in 1...3 { _ = turn(&model, up: false) }
        #expect(draw(model).text.contains("12 only") && draw(model).text.contains("30 only"))
        for _ in 1...3 { _ = turn(&model, up: true) }
        #expect(draw(model).text.contains("1 only you"))
    }

    @Test("PageUp and PageDown as terminals send them")
    func keys() {
        var reader = ChatKeyReader()
        #expect(reader.read(Array("\u{1b}[5~\u{1b}[6~".utf8)) == [.pageUp, .pageDown])
    }
}

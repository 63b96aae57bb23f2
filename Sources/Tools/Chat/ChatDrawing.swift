import AppLife
import RouseClient
import SyncClient

/// The lines of the whole terminal, and where the cursor stands.
public struct ChatDrawing: Equatable, Sendable {
    public var lines: [String]
    public var cursor: (row: Int, column: Int)
    /// Rows of the open conversation that are seen to their ends.
    var seen = 0..<0

    public static func == (left: Self, right: Self) -> Bool {
        left.lines == right.lines && left.cursor == right.cursor && left.seen == right.seen
    }

    /// Below these there is nothing to see.
    public static let columnsMin = 40
    public static let rowsMin = 8
    private static let phoneColumns = 28
    /// From here on the phone stands beside the app.
    private static let wide = 72

    /// - Parameter hasColour: names and states in colours; without, the same text.
    public init(_ model: ChatModel, columns: Int, rows: Int, hasColour: Bool = false) {
        let pen = ChatPen(hasColour: hasColour)
        guard let body = ChatBody(model, columns: columns, rows: rows, pen) else {
            let text = "at least \(Self.columnsMin) x \(Self.rowsMin), please"
            lines = [ChatText.fit(text, max(0, columns))]
            lines += Array(
                repeating: String(repeating: " ", count: max(0, columns)), count: max(0, rows - 1))
            cursor = (0, 0)
            return
        }
        let isWide = columns >= Self.wide
        let appColumns = Self.appColumns(columns)
        var app = [Self.header(model, appColumns, isWide, pen)]
        app.append(Self.rule(body.above, appColumns))
        app += Self.padded(body.lines, appColumns, body.height)
        app += body.status
        app.append(Self.rule(body.below, appColumns))
        let (prompt, column) = Self.prompt(model.editor, appColumns)
        app.append(prompt)
        if isWide {
            let phone = Self.phone(model, Self.phoneColumns, rows, pen)
            lines = zip(app, phone).map { $0 + " " + $1 }
        } else {
            lines = app
        }
        cursor = (rows - 1, column)
        seen = body.seen
    }

    /// Of the terminal's columns, those of the app.
    static func appColumns(_ columns: Int) -> Int {
        columns >= wide ? columns - phoneColumns - 1 : columns
    }

    // MARK: The app

    private static func header(
        _ model: ChatModel, _ columns: Int, _ isWide: Bool, _ pen: ChatPen
    ) -> String {
        var state =
            model.phase == .front || model.phase == .background
            ? "\(model.connection)" : model.phase.words
        if model.connection == .inSync, model.phase == .front { state = "in sync" }
        // Why is told below.
        if case .refused = model.connection, model.phase == .front { state = "refused" }
        if !isWide, model.icon > 0 { state += " (\(model.icon))" }
        let name =
            model.openRow.map { ChatText.plain(model.name(of: $0)) }
            ?? "conversations of \(ChatText.plain(model.user))"
        let room = columns - ChatText.width(state) - 1
        return pen.bold(ChatText.fit(name, room)) + " " + state
    }

    /// A line across, with what there is beyond it.
    private static func rule(_ words: String, _ columns: Int) -> String {
        guard !words.isEmpty else { return String(repeating: "─", count: columns) }
        let text = ChatText.fit("─ \(words) ", min(columns, ChatText.width(words) + 3))
        return text + String(repeating: "─", count: columns - ChatText.width(text))
    }

    /// The part of the line around the cursor, if not all of it fits.
    static func prompt(_ editor: LineEditor, _ columns: Int) -> (String, Int) {
        let room = columns - 3
        var (start, before) = (editor.cursor, 0)
        while start > 0 {
            let step = width(editor.text[start - 1])
            guard before + step <= room else { break }
            before += step
            start -= 1
        }
        var (end, used) = (editor.cursor, before)
        while end < editor.text.count, used <= room {
            used += width(editor.text[end])
            end += 1
        }
        let text = ChatText.plain(
            String(editor.text[start..<end].map { $0.isNewline ? lineBreak : $0 }))
        // What does not fit is cut: also where nothing of it can be seen.
        let rest = end < editor.text.count ? "…" : ""
        return (ChatText.fit("> " + text + rest, columns), 2 + before)
    }

    /// In what was pasted.
    private static let lineBreak: Character = "↵"

    private static func width(_ character: Character) -> Int {
        ChatText.width(character.isNewline ? lineBreak : character)
    }

    // MARK: The phone

    private static func phone(
        _ model: ChatModel, _ columns: Int, _ rows: Int, _ pen: ChatPen
    ) -> [String] {
        let inner = columns - 4
        var screen: [String] = []
        let icon = model.icon > 0 ? " (\(model.icon))" : ""
        screen.append(pen.bold(ChatText.fit("\(ChatText.plain(model.user))'s phone\(icon)", inner)))
        screen.append(ChatText.fit("app \(model.phase.words)", inner))
        screen.append(String(repeating: "─", count: inner))
        for (index, notice) in model.notices.enumerated() {
            let title = notice.title.isEmpty ? "" : ChatText.plain(notice.title) + " "
            let text = ChatText.wrap("\(index + 1) \(title)", inner).prefix(1)
            screen += text.map { pen.bold(ChatText.fit($0, inner)) }
            screen += ChatText.wrap(ChatText.plain(notice.body), inner - 2).prefix(2)
                .map { ChatText.fit("  " + $0, inner) }
        }
        if model.notices.isEmpty { screen.append(ChatText.fit("no notifications", inner)) }
        screen = padded(Array(screen.prefix(rows - 2)), inner, rows - 2)
        let edge = String(repeating: "─", count: columns - 2)
        return ["╭\(edge)╮"] + screen.map { "│ \($0) │" } + ["╰\(edge)╯"]
    }

    private static func padded(_ lines: [String], _ columns: Int, _ rows: Int) -> [String] {
        let empty = String(repeating: " ", count: columns)
        let shown = lines.prefix(rows).map { line in
            // Lines with colours are as wide as they are to be already.
            line.contains("\u{1B}") ? line : ChatText.fit(line, columns)
        }
        return shown + Array(repeating: empty, count: max(0, rows - shown.count))
    }
}

/// Colours, or none.
struct ChatPen {
    let hasColour: Bool

    func bold(_ text: String) -> String { hasColour ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

    func name(_ text: String, isOwn: Bool) -> String {
        hasColour ? "\u{1B}[\(isOwn ? 36 : 33)m\(text)\u{1B}[0m" : text
    }
}

import AppLife
import RouseClient
import SyncClient

/// The lines of the whole terminal, and where the cursor stands.
public struct ChatDrawing: Equatable, Sendable {
    public var lines: [String]
    public var cursor: (row: Int, column: Int)

    public static func == (left: Self, right: Self) -> Bool {
        left.lines == right.lines && left.cursor == right.cursor
    }

    /// Below these there is nothing to see.
    public static let columnsMin = 40
    public static let rowsMin = 8
    private static let phoneColumns = 28
    /// From here on the phone stands beside the app.
    private static let wide = 72

    /// - Parameter hasColour: names and states in colours; without, the same text.
    public init(_ model: ChatModel, columns: Int, rows: Int, hasColour: Bool = false) {
        guard columns >= Self.columnsMin, rows >= Self.rowsMin else {
            let text = "at least \(Self.columnsMin) x \(Self.rowsMin), please"
            lines = [ChatText.fit(text, max(0, columns))]
            lines += Array(
                repeating: String(repeating: " ", count: max(0, columns)), count: max(0, rows - 1))
            cursor = (0, 0)
            return
        }
        let isWide = columns >= Self.wide
        let appColumns = isWide ? columns - Self.phoneColumns - 1 : columns
        let pen = ChatPen(hasColour: hasColour)
        var app = [Self.header(model, appColumns, isWide, pen)]
        app.append(String(repeating: "─", count: appColumns))
        app += Self.body(model, appColumns, rows - 5, pen)
        app.append(ChatText.fit(Self.status(model), appColumns))
        app.append(String(repeating: "─", count: appColumns))
        let (prompt, column) = Self.prompt(model.editor, appColumns)
        app.append(prompt)
        if isWide {
            let phone = Self.phone(model, Self.phoneColumns, rows, pen)
            lines = zip(app, phone).map { $0 + " " + $1 }
        } else {
            lines = app
        }
        cursor = (rows - 1, column)
    }

    // MARK: The app

    private static func header(
        _ model: ChatModel, _ columns: Int, _ isWide: Bool, _ pen: ChatPen
    ) -> String {
        var state =
            model.phase == .front || model.phase == .background
            ? "\(model.connection)" : model.phase.words
        if model.connection == .inSync, model.phase == .front { state = "in sync" }
        if !isWide, model.icon > 0 { state += " (\(model.icon))" }
        let name =
            model.openRow.map { ChatText.plain(model.name(of: $0)) }
            ?? "conversations of \(model.user)"
        let room = columns - ChatText.width(state) - 1
        return pen.bold(ChatText.fit(name, room)) + " " + state
    }

    private static func body(
        _ model: ChatModel, _ columns: Int, _ rows: Int, _ pen: ChatPen
    ) -> [String] {
        if model.showsHelp { return help(columns, rows) }
        if model.phase == .suspended || model.phase == .killed {
            let text = "The app is \(model.phase.words). /wake wakes it, /start opens it."
            return padded(ChatText.wrap(text, columns), columns, rows)
        }
        if model.phase == .background {
            let text = "The phone is locked. /start unlocks it, /tap taps a notification."
            return padded(ChatText.wrap(text, columns), columns, rows)
        }
        guard model.opened != nil else { return list(model, columns, rows, pen) }
        var lines: [String] = []
        // The newest ones are seen; the others are not even wrapped.
        for row in model.window.rows.reversed() where lines.count < rows {
            lines.insert(contentsOf: message(row, columns, pen), at: 0)
        }
        if model.window.rows.isEmpty { lines = ["Nobody has said anything yet."] }
        return padded(Array(lines.suffix(rows)), columns, rows)
    }

    private static func list(
        _ model: ChatModel, _ columns: Int, _ rows: Int, _ pen: ChatPen
    ) -> [String] {
        guard !model.conversations.isEmpty else {
            return padded(
                ChatText.wrap("No conversations yet. /new USER begins one.", columns), columns, rows
            )
        }
        var lines: [String] = []
        for (index, row) in model.conversations.prefix(rows).enumerated() {
            let unread = row.unread > 0 ? " (\(row.unread))" : ""
            let last = row.last.map { ": " + ChatText.plain($0.text) } ?? ""
            let name = ChatText.plain(model.name(of: row))
            let line = ChatText.fit("\(index + 1) \(name)\(unread)\(last)", columns)
            lines.append(row.unread > 0 ? pen.bold(line) : line)
        }
        return padded(lines, columns, rows)
    }

    private static func help(_ columns: Int, _ rows: Int) -> [String] {
        let lines = ChatCommand.table.map { "\(ChatText.fit($0.form, 24)) \($0.does)" }
        return padded(lines.map { ChatText.fit($0, columns) }, columns, rows)
    }

    private static func message(_ row: MessageRow, _ columns: Int, _ pen: ChatPen) -> [String] {
        let name = row.isOwn ? "you" : ChatText.plain(row.sender)
        let edited = row.editedAt == nil ? "" : " (edited)"
        let text = (row.text.isEmpty ? "[no text]" : row.text) + edited + mark(row.delivery)
        let lines = ChatText.wrap("\(name): \(text)", columns)
        return lines.enumerated().map { index, line in
            let line = ChatText.fit(line, columns)
            guard index == 0, line.hasPrefix(name) else { return line }
            return pen.name(name, isOwn: row.isOwn) + line.dropFirst(name.count)
        }
    }

    /// How far a message got.
    private static func mark(_ delivery: Delivery?) -> String {
        switch delivery {
        case nil: ""
        case .queued: "  (waits)"
        case .sent: "  (sending)"
        case .accepted: "  ✓"
        case .delivered: "  ✓✓"
        case .read(let count, _): count > 1 ? "  ✓✓ read by \(count)" : "  ✓✓ read"
        case .refused(let refusal): "  ✗ \(refusal)"
        }
    }

    private static func status(_ model: ChatModel) -> String {
        if !model.remark.isEmpty { return model.remark }
        guard !model.typing.isEmpty, model.phase == .front else { return "" }
        let names = model.typing.map { ChatText.plain($0) }.joined(separator: " and ")
        return "\(names) \(model.typing.count > 1 ? "are" : "is") typing"
    }

    /// The part of the line around the cursor, if not all of it fits.
    private static func prompt(_ editor: LineEditor, _ columns: Int) -> (String, Int) {
        let room = columns - 3
        var start = 0
        while ChatText.width(String(editor.text[start..<editor.cursor])) > room { start += 1 }
        let before = ChatText.width(String(editor.text[start..<editor.cursor]))
        let shown = ChatText.fit("> " + String(editor.text[start...]), columns)
        return (shown, 2 + before)
    }

    // MARK: The phone

    private static func phone(
        _ model: ChatModel, _ columns: Int, _ rows: Int, _ pen: ChatPen
    ) -> [String] {
        let inner = columns - 4
        var screen: [String] = []
        let icon = model.icon > 0 ? " (\(model.icon))" : ""
        screen.append(pen.bold(ChatText.fit("\(model.user)'s phone\(icon)", inner)))
        screen.append(ChatText.fit("app \(model.phase.words)", inner))
        screen.append(String(repeating: "─", count: inner))
        for (index, notice) in model.notices.enumerated() {
            let title = notice.title.isEmpty ? "" : ChatText.plain(notice.title) + " "
            let text = ChatText.wrap("\(index + 1) \(title)", inner).prefix(1)
            screen += text.map { pen.bold(ChatText.fit($0, inner)) }
            screen += ChatText.wrap(notice.body, inner - 2).prefix(2)
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

import SyncClient

/// What stands between the app's header and its status: a conversation, the list of them, help.
struct ChatBody {
    var lines: [String]
    let height: Int
    /// Rows of the open conversation that are seen to their ends.
    var seen = 0..<0
    /// What there is above and below, in words; empty: nothing.
    var above = ""
    var below = ""
    var place: ChatPlace?
    var top = 0

    /// What is said to who sits here.
    let status: [String]

    /// Lines of the terminal that are the app's header, its prompt and its rules.
    private static let around = 4
    /// Lines that the status has at most; one in the smallest terminal.
    private static let statusMax = 10

    /// `nil`: the terminal is too small.
    init?(_ model: ChatModel, columns: Int, rows: Int, _ pen: ChatPen) {
        guard columns >= ChatDrawing.columnsMin, rows >= ChatDrawing.rowsMin else { return nil }
        let columns = ChatDrawing.appColumns(columns)
        let statusMax = min(Self.statusMax, rows - ChatDrawing.rowsMin + 1)
        status = Self.status(model, columns, statusMax)
        height = rows - Self.around - status.count
        if let lines = Self.still(model, columns, pen) {
            top = max(0, min(model.top, lines.count - height))
            self.lines = Array(lines.dropFirst(top).prefix(height))
            if top > 0 { above = "more above: PageUp" }
            if top + height < lines.count { below = "more below: PageDown" }
            return
        }
        let page = Self.scroll(model, columns, height, pen).page(at: model.place)
        place = page.place
        seen = page.seen
        lines = page.lines
        if lines.isEmpty {
            let isKnown = model.hasList && model.hasSynced
            lines = [isKnown ? "Nobody has said anything yet." : "The messages are not known yet."]
        }
        let unread = model.window.rows[..<seen.lowerBound].count(where: \.isUnread)
        if unread + model.unreadBeyond > 0 {
            above = "\(unread + model.unreadBeyond) unread above: PageUp"
        } else if page.hasAbove || model.window.hasOlder || model.window.mayFetchOlder {
            above = "older above: PageUp"
        }
        let new = model.window.rows[seen.upperBound...].count(where: \.isUnread)
        if page.hasBelow {
            below = new > 0 ? "\(new) unread below: PageDown" : "newer below: PageDown"
        }
    }

    /// Trouble first: it stays until it is over, whatever else is said.
    private static func status(_ model: ChatModel, _ columns: Int, _ most: Int) -> [String] {
        var said = model.phase == .killed ? [] : [model.trouble.store, model.trouble.server]
        let (excess, isWhole) = (model.editor.excess, model.editor.lost == 0)
        if excess > 0 {
            let way = isWhole ? "erase some first" : "the end is lost, erase the line (Ctrl-U)"
            said.append("\(LineEditor.lengthMax) characters fit, \(excess) do not: \(way)")
        } else if !model.remark.isEmpty {
            said.append(model.remark)
        } else if !model.typing.isEmpty, model.phase == .front {
            let names = model.typing.map { ChatText.plain($0) }.joined(separator: " and ")
            said.append("\(names) \(model.typing.count > 1 ? "are" : "is") typing")
        }
        var lines = said.filter { !$0.isEmpty }.flatMap { ChatText.wrap($0, columns, indent: 2) }
        if lines.isEmpty { lines = [""] }
        if lines.count > most {
            lines[most - 1] += " …"
            lines.removeSubrange(most...)
        }
        return lines.map { ChatText.fit($0, columns) }
    }

    fileprivate static func scroll(
        _ model: ChatModel, _ columns: Int, _ height: Int, _ pen: ChatPen
    ) -> ChatScroll {
        ChatScroll(model.window.rows, height: height) { message($0, columns, pen) }
    }

    /// All lines of what is no conversation; `nil`: one is seen.
    private static func still(_ model: ChatModel, _ columns: Int, _ pen: ChatPen) -> [String]? {
        if model.showsHelp {
            return ChatCommand.table.map { "\(ChatText.fit($0.form, 24)) \($0.does)" }
        }
        switch model.phase {
        case .suspended, .killed:
            let text = "The app is \(model.phase.words). /wake wakes it, /start opens it."
            return ChatText.wrap(text, columns)
        case .background:
            let text = "The phone is locked. /start unlocks it, /tap taps a notification."
            return ChatText.wrap(text, columns)
        case .front: return model.opened == nil ? list(model, columns, pen) : nil
        }
    }

    private static func list(_ model: ChatModel, _ columns: Int, _ pen: ChatPen) -> [String] {
        guard !model.conversations.isEmpty else {
            let none = "No conversations yet. /new USER begins one."
            let isKnown = model.hasList && model.hasSynced
            var text = isKnown ? none : "The conversations are not known yet."
            if !isKnown, !model.trouble.store.isEmpty {
                text += " /kill and /start try the store again."
            }
            return ChatText.wrap(text, columns)
        }
        return model.conversations.enumerated().map { index, row in
            let unread = row.unread > 0 ? " (\(row.unread))" : ""
            let last = row.last.map { ": " + ChatText.plain($0.text) } ?? ""
            let name = ChatText.plain(model.name(of: row))
            let line = ChatText.fit("\(index + 1) \(name)\(unread)\(last)", columns)
            return row.unread > 0 ? pen.bold(line) : line
        }
    }

    private static func message(_ row: MessageRow, _ columns: Int, _ pen: ChatPen) -> [String] {
        let name = row.isOwn ? "you" : self.name(row.sender)
        let changed = row.isEditQueued ? " (edit waits)" : row.editedAt == nil ? "" : " (edited)"
        let text = (row.text.isEmpty ? "[no text]" : row.text) + changed + mark(row.delivery)
        // No line but the first begins where a name does: nobody writes another's message.
        let lines = ChatText.wrap("\(name): \(text)", columns, indent: 2)
        return lines.enumerated().map { index, line in
            let line = ChatText.fit(line, columns)
            guard index == 0, line.hasPrefix(name) else { return line }
            return pen.name(name, isOwn: row.isOwn) + line.dropFirst(name.count)
        }
    }

    /// Another user's; one that could be taken for the user's own is quoted.
    private static func name(_ sender: String) -> String {
        let name = ChatText.plain(sender)
        let own = "you"
        let word = name.drop { !$0.isLetter && !$0.isNumber }
            .prefix { $0.isLetter || $0.isNumber }
        // Other scripts have letters that look like these; a mark may be hard to see.
        let mayLookOwn =
            word.isEmpty || word.lowercased() == own
            || word.count == own.count && !word.allSatisfy(\.isASCII)
        return mayLookOwn || name.contains(":") ? "“\(name)”" : name
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
}

extension ChatModel {
    /// Another page of what is seen.
    ///
    /// - Returns: whether what is above it is not in the window.
    mutating func turn(up: Bool, columns: Int, rows: Int) -> Bool {
        let pen = ChatPen(hasColour: false)
        guard let body = ChatBody(self, columns: columns, rows: rows, pen) else { return false }
        guard phase == .front, opened != nil, !showsHelp else {
            top = max(0, body.top + (up ? -1 : 1) * max(1, body.height - 1))
            return false
        }
        let scroll = ChatBody.scroll(self, ChatDrawing.appColumns(columns), body.height, pen)
        let page = up ? scroll.pageUp(from: place) : scroll.pageDown(from: place)
        place = page.place
        return up && !page.hasAbove
    }
}

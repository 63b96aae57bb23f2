/// The line a person writes, and the lines written before.
public struct LineEditor: Equatable, Sendable {
    /// Characters of one line: a message has no more here.
    public static let lengthMax = 2_000
    /// What may stand here until it is shortened.
    private static let roomMax = 10 * lengthMax
    private static let historyMax = 100

    public private(set) var text: [Character] = []
    public private(set) var cursor = 0
    private var history: [String] = []
    /// The line of the history that is shown; its count: the new one.
    private var shown = 0
    private var draft: [Character] = []
    private var draftLost = 0
    /// Characters that found no room even to be erased: the text lacks them.
    public private(set) var lost = 0

    /// Characters beyond those of a message. The line is not finished with them: nobody sends a
    /// text that lacks a part without having erased that part.
    public var excess: Int { max(0, text.count - Self.lengthMax) + lost }

    public init() {}

    /// - Returns: the line that was finished with the key; `nil`: none.
    public mutating func take(_ key: ChatKey) -> String? {
        switch key {
        case .character(let character): insert(character)
        case .lineBreak: insert("\n")
        case .enter: return excess > 0 ? nil : finish()
        case .backspace:
            guard cursor > 0 else { break }
            cursor -= 1
            text.remove(at: cursor)
        case .delete: if cursor < text.count { text.remove(at: cursor) }
        case .left: cursor = max(0, cursor - 1)
        case .right: cursor = min(text.count, cursor + 1)
        case .home: cursor = 0
        case .end: cursor = text.count
        case .eraseLine:
            text.removeFirst(cursor)
            cursor = 0
        case .eraseWord: eraseWord()
        case .up: show(shown - 1)
        case .down: show(shown + 1)
        case .redraw, .interrupt, .suspend, .endOfInput, .pageUp, .pageDown: break
        }
        if text.isEmpty { lost = 0 }
        return nil
    }

    private mutating func insert(_ character: Character) {
        // A mark joins the character before it.
        if cursor > 0 {
            let joined = String(text[cursor - 1]) + String(character)
            if joined.count == 1, let one = joined.first {
                // Of thousands on one letter, each would cost as much as all before it.
                if joined.unicodeScalars.count <= ChatText.scalarsMax { text[cursor - 1] = one }
                return
            }
        }
        guard text.count < Self.roomMax else {
            lost += 1
            return
        }
        text.insert(character, at: cursor)
        cursor += 1
    }

    private mutating func eraseWord() {
        var start = cursor
        while start > 0, text[start - 1] == " " { start -= 1 }
        while start > 0, text[start - 1] != " " { start -= 1 }
        text.removeSubrange(start..<cursor)
        cursor = start
    }

    private mutating func finish() -> String? {
        let line = String(text)
        (text, cursor, draft, draftLost) = ([], 0, [], 0)
        guard !line.allSatisfy(\.isWhitespace) else {
            shown = history.count
            return nil
        }
        if history.last != line { history.append(line) }
        if history.count > Self.historyMax { history.removeFirst() }
        shown = history.count
        return line
    }

    private mutating func show(_ index: Int) {
        guard index >= 0, index <= history.count else { return }
        if shown == history.count { (draft, draftLost) = (text, lost) }
        shown = index
        (text, lost) =
            index == history.count ? (draft, draftLost) : (Array(history[index]), 0)
        cursor = text.count
    }
}

/// A key as a terminal tells it.
public enum ChatKey: Equatable, Sendable {
    case character(Character)
    /// In what is pasted: no line ends with it.
    case lineBreak
    case enter, backspace, delete, left, right, up, down, home, end, pageUp, pageDown
    /// The word before the cursor, or all before it.
    case eraseWord, eraseLine
    case redraw, interrupt, suspend, endOfInput
}

/// Takes keys out of what a terminal sends: UTF-8, and the sequences of xterm and its like.
public struct ChatKeyReader {
    private var pending: [UInt8] = []
    /// What comes was copied: its keys are text.
    private var isPasted = false
    private var followsReturn = false
    /// No sequence is longer; what is, is no key.
    private static let sequenceMax = 16

    public init() {}

    public mutating func read(_ bytes: some Sequence<UInt8>) -> [ChatKey] {
        pending += bytes
        var keys: [ChatKey] = []
        while let (key, length) = next() {
            pending.removeFirst(length)
            if let key { keys.append(key) }
        }
        return keys
    }

    /// The first key and its length, `nil` for one that means nothing; `nil` altogether if the
    /// rest of it has not come.
    private mutating func next() -> (key: ChatKey?, length: Int)? {
        guard let first = pending.first else { return nil }
        if first == 0x1B { return sequence() }
        return isPasted ? pasted(first) : typed(first)
    }

    private mutating func pasted(_ first: UInt8) -> (key: ChatKey?, length: Int)? {
        defer { followsReturn = first == 0x0D }
        switch first {
        case 0x0A where followsReturn: return (nil, 1)
        case 0x0D, 0x0A: return (.lineBreak, 1)
        case 0x09: return (.character(" "), 1)
        // The way out, should the end of it never come.
        case 0x03: return (.interrupt, 1)
        case 0..<0x20, 0x7F: return (nil, 1)
        default: return character(first)
        }
    }

    private func typed(_ first: UInt8) -> (key: ChatKey?, length: Int)? {
        switch first {
        case 0x0D, 0x0A: (.enter, 1)
        case 0x7F, 0x08: (.backspace, 1)
        case 0x01: (.home, 1)
        case 0x05: (.end, 1)
        case 0x02: (.left, 1)
        case 0x06: (.right, 1)
        case 0x03: (.interrupt, 1)
        case 0x04: (.endOfInput, 1)
        case 0x1A: (.suspend, 1)
        case 0x0C: (.redraw, 1)
        case 0x10: (.up, 1)
        case 0x0E: (.down, 1)
        case 0x15: (.eraseLine, 1)
        case 0x17: (.eraseWord, 1)
        case 0..<0x20: (nil, 1)
        default: character(first)
        }
    }

    /// ESC [ or ESC O, parameters, and a letter or `~`.
    private mutating func sequence() -> (key: ChatKey?, length: Int)? {
        guard pending.count > 1 else { return nil }
        guard pending[1] == UInt8(ascii: "[") || pending[1] == UInt8(ascii: "O") else {
            // A key of its own may come behind Escape.
            return (nil, pending[1] < 0x20 ? 1 : 2)
        }
        // A control character ends it: it is a key of its own.
        if let control = pending.dropFirst(2).firstIndex(where: { $0 < 0x20 }),
            !pending[2..<control].contains(where: { (0x40...0x7E).contains($0) })
        {
            return (nil, control)
        }
        guard let end = pending.dropFirst(2).firstIndex(where: { (0x40...0x7E).contains($0) })
        else { return pending.count < Self.sequenceMax ? nil : (nil, pending.count) }
        let parameters = pending[2..<end]
        if pending[end] == UInt8(ascii: "~") {
            if parameters.elementsEqual("200".utf8) { isPasted = true }
            if parameters.elementsEqual("201".utf8) { isPasted = false }
        }
        // Text that was copied moves nothing.
        return (isPasted ? nil : key(pending[end], parameters.first), end + 1)
    }

    private func key(_ letter: UInt8, _ parameter: UInt8?) -> ChatKey? {
        switch (letter, parameter) {
        case (UInt8(ascii: "A"), _): .up
        case (UInt8(ascii: "B"), _): .down
        case (UInt8(ascii: "C"), _): .right
        case (UInt8(ascii: "D"), _): .left
        case (UInt8(ascii: "H"), _), (UInt8(ascii: "~"), UInt8(ascii: "1")): .home
        case (UInt8(ascii: "F"), _), (UInt8(ascii: "~"), UInt8(ascii: "4")): .end
        case (UInt8(ascii: "~"), UInt8(ascii: "3")): .delete
        case (UInt8(ascii: "~"), UInt8(ascii: "5")): .pageUp
        case (UInt8(ascii: "~"), UInt8(ascii: "6")): .pageDown
        default: nil
        }
    }

    private func character(_ first: UInt8) -> (key: ChatKey?, length: Int)? {
        let length =
            switch first {
            case 0..<0x80: 1
            case 0xC2..<0xE0: 2
            case 0xE0..<0xF0: 3
            case 0xF0..<0xF5: 4
            default: 0
            }
        guard length > 0 else { return (nil, 1) }
        guard pending.count >= length else { return nil }
        guard let text = String(validating: pending[..<length], as: UTF8.self) else {
            return (nil, 1)
        }
        guard let character = text.first, !character.isNewline else {
            return (.character(" "), length)
        }
        // What is not seen belongs to what is written all the same.
        let isControl = character.unicodeScalars.contains { ChatText.isControl($0) }
        return (isControl ? nil : .character(character), length)
    }
}

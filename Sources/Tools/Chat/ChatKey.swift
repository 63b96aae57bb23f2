/// A key as a terminal tells it.
public enum ChatKey: Equatable, Sendable {
    case character(Character)
    case enter, backspace, delete, left, right, up, down, home, end, pageUp, pageDown
    /// The word before the cursor, or all before it.
    case eraseWord, eraseLine
    case redraw, interrupt, endOfInput
}

/// Takes keys out of what a terminal sends: UTF-8, and the sequences of xterm and its like.
public struct ChatKeyReader {
    private var pending: [UInt8] = []
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
    private func next() -> (key: ChatKey?, length: Int)? {
        guard let first = pending.first else { return nil }
        switch first {
        case 0x0D, 0x0A: return (.enter, 1)
        case 0x7F, 0x08: return (.backspace, 1)
        case 0x01: return (.home, 1)
        case 0x05: return (.end, 1)
        case 0x02: return (.left, 1)
        case 0x06: return (.right, 1)
        case 0x03: return (.interrupt, 1)
        case 0x04: return (.endOfInput, 1)
        case 0x0C: return (.redraw, 1)
        case 0x10: return (.up, 1)
        case 0x0E: return (.down, 1)
        case 0x15: return (.eraseLine, 1)
        case 0x17: return (.eraseWord, 1)
        case 0x1B: return sequence()
        case 0..<0x20: return (nil, 1)
        default: return character(first)
        }
    }

    /// ESC [ or ESC O, parameters, and a letter or `~`.
    private func sequence() -> (key: ChatKey?, length: Int)? {
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
        let key: ChatKey? =
            switch (pending[end], pending[2..<end].first) {
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
        return (key, end + 1)
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
        return (ChatText.plain(text).first.map { .character($0) }, length)
    }
}

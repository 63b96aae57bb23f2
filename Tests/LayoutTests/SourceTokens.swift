/// Words and signs of a Swift file, without its comments and literals: what a string interpolates
/// is code and stays.
struct SourceTokens {
    private(set) var all: [String] = []
    private let text: [UInt8]
    private var place = 0

    init(_ source: String) {
        text = Array(source.utf8)
        read(untilParenthesis: false)
    }

    private func isAt(_ sign: StaticString) -> Bool {
        let count = sign.utf8CodeUnitCount
        guard place + count <= text.count else { return false }
        return sign.withUTF8Buffer { text[place..<place + count].elementsEqual($0) }
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
            true
        default: false
        }
    }

    /// - Parameter untilParenthesis: it reads what a string interpolates, to the end of that.
    private mutating func read(untilParenthesis: Bool) {
        var open = 0
        while place < text.count {
            let byte = text[place]
            if isAt("//") {
                while place < text.count, text[place] != UInt8(ascii: "\n") { place += 1 }
            } else if isAt("/*") {
                while place < text.count, !isAt("*/") { place += 1 }
            } else if byte == UInt8(ascii: "\"") {
                readString()
            } else if Self.isOfWord(byte) {
                let start = place
                while place < text.count, Self.isOfWord(text[place]) { place += 1 }
                all.append(String(decoding: text[start..<place], as: UTF8.self))
            } else {
                place += 1
                if byte == UInt8(ascii: "(") { open += 1 }
                if byte == UInt8(ascii: ")") {
                    open -= 1
                    if untilParenthesis, open < 0 { return }
                }
                if isArrow(byte) { continue }
                if byte > UInt8(ascii: " "), byte != UInt8(ascii: "`") {
                    all.append(String(decoding: [byte], as: UTF8.self))
                }
            }
        }
    }

    /// An arrow is one sign: its second half closes no angle bracket.
    private mutating func isArrow(_ byte: UInt8) -> Bool {
        guard byte == UInt8(ascii: "-"), place < text.count, text[place] == UInt8(ascii: ">")
        else { return false }
        place += 1
        all.append("->")
        return true
    }

    private mutating func readString() {
        let isLong = isAt("\"\"\"")
        place += isLong ? 3 : 1
        all.append("\"\"")
        while place < text.count {
            if isLong ? isAt("\"\"\"") : isAt("\"") {
                place += isLong ? 3 : 1
                return
            }
            if isAt("\\(") {
                place += 2
                read(untilParenthesis: true)
            } else {
                place += isAt("\\") ? 2 : 1
            }
        }
    }
}

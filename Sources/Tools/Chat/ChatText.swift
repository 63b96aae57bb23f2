import Glibc

/// The C library's `wcwidth`, which its headers show to X/Open programs only.
private let columns: @convention(c) (wchar_t) -> Int32 = {
    guard let function = dlsym(nil, "wcwidth") else {
        preconditionFailure("the C library has no wcwidth")
    }
    return unsafeBitCast(function, to: (@convention(c) (wchar_t) -> Int32).self)
}()

/// Text in the columns of a terminal.
enum ChatText {
    /// Columns of a character, as the terminal's locale says; 0 of what cannot be seen.
    static func width(_ character: Character) -> Int {
        if let ascii = character.asciiValue { return (0x20..<0x7F).contains(ascii) ? 1 : 0 }
        let scalars = character.unicodeScalars
        guard !isPicture(scalars) else { return 2 }
        // What stands beside each other in one character, as in Thai, has a column each.
        return scalars.reduce(0) {
            isHidden($1) ? $0 : $0 + max(0, Int(columns(wchar_t(bitPattern: $1.value))))
        }
    }

    /// One picture of several scalars: a flag, a keycap, what is to be shown in colours (variation
    /// selector 16), what is joined, or has a tone of skin.
    private static func isPicture(_ scalars: Character.UnicodeScalarView) -> Bool {
        guard let first = scalars.first, scalars.count > 1 else { return false }
        let rest = scalars.dropFirst()
        if isIndicator(first) { return rest.contains { isIndicator($0) } }
        guard first.properties.isEmoji else { return false }
        // A digit is a picture only in a keycap.
        let isDigit = first.isASCII
        return rest.contains {
            $0.value == 0xFE0F
                || !isDigit && (isJoining($0) || $0.properties.isEmojiModifier)
        }
    }

    /// Two regional indicators are a flag.
    private static func isIndicator(_ scalar: Unicode.Scalar) -> Bool {
        (0x1F1E6...0x1F1FF).contains(scalar.value)
    }

    static func width(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// One line, without what would move the cursor or change colours, and without what nobody
    /// sees, whoever wrote it. Where a line ended, a space stands.
    static func plain(_ text: some StringProtocol) -> String {
        var seen = ""
        for character in text {
            let scalars = character.unicodeScalars
            if character == "\t" || character.isNewline {
                seen.append(" ")
            } else if !scalars.contains(where: { isControl($0) }) {
                let joins = isPicture(scalars)
                seen.unicodeScalars.append(
                    contentsOf: scalars.filter { !isHidden($0) || joins && isJoining($0) })
            }
        }
        // Thousands of marks on one letter keep a terminal busy for minutes. They are counted
        // where nothing stands between them any more.
        var plain = ""
        for character in seen {
            plain.unicodeScalars.append(contentsOf: character.unicodeScalars.prefix(scalarsMax))
        }
        return plain
    }

    /// Of one character; pictures and letters that people write have fewer.
    static let scalarsMax = 32

    /// What is not seen itself: with it two names would look alike, or a name like a word of the
    /// app's. Which form of a character is meant, is seen.
    private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        return properties.isDefaultIgnorableCodePoint && !properties.isVariationSelector
            || properties.generalCategory == .format && !isSign(scalar)
    }

    /// What makes one picture of several: a joiner, and the letters of a region's flag.
    private static func isJoining(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value == 0x200D || (0xE0020...0xE007F).contains(scalar.value)
    }

    /// Arabic, Syriac and Kaithi signs that stand around numbers are of the category of formats,
    /// and are seen.
    private static func isSign(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0600...0x0605, 0x06DD, 0x070F, 0x0890...0x0891, 0x08E2, 0x110BD, 0x110CD: true
        default: false
        }
    }

    static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return true
        // Marks that turn the order of what is beside them.
        default:
            return (0x202A...0x202E).contains(scalar.value)
                || (0x2066...0x2069).contains(scalar.value)
        }
    }

    /// Exactly so many columns: cut with an ellipsis, or filled with spaces.
    static func fit(_ text: String, _ columns: Int) -> String {
        let own = width(text)
        if own <= columns { return text + String(repeating: " ", count: columns - own) }
        guard columns > 0 else { return "" }
        var cut = ""
        var used = 0
        for character in text {
            let step = width(character)
            if used + step > columns - 1 { break }
            cut.append(character)
            used += step
        }
        return cut + "…" + String(repeating: " ", count: columns - 1 - used)
    }

    /// Lines of at most so many columns, broken at spaces where there are any.
    ///
    /// - Parameter indent: spaces before each line but the first.
    static func wrap(_ text: String, _ columns: Int, indent: Int = 0) -> [String] {
        guard columns > indent else { return [] }
        var lines = Lines(columns, indent: indent)
        let paragraphs = text.split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for paragraph in paragraphs {
            for word in plain(paragraph).split(separator: " ", omittingEmptySubsequences: false) {
                lines.add(word)
            }
            lines.end()
        }
        return lines.ended
    }

    /// Lines that are filled word by word.
    private struct Lines {
        private let columns: Int
        private let indent: Int
        private(set) var ended: [String] = []
        private var line = ""
        private var used = 0

        init(_ columns: Int, indent: Int) {
            self.columns = columns
            self.indent = indent
        }

        private var room: Int { ended.isEmpty ? columns : columns - indent }

        mutating func add(_ word: Substring) {
            let own = ChatText.width(word)
            if !line.isEmpty, used + 1 + own <= room {
                line += " " + word
                used += 1 + own
                return
            }
            if !line.isEmpty { end() }
            for character in word {
                let step = ChatText.width(character)
                if used + step > room, !line.isEmpty { end() }
                line.append(character)
                used += step
            }
        }

        mutating func end() {
            ended.append(ended.isEmpty ? line : String(repeating: " ", count: indent) + line)
            (line, used) = ("", 0)
        }
    }
}

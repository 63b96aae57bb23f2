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
        return scalars.reduce(0) { $0 + max(0, Int(columns(wchar_t(bitPattern: $1.value)))) }
    }

    /// One picture of several scalars: a flag, a keycap, what is to be shown in colours (variation
    /// selector 16), what is joined, or has a tone of skin.
    private static func isPicture(_ scalars: Character.UnicodeScalarView) -> Bool {
        guard let first = scalars.first, scalars.count > 1 else { return false }
        let rest = scalars.dropFirst()
        if isIndicator(first) { return rest.contains { isIndicator($0) } }
        guard first.properties.isEmoji else { return false }
        return rest.contains {
            $0.value == 0xFE0F || $0.value == 0x200D || $0.properties.isEmojiModifier
        }
    }

    /// Two regional indicators are a flag.
    private static func isIndicator(_ scalar: Unicode.Scalar) -> Bool {
        (0x1F1E6...0x1F1FF).contains(scalar.value)
    }

    static func width(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// One line, without what would move the cursor or change colours, whoever wrote it.
    static func plain(_ text: some StringProtocol) -> String {
        var plain = ""
        for character in text {
            if character == "\t" {
                plain.append(" ")
            } else if !character.unicodeScalars.contains(where: { isControl($0) }) {
                plain.append(character)
            }
        }
        return plain
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
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
    static func wrap(_ text: String, _ columns: Int) -> [String] {
        guard columns > 0 else { return [] }
        var lines: [String] = []
        for paragraph in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var line = ""
            for word in plain(paragraph).split(separator: " ", omittingEmptySubsequences: false) {
                if !line.isEmpty, width(line) + 1 + width(word) <= columns {
                    line += " " + word
                    continue
                }
                if !line.isEmpty { lines.append(line) }
                line = ""
                for character in word {
                    if width(line) + width(character) > columns {
                        lines.append(line)
                        line = ""
                    }
                    line.append(character)
                }
            }
            lines.append(line)
        }
        return lines
    }
}

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
        var widest = 0
        for scalar in character.unicodeScalars {
            widest = max(widest, Int(columns(wchar_t(bitPattern: scalar.value))))
        }
        return min(2, widest)
    }

    static func width(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// Without what would move the cursor or change colours, whoever wrote it.
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

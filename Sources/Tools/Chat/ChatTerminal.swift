import Glibc

/// The terminal as a whole screen. What was on it comes back at the end, however it ends.
final class ChatTerminal: Sendable {
    /// Standard input or output is no terminal.
    struct NotATerminal: Error {}

    private let saved: termios

    init() throws(NotATerminal) {
        var attributes = termios()
        guard isatty(1) == 1, tcgetattr(0, &attributes) == 0 else { throw NotATerminal() }
        saved = attributes
        setlocale(LC_CTYPE, "")
        // Without a locale of UTF-8 the width of what is not ASCII would not be known.
        if String(cString: nl_langinfo(nl_item(CODESET))) != "UTF-8" {
            setlocale(LC_CTYPE, "C.UTF-8")
        }
        before = attributes
        // Made before a signal can ask for it.
        _ = farewell.utf8CodeUnitCount
        for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] { signal(number, putBack) }
        cfmakeraw(&attributes)
        // A read returns within a tenth of a second, so that a new size is noticed.
        withUnsafeMutableBytes(of: &attributes.c_cc) { characters in
            characters[Int(VMIN)] = 0
            characters[Int(VTIME)] = 1
        }
        tcsetattr(0, TCSADRAIN, &attributes)
        Self.write(Self.greeting)
    }

    /// Leaves it as it was. Nothing is drawn after it.
    func close() {
        Self.write("\(farewell)")
        var attributes = saved
        tcsetattr(0, TCSADRAIN, &attributes)
    }

    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// What was typed; empty after a tenth of a second without; `nil`: there is nothing to come.
    func read() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 1_024)
        let count = bytes.withUnsafeMutableBytes { Glibc.read(0, $0.baseAddress, $0.count) }
        if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
        var attributes = termios()
        // A terminal that was hung up says nothing at once, for ever.
        if count == 0, tcgetattr(0, &attributes) != 0 { return nil }
        return Array(bytes[..<count])
    }

    func draw(_ drawing: ChatDrawing) { Self.write(Self.text(drawing)) }

    /// A screen of its own, on which a line that is too long does not wrap; and what is pasted is
    /// told from what is typed.
    static let greeting = "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?2004h\u{1B}[2J"

    /// Each line stands in its own row, however wide the terminal takes what is in another.
    static func text(_ drawing: ChatDrawing) -> String {
        var text = "\u{1B}[?25l"
        for (row, line) in drawing.lines.enumerated() {
            text += "\u{1B}[\(row + 1);1H\u{1B}[2K\(line)"
        }
        text += "\u{1B}[\(drawing.cursor.row + 1);\(drawing.cursor.column + 1)H\u{1B}[?25h"
        return text
    }

    private static func write(_ text: String) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else { return }
            bytes = bytes.dropFirst(max(0, count))
        }
    }
}

/// Undoes what the greeting did.
let farewell: StaticString = "\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

/// What the terminal was like; written once, before the signals that read it.
private nonisolated(unsafe) var before = termios()

private func putBack(_ number: Int32) {
    _ = Glibc.write(1, farewell.utf8Start, farewell.utf8CodeUnitCount)
    tcsetattr(0, TCSANOW, &before)
    _exit(128 + number)
}

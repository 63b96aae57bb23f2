import EventLoop
import Glibc
import Synchronization

/// The terminal as a whole screen. What was on it comes back at the end, however it ends.
final class ChatTerminal: Sendable {
    /// Why there is nothing to draw on.
    enum Unfit: Error, CustomStringConvertible {
        /// Standard input or output is none.
        case noTerminal
        /// It says that it obeys nothing.
        case dumb

        var description: String {
            switch self {
            case .noTerminal: "a chat needs a terminal for its input and its output"
            case .dumb:
                "a chat needs a terminal whose cursor can be moved: this one is dumb (TERM)"
            }
        }
    }

    private let saved: termios
    /// What the keyboard is read with.
    private let raw: termios
    /// The keyboard's thread and the one that draws both take the terminal back.
    private let taking = Lock()

    init() throws(Unfit) {
        var attributes = termios()
        guard isatty(1) == 1, tcgetattr(0, &attributes) == 0 else { throw .noTerminal }
        if let name = getenv("TERM"), strcmp(name, "dumb") == 0 { throw .dumb }
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
        withUnsafeMutableBytes(of: &attributes.c_cc) { characters in
            characters[Int(VMIN)] = 0
            characters[Int(VTIME)] = 0
        }
        raw = attributes
        tcsetattr(0, TCSADRAIN, &attributes)
        // Made before a signal needs them.
        stopCame.store(false, ordering: .relaxed)
        continueCame.store(false, ordering: .relaxed)
        signal(SIGTSTP) { _ in stopCame.store(true, ordering: .relaxed) }
        signal(SIGCONT) { _ in continueCame.store(true, ordering: .relaxed) }
        Self.write(Self.greeting)
    }

    /// Whether a stop was asked for from outside since this was asked last.
    var wasToldToStop: Bool { stopCame.exchange(false, ordering: .relaxed) }

    /// Whether the program went on after a stop since this was asked last. The terminal is the
    /// chat's again, whatever it was used for.
    var wasContinued: Bool {
        guard continueCame.exchange(false, ordering: .relaxed) else { return false }
        taking.withLock { take() }
        return true
    }

    /// Gives the terminal back and stops the program, until it is told to go on.
    ///
    /// - Parameter wholeJob: with those that were started together with it, as a terminal's key
    ///   does.
    func suspend(wholeJob: Bool = false) {
        leave()
        let handler = signal(SIGTSTP, SIG_IGN)
        if wholeJob { kill(0, SIGTSTP) }
        signal(SIGTSTP, SIG_DFL)
        // To this thread, so that it goes no further; threads of Swift's pool block signals.
        var (stop, mask) = (sigset_t(), sigset_t())
        sigemptyset(&stop)
        sigaddset(&stop, SIGTSTP)
        pthread_sigmask(SIG_UNBLOCK, &stop, &mask)
        raise(SIGTSTP)
        pthread_sigmask(SIG_SETMASK, &mask, nil)
        signal(SIGTSTP, handler)
        taking.withLock { take() }
    }

    private func take() {
        var attributes = raw
        tcsetattr(0, TCSADRAIN, &attributes)
        Self.write(Self.greeting)
    }

    private func leave() {
        Self.write("\(farewell)")
        var attributes = saved
        tcsetattr(0, TCSADRAIN, &attributes)
    }

    /// Leaves it as it was. Nothing is drawn after it.
    func close() { leave() }

    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(1, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
            return (80, 24)
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// What was typed; empty after a tenth of a second without; `nil`: there is nothing to come.
    func read() -> [UInt8]? {
        // Not by the terminal's own time: after a stop it may be in another mode for a moment, in
        // which a read would wait for a line.
        var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
        guard poll(&input, 1, 100) > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: 1_024)
        let count = bytes.withUnsafeMutableBytes { Glibc.read(0, $0.baseAddress, $0.count) }
        if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
        var attributes = termios()
        // A terminal that was hung up says nothing at once, for ever.
        if count == 0, tcgetattr(0, &attributes) != 0 { return nil }
        return Array(bytes[..<count])
    }

    func draw(_ drawing: ChatDrawing) {
        taking.withLock {
            // What is drawn must be true of the keyboard too: a chat that goes on after a stop may
            // have something to draw before its other thread hears of it, and what is typed then
            // would go to the shell's terminal, the key that ends the chat as a signal.
            if !isRaw { take() }
            Self.write(Self.text(drawing))
        }
    }

    /// Whether each key comes by itself; also where nothing can be known.
    private var isRaw: Bool {
        var attributes = termios()
        return tcgetattr(0, &attributes) != 0 || attributes.c_lflag & tcflag_t(ICANON) == 0
    }

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

/// What the system said of the program's job, and nobody has taken up.
private let stopCame = Atomic(false)
private let continueCame = Atomic(false)

private func putBack(_ number: Int32) {
    _ = Glibc.write(1, farewell.utf8Start, farewell.utf8CodeUnitCount)
    tcsetattr(0, TCSANOW, &before)
    _exit(128 + number)
}

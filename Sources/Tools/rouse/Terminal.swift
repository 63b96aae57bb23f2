import Glibc

/// What commands say to people and machines.
enum Terminal {
    /// Writes to standard output, at once.
    static func print(_ text: String, terminator: String = "\n") {
        write(text + terminator, to: 1)
    }

    /// Writes to standard error, at once.
    static func complain(_ text: String) { write(text + "\n", to: 2) }

    /// Writes over the line of standard error, which is a terminal.
    static func rewrite(_ line: String) { write("\r\u{1B}[K\(line)", to: 2) }

    /// Whether a person looks at what is complained of.
    static var complainsToTerminal: Bool { isatty(2) == 1 }

    /// A word as a shell takes it for one.
    static func quoted(_ word: String) -> String {
        let isBare =
            !word.isEmpty
            && word.utf8.allSatisfy { byte in
                let scalar = Unicode.Scalar(byte)
                return scalar.properties.isAlphabetic && byte < 0x80
                    || "0123456789._-/:@%+,".unicodeScalars.contains(scalar)
            }
        if isBare { return word }
        let parts = word.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }

    /// Whether a person looks at what is printed.
    static var isTerminal: Bool { isatty(1) == 1 }

    /// Colour only where a person sees it.
    static var hasColour: Bool { isatty(1) == 1 && getenv("NO_COLOR") == nil }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let written = bytes[sent...].withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress, buffer.count)
            }
            if written > 0 {
                sent += written
            } else if errno != EINTR {
                return
            }
        }
    }
}

/// Exit statuses, as sysexits.h names them.
enum ExitStatus {
    static let success: Int32 = 0
    static let failure: Int32 = 1
    static let usage: Int32 = 64
    /// What was given is not what it should be.
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    /// An output file exists or cannot be made.
    static let cannotCreate: Int32 = 73
    static let configuration: Int32 = 78

    /// For people; a command's own help says what it means there.
    static let meanings: [(status: Int32, meaning: String)] = [
        (success, "success"), (failure, "something was found wrong, or was refused"),
        (usage, "the command line is wrong"), (badData, "a file is not what it should be"),
        (unavailable, "the store or a port cannot be had"),
        (cannotCreate, "an output exists or cannot be written"),
        (configuration, "a setting is wrong"),
    ]
}

import Foundation
import Glibc

/// The built `rouse`, run as a child process.
struct Program {
    struct Outcome {
        let status: Int32
        let output: String
        let errors: String
    }

    /// The executable beside this test program.
    static let path: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        return URL(fileURLWithPath: own ?? "").deletingLastPathComponent()
            .appendingPathComponent("rouse").path
    }()

    /// Runs it to its end; a run that takes longer than `seconds` is killed and told so.
    static func run(_ arguments: [String], seconds: Int = 300) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-run-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        func file(_ name: String) throws -> FileHandle {
            let url = folder.appendingPathComponent(name)
            FileManager.default.createFile(atPath: url.path, contents: nil)
            return try FileHandle(forWritingTo: url)
        }
        process.standardOutput = try file("out")
        process.standardError = try file("err")
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        let start = ContinuousClock.now
        var status: Int32?
        while status == nil {
            if ended.wait(timeout: .now() + .seconds(2)) == .success {
                status = process.terminationStatus
            } else {
                status = Self.status(of: process.processIdentifier)
            }
            if ContinuousClock.now - start > .seconds(seconds) {
                kill(process.processIdentifier, SIGKILL)
            }
        }
        func text(_ name: String) -> String {
            (try? String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)) ?? ""
        }
        return Outcome(
            status: status ?? 0, output: text("out"), errors: text("err"))
    }

    /// The status of a child that has ended, from the system; `nil`: it runs.
    ///
    /// Foundation learns of the end by a socket that closes. Another process which a thread begins
    /// in the same moment may hold the socket, too, for as long as it lives, as a database does.
    private static func status(of child: pid_t) -> Int32? {
        var status: Int32 = 0
        guard waitpid(child, &status, WNOHANG) == child else { return nil }
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : signal
    }
}

/// Chat to replay: the first lines of a real log where there is one, else a made one of the same
/// form, which goes with this object. The folder of real logs comes from `ROUSE_IRC`, or lies
/// beside the checkout.
final class ChatLog {
    let path: String
    private let isMade: Bool

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    init(_ name: String) throws {
        let places = [
            ProcessInfo.processInfo.environment["ROUSE_IRC"].map { URL(fileURLWithPath: $0) },
            Self.root.deletingLastPathComponent().appendingPathComponent("shared/data/irc"),
        ]
        for place in places.compactMap({ $0 }) {
            let file = place.appendingPathComponent(name)
            if FileManager.default.fileExists(atPath: file.path) {
                path = file.path
                isMade = false
                return
            }
        }
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-made-\(UUID().uuidString).txt")
        path = file.path
        isMade = true
        try Self.made.write(to: file, atomically: true, encoding: .utf8)
    }

    deinit {
        if isMade { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Two hours of a made channel: people come, speak, leave and come back.
    static var made: String {
        var lines: [String] = []
        for minute in 0..<120 {
            let clock = "[\(9 + minute / 60):\(minute % 60 < 10 ? "0" : "")\(minute % 60)]"
                .replacingOccurrences(of: "[9", with: "[09")
            let nick = "nick\(minute * 7 % 23)"
            if minute % 5 == 0 {
                lines.append("=== \(nick) [n=x@host]  has joined #made")
            }
            lines.append("\(clock) <\(nick)> line \(minute) with a word, größer als ASCII")
            lines.append("\(clock) <nick\(minute * 3 % 11)> answer \(minute)")
            if minute % 4 == 3 {
                lines.append("=== \(nick) [n=x@host]  has left #made []")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }
}

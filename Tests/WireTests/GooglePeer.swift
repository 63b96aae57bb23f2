import Foundation
import Testing

enum ProcessEnvironment {
    static var seed: UInt64? {
        ProcessInfo.processInfo.environment["ROUSE_SEED"].flatMap { UInt64($0) }
    }
}

/// Google's protobuf in a Python process (Tests/vectors).
enum GooglePeer {
    static let python = "/usr/bin/python3"

    struct Outcome {
        let status: Int32
        let output: String
        let errors: String
    }

    static let needs: Comment = """
        needs /usr/bin/python3 with google.protobuf, and protoc \
        (Debian: python3-protobuf, protobuf-compiler)
        """

    /// Whether protoc and the Python package are installed.
    static let isThere: Bool = {
        let check = """
            import shutil, google.protobuf.json_format
            assert shutil.which("protoc")
            """
        return FileManager.default.isExecutableFile(atPath: python)
            && (try? run(["-c", check]).status) == 0
    }()

    /// Runs Python with `arguments`. Files instead of pipes: neither side can block the other.
    static func run(_ arguments: [String], input: String = "") throws -> Outcome {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "rouse-wire-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        func file(_ name: String, _ content: String = "") throws -> URL {
            let url = directory.appending(path: name)
            try Data(content.utf8).write(to: url)
            return url
        }
        let output = try file("output")
        let errors = try file("errors")
        let process = Process()
        process.executableURL = URL(filePath: python)
        process.arguments = ["-B"] + arguments
        process.standardInput = try FileHandle(forReadingFrom: file("input", input))
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.run()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus,
            output: try String(contentsOf: output, encoding: .utf8),
            errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self))
    }

    static func script(_ name: String) -> String {
        Vectors.root.appending(path: "Tests/vectors/\(name)").path()
    }

    /// The lines peer.py writes.
    static func ask(_ arguments: [String], input: String = "") throws -> [Substring] {
        let outcome = try run([script("peer.py")] + arguments, input: input)
        guard outcome.status == 0 else { throw PeerFailed(errors: outcome.errors) }
        return outcome.output.split(separator: "\n")
    }

    struct PeerFailed: Error { let errors: String }

    /// What Google's protobuf, and the rules of framing.md beyond it, make of a body.
    enum Verdict: Equatable {
        case read(canonical: [UInt8], json: String)
        case refused(code: UInt32)

        init(line: Substring) throws {
            let words = line.split(separator: " ", maxSplits: 2)
            if words.count == 3, words[0] == "ok" {
                self = .read(canonical: try bytes(hex: words[1]), json: String(words[2]))
            } else {
                self = .refused(code: try #require(words.last.flatMap { UInt32($0) }))
            }
        }
    }
}

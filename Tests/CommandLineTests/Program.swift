import Foundation
import Glibc

/// The built `rouse`, run as an operator runs it: in a folder of its own that goes with this
/// object, with no settings in the environment.
final class Program {
    struct Outcome {
        let status: Int32
        let output: String
        let errors: String

        var all: String { output + errors }
    }

    /// The executable beside this test program.
    static let path: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        return URL(fileURLWithPath: own ?? "").deletingLastPathComponent()
            .appendingPathComponent("rouse").path
    }()

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-line-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    func write(_ text: String, _ name: String) throws {
        let file = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

    func rouse(_ words: String..., settings: [String: String] = [:]) throws -> Outcome {
        try run([Self.path] + words, settings: settings)
    }

    func rouse(_ words: [String]) throws -> Outcome { try run([Self.path] + words) }

    /// Runs a program to its end; after `seconds` it is killed.
    ///
    /// - Parameter below: a folder in which it runs; `nil`: this object's.
    func run(
        _ words: [String], settings: [String: String] = [:], below: String = "",
        seconds: Int = 120
    ) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.currentDirectoryURL = below.isEmpty ? folder : folder.appendingPathComponent(below)
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        process.environment = environment.merging(settings) { $1 }
        process.standardInput = FileHandle.nullDevice
        let id = UUID().uuidString
        func file(_ name: String) throws -> FileHandle {
            let path = path("\(id).\(name)")
            FileManager.default.createFile(atPath: path, contents: nil)
            return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        }
        process.standardOutput = try file("out")
        process.standardError = try file("err")
        let ended = DispatchSemaphore(value: 0)
        process.terminationHandler = { _ in ended.signal() }
        try process.run()
        if ended.wait(timeout: .now() + .seconds(seconds)) == .timedOut {
            kill(process.processIdentifier, SIGKILL)
            ended.wait()
        }
        func text(_ name: String) -> String {
            let path = path("\(id).\(name)")
            defer { try? FileManager.default.removeItem(atPath: path) }
            return (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        }
        return Outcome(
            status: process.terminationReason == .exit ? process.terminationStatus : -1,
            output: text("out"), errors: text("err"))
    }

    /// A program that may not be installed.
    static func find(_ name: String) -> String? {
        ["/usr/bin/", "/bin/"].map { $0 + name }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// The table of commands, as `rouse help --json` prints it.
struct TableCommand: Decodable {
    struct Option: Decodable {
        let name: String
        let value: String?
        let words: [String]
        let help: String
    }

    let name: String
    let group: String
    let summary: String
    let operands: [String]
    let options: [Option]

    var words: [String] { name.split(separator: " ").map(String.init) }

    static func all(_ program: Program) throws -> [TableCommand] {
        let table = try program.rouse("help", "--json").output
        return try JSONDecoder().decode([TableCommand].self, from: Data(table.utf8))
    }
}

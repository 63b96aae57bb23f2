import Foundation

/// What `Deploy` holds, and the programs that check it.
enum Deployed {
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The executable beside this test program.
    static let rouse: String = {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        return URL(fileURLWithPath: own ?? "").deletingLastPathComponent()
            .appendingPathComponent("rouse").path
    }()

    static func path(_ name: String) -> String { root.appendingPathComponent(name).path }

    static func text(_ name: String) throws -> String {
        try String(contentsOfFile: path(name), encoding: .utf8)
    }

    static func isInstalled(_ programs: String...) -> Bool {
        programs.allSatisfy { FileManager.default.isExecutableFile(atPath: $0) }
    }

    struct Outcome {
        let status: Int32
        /// Standard output and standard error, as they came.
        let output: String
    }

    /// Runs a program to its end in `folder`.
    static func run(
        _ words: [String], in folder: URL = root, settings: [String: String] = [:]
    ) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.currentDirectoryURL = folder
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        process.environment = environment.merging(settings) { $1 }
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
    }
}

/// An empty folder that goes with this object.
final class Folder {
    let url = FileManager.default.temporaryDirectory
        .appendingPathComponent("rouse-deploy-\(UUID().uuidString.prefix(8))")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: url.appendingPathComponent(name))
    }
}

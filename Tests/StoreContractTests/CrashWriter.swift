import Foundation
import Model
import SQLiteStore
import Testing

/// Runs the process that is killed.
enum CrashWriter {
    /// Beside the test bundle, where the package's other products are.
    static var path: String {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: own ?? "").deletingLastPathComponent()
            .appendingPathComponent("StoreCrashWriter").path
    }

    /// - Parameters:
    ///   - moves: another thread moves the journal.
    ///   - killAfter: kills it at the latest when it has said so many lines.
    ///   - wrapper: a command with its arguments that runs it.
    /// - Returns: the whole lines it said.
    static func run(
        _ store: String, count: Int, moves: Bool = false, killAfter: Int? = nil,
        under wrapper: [String] = []
    ) throws -> [String] {
        let command = wrapper + [path, store, String(count)] + (moves ? ["moves"] : [])
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        var said: [UInt8] = []
        while true {
            let data = pipe.fileHandleForReading.availableData
            if data.isEmpty { break }
            said += data
            if let killAfter, said.count(where: { $0 == 0x0a }) >= killAfter {
                kill(process.processIdentifier, SIGKILL)
            }
        }
        process.waitUntilExit()
        // The last line may be cut: then nobody has heard it.
        return String(decoding: said, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false
        ).dropLast().map(String.init)
    }
}

/// What a crash writer has said over its lives.
struct CrashLog {
    private(set) var acknowledged: Set<Int64> = []
    private(set) var refused: Set<Int64> = []
    private(set) var unknown: Set<Int64> = []

    mutating func add(_ lines: [String]) {
        for line in lines {
            let words = line.split(separator: " ")
            guard words.count == 2, let number = Int64(words[1]) else { continue }
            switch words[0] {
            case "ack": acknowledged.insert(number)
            case "full": refused.insert(number)
            default: unknown.insert(number)
            }
        }
        // A later life may use the number of a refused transaction, or of one lost in the crash.
        refused.subtract(acknowledged)
        unknown.subtract(acknowledged)
    }

    /// Opens the store that a writer left and compares.
    func check(_ path: String, _ comment: String) throws {
        let piece = Table(
            "piece", key: [Column("number", .integer), Column("part", .integer)],
            values: [Column("bytes", .blob)],
            indexes: [TableIndex("piece_by_part", on: "part")])
        let counter = Table(
            "counter", key: [Column("name", .text)], values: [Column("number", .integer)])
        var options = SQLiteOptions()
        options.check = .always
        let store = try SQLiteStore(path: path, tables: [piece, counter], options: options)
        defer { store.close() }
        var parts: [Int64: Int] = [:]
        for row in try store.rows(piece) {
            if case .integer(let number) = row[0] { parts[number, default: 0] += 1 }
        }
        for (number, count) in parts {
            #expect(count == 5, "\(comment): \(number) is there in half")
            #expect(!refused.contains(number), "\(comment): \(number) was refused")
        }
        for number in acknowledged {
            #expect(parts[number] != nil, "\(comment): \(number) was acknowledged")
        }
        let last = try store.rows(counter).first?[1]
        let expected = parts.keys.max().map { ColumnValue.integer($0) }
        #expect(last == expected, "\(comment): the counter is of another transaction")
        #expect(
            try store.rows(piece, Scan(index: "piece_by_part", limit: .max)).count
                == parts.count * 5)
    }
}

enum Shell {
    /// The exit status.
    static func run(_ name: String, _ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }
}

enum Strace {
    private static let path = "/usr/bin/strace"

    static let works =
        (try? Shell.run(path, ["-o", "/dev/null", "-e", "inject=sync:error=EIO", "true"])) == 0

    /// - Parameter file: calls that concern other files are left alone.
    static func inject(
        _ fault: String, log: String = "/dev/null", file: String? = nil
    ) -> [String] {
        [
            path, "-f", "-qq", "-o", log, "-e", "trace=openat,pwrite64,fdatasync",
            "-e", "inject=\(fault)",
        ] + (file.map { ["-P", $0] } ?? [])
    }
}

/// A file system of 1 MiB in memory; mounting one takes root.
enum SmallDisk {
    static let works: Bool =
        (try? withFolder { folder in
            defer { unmount("\(folder)/disk") }
            return mount("\(folder)/disk")
        }) == true

    static func mount(_ path: String) -> Bool {
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        return (try? Shell.run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", path])) == 0
    }

    static func unmount(_ path: String) { _ = try? Shell.run("umount", [path]) }
}

import Foundation
import Testing

/// The import table of the building. SwiftPM lets a target import an undeclared sibling that
/// something else has built, so the table is a test.
@Suite struct LayoutTests {
    static let appleFrameworks: Set<String> = [
        "Network", "Security", "UserNotifications", "UIKit", "Darwin",
    ]

    /// Foundation itself is for Apple's systems, which have it: on Linux it brings 40 MB of tables
    /// of languages and calendars into the program, which FoundationEssentials does not.
    static let withTheToolchain: Set<String> = ["Foundation", "FoundationEssentials", "Glibc"]

    /// Target folder below Sources, and what it may import beside the standard library.
    static let table: [(folder: String, imports: Set<String>)] = [
        ("Core/Model", []),
        ("Core/JSONTree", []),
        ("Core/Wire", ["Model"]),
        ("Core/Wake", ["Model"]),
        ("Core/WorkingSet", ["Model"]),
        ("Core/Feed", ["Model", "Wire", "Wake", "WorkingSet"]),
        ("Core/SyncServer", ["Model", "Wire", "Feed"]),
        ("Core/PushPool", ["Model", "Wake", "Feed"]),
        ("Core/SyncClient", ["Model", "Wire"]),
        ("Core/AppLife", ["Model", "Wire"]),
        ("Core/MemoryStore", ["Model"]),
        ("Adapters/EventLoop", ["CUV", "Glibc"]),
        ("Adapters/Crypto", ["COpenSSL", "Glibc"]),
        ("Adapters/HTTP1", ["CMicroHTTPD", "Glibc"]),
        ("Adapters/HTTP2", ["CNGHTTP2", "Glibc"]),
        ("Adapters/HTTPClient", ["CCurl", "Glibc"]),
        ("Adapters/Failpoints", ["Glibc"]),
        ("Adapters/PostgresStore", ["CPostgres", "Glibc", "Model"]),
        (
            "Adapters/SQLiteStore",
            ["CSQLite", "Glibc", "Darwin", "Failpoints", "Model", "Wire"]
        ),
        ("Server/Telemetry", ["EventLoop", "Glibc"]),
        (
            "Server/StoreService",
            ["EventLoop", "Failpoints", "Feed", "Wake", "WorkingSet", "Wire", "Model", "Glibc"]
        ),
        (
            "Server/SyncService",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "SyncServer", "Feed", "Wire",
                "Model",
            ]
        ),
        (
            "Server/PushGateway",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTP2", "Failpoints",
                "PushPool", "Wake", "Feed", "Model", "Glibc",
            ]
        ),
        (
            "Server/Webhooks",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTPClient", "Failpoints",
                "Feed", "Model",
            ]
        ),
        (
            "Server/BackendAPI",
            [
                "Telemetry", "StoreService", "EventLoop", "Crypto", "HTTP1", "CDescription",
                "CConsole", "Feed", "Wake", "Wire", "Model", "FoundationEssentials", "Glibc",
            ]
        ),
        (
            "Server/RouseServer",
            [
                "Telemetry", "StoreService", "SyncService", "PushGateway", "Webhooks",
                "BackendAPI", "SQLiteStore", "PostgresStore", "EventLoop", "Crypto", "Failpoints",
                "SyncServer", "PushPool", "Feed", "Wake", "Wire", "Model", "FoundationEssentials",
                "Glibc",
            ]
        ),
        (
            "Client",
            ["RouseClient", "EventLoop", "Crypto", "SyncClient", "Wire", "Model"]
        ),
        (
            "RouseClient",
            [
                "AppLife", "SyncClient", "Wire", "JSONTree", "Model", "Foundation",
                "FoundationEssentials", "Glibc", "Darwin",
            ]
        ),
        (
            "ApplePlatform",
            [
                "RouseClient", "AppLife", "SyncClient", "SQLiteStore", "Wire", "Model",
                "Foundation", "Network", "Security", "UserNotifications", "UIKit",
            ]
        ),
        ("Tools/DeviceModel", ["Model"]),
        (
            "Tools/Fleet",
            [
                "DeviceModel", "EventLoop", "SyncServer", "Wake", "Model", "FoundationEssentials",
                "Glibc",
            ]
        ),
        (
            "Tools/APNsSimulator",
            [
                "DeviceModel", "Client", "SQLiteStore", "EventLoop", "Crypto", "HTTP1", "HTTP2",
                "RouseClient", "AppLife", "SyncClient", "Wire", "JSONTree", "Model",
                "FoundationEssentials", "Glibc",
            ]
        ),
        (
            "Tools/Scenario",
            [
                "APNsSimulator", "PushGateway", "StoreService", "Telemetry", "Client",
                "RouseClient", "AppLife", "SQLiteStore", "EventLoop", "Crypto", "SyncClient",
                "Feed", "Wake", "Wire", "Model",
                "FoundationEssentials", "Glibc",
            ]
        ),
        (
            "Tools/Chat",
            [
                "APNsSimulator", "Client", "SQLiteStore", "EventLoop", "RouseClient", "AppLife",
                "SyncClient", "Wire", "Model", "FoundationEssentials", "Glibc",
            ]
        ),
        (
            "Tools/Conformance",
            ["EventLoop", "Crypto", "Wire", "JSONTree", "Model", "FoundationEssentials", "Glibc"]
        ),
        (
            "Tools/Bench",
            [
                "RouseServer", "StoreService", "SQLiteStore", "MemoryStore", "EventLoop", "Feed",
                "Wake", "WorkingSet", "Wire", "Model", "FoundationEssentials", "Glibc",
            ]
        ),
        (
            "Tools/rouse",
            [
                "RouseServer", "APNsSimulator", "Scenario", "Conformance", "Bench", "Fleet",
                "Chat", "Client", "Telemetry", "EventLoop", "Crypto", "JSONTree", "Model",
                "FoundationEssentials",
                "Glibc",
            ]
        ),
    ]

    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func swiftFiles(in folder: String) -> [URL] {
        let start = root.appendingPathComponent(folder)
        guard let walk = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)
        else { return [] }
        return walk.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .sorted { $0.path < $1.path }
    }

    static func imports(in text: String) -> [String] {
        text.split(separator: "\n").compactMap { line in
            var words = line.split(separator: " ")
            while let first = words.first,
                ["public", "internal", "package", "private", "fileprivate"].contains(first)
                    || first.hasPrefix("@")
            {
                words.removeFirst()
            }
            guard words.first == "import", words.count >= 2 else { return nil }
            let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var"]
            let name = kinds.contains(words[1]) && words.count > 2 ? words[2] : words[1]
            return String(name.split(separator: ".").first ?? name)
        }
    }

    static func forbidden(in text: String, allowed: Set<String>) -> [String] {
        imports(in: text).filter { !allowed.contains($0) && $0 != "Synchronization" }
    }

    @Test("every target imports only what its floor allows", arguments: table.indices)
    func importsKeepTheTable(_ index: Int) throws {
        let (folder, allowed) = Self.table[index]
        let files = Self.swiftFiles(in: "Sources/\(folder)")
        #expect(!files.isEmpty, "\(folder): a target without code")
        for file in files {
            let text = try String(contentsOf: file, encoding: .utf8)
            let found = Self.forbidden(in: text, allowed: allowed)
            #expect(found.isEmpty, "\(file.lastPathComponent) imports \(found)")
        }
    }

    @Test("every source file belongs to a target of the table")
    func tableIsComplete() {
        let folders = Self.table.map { "/Sources/\($0.folder)/" }
        for file in Self.swiftFiles(in: "Sources") {
            #expect(folders.contains { file.path.contains($0) }, "\(file.path)")
        }
    }

    /// What Package.swift lets each target depend on, by target.
    static func declared(in package: String) -> [String: Set<String>] {
        let text = package.filter { !$0.isWhitespace }
        let plain = #/(?:core|adapter|failpoints|server|tool)\("(\w+)"(?:,\[([^\]]*)\])?/#
        let written = #/arget\(name:"(\w+)",dependencies:\[([^\]]*)\]/#
        var table: [String: Set<String>] = [:]
        func note(_ name: Substring, _ list: Substring?) {
            let names = (list ?? "").split(separator: ",").map { name in
                name.replacing("onApple(", with: "").filter { $0 != "\"" && $0 != ")" }
            }
            table[String(name)] = Set(names)
        }
        for match in text.matches(of: plain) { note(match.1, match.2) }
        for match in text.matches(of: written) { note(match.1, match.2) }
        return table
    }

    @Test("Package.swift declares for each target what the table allows")
    func packageAgrees() throws {
        let file = Self.root.appendingPathComponent("Package.swift")
        let declared = Self.declared(in: try String(contentsOf: file, encoding: .utf8))
        for (folder, imports) in Self.table {
            let name = String(folder.split(separator: "/").last ?? "")
            let own = imports.subtracting(Self.withTheToolchain).subtracting(Self.appleFrameworks)
            #expect(declared[name] == own, "\(folder)")
        }
    }

    @Test(
        "a forbidden import is seen in each way it can be written",
        arguments: [
            "import CUV", "public import CUV", "@testable import CUV",
            "import struct CUV.uv_loop_t",
            "@preconcurrency internal import CUV",
        ])
    func forbiddenImportIsSeen(_ line: String) {
        let text = "import Model\n\(line)\n"
        #expect(Self.forbidden(in: text, allowed: ["Model"]) == ["CUV"])
        #expect(Self.forbidden(in: text, allowed: ["Model", "CUV"]).isEmpty)
    }

    @Test("what apps build calls nothing that the oldest systems of Package.swift lack")
    func appsRunOnOldSystems() throws {
        // iOS 18 and macOS 15 brought it, as they brought the module of locks and atomics.
        let newer = ["String(validating:", "import Synchronization"]
        let product = [
            "Core/Model", "Core/JSONTree", "Core/Wire", "Core/AppLife", "Core/SyncClient",
            "Adapters/SQLiteStore", "RouseClient", "ApplePlatform",
        ]
        for folder in product {
            let files = Self.swiftFiles(in: "Sources/\(folder)")
            #expect(!files.isEmpty, "\(folder)")
            for file in files {
                let text = try String(contentsOf: file, encoding: .utf8)
                let found = newer.filter { text.contains($0) }
                #expect(found.isEmpty, "\(file.lastPathComponent) holds \(found)")
            }
        }
    }

    @Test("lines are at most 100 columns, files at most 600 lines, names say what they hold")
    func filesKeepTheStyle() throws {
        let vague = ["Utils", "Helpers", "Helper", "Manager", "Common", "Misc"]
        for file in Self.swiftFiles(in: "Sources") {
            let text = try String(contentsOf: file, encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 600, "\(file.lastPathComponent): \(lines.count) lines")
            let name = file.deletingPathExtension().lastPathComponent
            #expect(!vague.contains { name.hasSuffix($0) }, "\(name)")
            for (number, line) in lines.enumerated() where line.count > 100 {
                Issue.record("\(file.lastPathComponent):\(number + 1) has \(line.count) columns")
            }
        }
    }

    @Test("every test is one that Deploy/test runs and counts: none is XCTest's")
    func testsAreSwiftTesting() throws {
        let files = Self.swiftFiles(in: "Tests")
        #expect(!files.isEmpty)
        for file in files {
            let text = try String(contentsOf: file, encoding: .utf8)
            #expect(!Self.imports(in: text).contains("XCTest"), "\(file.lastPathComponent)")
        }
    }

    @Test("the core holds no clock, chance, thread or unsafe code")
    func coreIsPure() throws {
        let banned = [
            "Unsafe", "@unchecked", "Date()", "ContinuousClock", "Task {", "Task.",
            "SystemRandomNumberGenerator", "DispatchQueue", "nonisolated(unsafe)", "try!",
        ]
        for file in Self.swiftFiles(in: "Sources/Core") {
            let text = try String(contentsOf: file, encoding: .utf8)
            for word in banned {
                #expect(!text.contains(word), "\(file.lastPathComponent) holds \(word)")
            }
            // With a generator named, chance is the caller's seed.
            for line in text.split(separator: "\n") where !line.contains("using: &") {
                #expect(!line.contains(".random("), "\(file.lastPathComponent): \(line)")
            }
        }
    }
}

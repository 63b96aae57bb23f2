import Foundation
import Testing

/// What the system's loader brings into the process: the libraries of PostgreSQL, of webhooks and
/// of HTTP/1.1 need thirty more, and come only when something speaks to these.
@Suite struct LoadingTests {
    struct Library: Sendable, CustomTestStringConvertible {
        let name: String
        let package: String
        let firstFunction: String
        /// What needs it.
        let words: [String]

        var testDescription: String { name }
    }

    static let libraries = [
        Library(
            name: "libpq.so.5", package: "libpq5", firstFunction: "PQconnectdbParams",
            words: [
                "serve", "--check-config", "--config", "rouse.conf", "--set",
                "store.postgres=host=localhost", "--set", "store.path=",
            ]),
        Library(
            name: "libcurl.so.4", package: "libcurl4", firstFunction: "curl_global_init",
            words: ["serve", "--config", "rouse.conf"]),
        Library(
            name: "libmicrohttpd.so.12", package: "libmicrohttpd12",
            firstFunction: "MHD_start_daemon", words: ["serve", "--config", "rouse.conf"]),
    ]

    /// Linked with the program: the system's own, TLS, the event loop, SQLite and HTTP/2.
    static let linked: Set<String> = [
        "libc", "libm", "libgcc_s", "libstdc++", "ld-linux-x86-64", "ld-linux-aarch64", "libdl",
        "libpthread", "librt", "libssl", "libcrypto", "libuv", "libsqlite3", "libnghttp2",
    ]

    /// The libraries of a run, as the loader tells them (ld.so(8), LD_DEBUG), without Swift's own,
    /// which are in a release build's program.
    private static func loaded(_ program: Program, _ words: [String]) throws -> Set<String> {
        let outcome = try program.run(
            [Program.path] + words, settings: ["LD_DEBUG": "libs"])
        let paths = outcome.errors.split(separator: "\n").compactMap { line in
            line.range(of: "calling init: ").map { String(line[$0.upperBound...]) }
        }
        return Set(
            paths.filter { !$0.contains("/swift") }.compactMap {
                $0.split(separator: "/").last?.components(separatedBy: ".so").first
            })
    }

    private static func prepared() throws -> Program {
        let program = try Program()
        _ = try program.rouse("dev", "certificates", "tls")
        try program.write(ServedProgram.base + "store.path = rouse.db\n", "rouse.conf")
        return program
    }

    @Test(
        "a command that needs no library of a peer loads none",
        arguments: [["--version"], ["help"], ["app", "list", "--config", "rouse.conf"]])
    func unneeded(_ words: [String]) throws {
        let found = try Self.loaded(try Self.prepared(), words)
        #expect(found.contains("libcrypto"), "the loader tells nothing: \(found)")
        #expect(found.subtracting(Self.linked) == [], "beside what is linked")
    }

    @Test("an address of PostgreSQL loads its library")
    func needed() throws {
        let found = try Self.loaded(try Self.prepared(), Self.libraries[0].words)
        #expect(found.contains("libpq"))
        #expect(!found.contains("libcurl") && !found.contains("libmicrohttpd"))
    }

    @Test("a library that cannot be loaded is named, with its package", arguments: libraries)
    func missing(_ library: Library) throws {
        let program = try Self.prepared()
        // Found first, and no library.
        try program.write("", "libraries/\(library.name)")
        let outcome = try program.run(
            [Program.path] + library.words,
            settings: ["LD_LIBRARY_PATH": program.path("libraries")])
        #expect(outcome.status != 0)
        let words = "\(library.name) cannot be loaded: apt install \(library.package) ("
        #expect(outcome.errors.contains(words), "\(outcome.all)")
        #expect(try WrongCallTests.leak(in: outcome.errors) == nil, "\(outcome.errors)")
    }

    @Test("a library without a function in use is named, with both", arguments: libraries)
    func another(_ library: Library) throws {
        let program = try Self.prepared()
        let folder = program.folder.appendingPathComponent("libraries")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let other = try #require(
            ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/libuv.so.1" }
                .first { FileManager.default.fileExists(atPath: $0) })
        try FileManager.default.copyItem(
            atPath: URL(fileURLWithPath: other).resolvingSymlinksInPath().path,
            toPath: folder.appendingPathComponent(library.name).path)
        let outcome = try program.run(
            [Program.path] + library.words, settings: ["LD_LIBRARY_PATH": folder.path])
        #expect(outcome.status != 0)
        #expect(
            outcome.errors.contains("\(library.name) has no function \(library.firstFunction): "),
            "\(outcome.all)")
    }
}

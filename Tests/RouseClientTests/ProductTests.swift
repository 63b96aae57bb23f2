import Foundation
import Testing

/// The product that an app takes: it builds alone, without one of the server's modules or the C
/// libraries below them.
@Suite struct ProductTests {
    @Test("swift build --product RouseClient compiles seven modules, where no C library is found")
    func theProductBuildsAlone() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let scratch = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-product-\(UUID().uuidString.prefix(8))")
        defer { try? FileManager.default.removeItem(at: scratch) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "swift", "build", "--package-path", root.path, "--scratch-path", scratch.path,
            "--product", "RouseClient",
        ]
        var environment = ProcessInfo.processInfo.environment
        environment["PKG_CONFIG_LIBDIR"] = "/nonexistent"
        environment["PKG_CONFIG_PATH"] = ""
        process.environment = environment
        let output = Pipe()
        (process.standardOutput, process.standardError) = (output, output)
        try process.run()
        let words = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(String(decoding: words, as: UTF8.self))")
        let modules = scratch.appendingPathComponent("debug/Modules")
        let built = try FileManager.default.contentsOfDirectory(atPath: modules.path)
            .filter { $0.hasSuffix(".swiftmodule") }.sorted()
        #expect(
            built
                == [
                    "AppLife", "ApplePlatform", "JSONTree", "Model", "RouseClient", "SyncClient",
                    "Wire",
                ]
                .map { "\($0).swiftmodule" })
    }
}

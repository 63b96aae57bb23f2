import Foundation
import Testing

/// The drawings in Protocol/diagrams are those of the data beside them.
@Suite struct DrawingTests {
    static let folder = LayoutTests.root.appendingPathComponent("Protocol/diagrams")

    static func draw(into folder: URL) throws -> Int32 {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = ["-B", Self.folder.appendingPathComponent("draw.py").path, folder.path]
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    @Test("every drawing is what the script makes of the data, and none is left over")
    func drawn() throws {
        let files = FileManager.default
        let scratch = files.temporaryDirectory
            .appendingPathComponent("rouse-diagrams-\(UUID().uuidString)")
        try files.createDirectory(at: scratch, withIntermediateDirectories: true)
        defer { try? files.removeItem(at: scratch) }
        #expect(try Self.draw(into: scratch) == 0)
        let made = try files.contentsOfDirectory(atPath: scratch.path).sorted()
        #expect(made.count >= 7 && made.contains("README.md"))
        for name in made {
            let new = try Data(contentsOf: scratch.appendingPathComponent(name))
            let kept = try? Data(contentsOf: Self.folder.appendingPathComponent(name))
            #expect(new == kept, "\(name): run Protocol/diagrams/draw.py")
        }
        let kept = try files.contentsOfDirectory(atPath: Self.folder.path)
            .filter { $0.hasSuffix(".svg") || $0.hasSuffix(".md") }.sorted()
        #expect(kept == made)
    }
}

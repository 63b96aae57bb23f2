import Foundation
import Testing

/// The README names everything that a reader would look for there.
@Suite struct OverviewTests {
    private static let readme = try? String(
        contentsOf: LayoutTests.root.appendingPathComponent("README.md"), encoding: .utf8)

    /// The words of the table rows whose first cells are under this heading.
    private func words(under heading: String) throws -> Set<String> {
        let text = try #require(Self.readme)
        let part = try #require(text.components(separatedBy: "\n## \(heading)\n").dropFirst().first)
        let rows = part.prefix { $0 != "#" }.split(separator: "\n").filter { $0.hasPrefix("|") }
        let cells = rows.flatMap { $0.split(separator: "|").prefix(3) }
        return Set(
            cells.flatMap { $0.split(whereSeparator: { ", `".contains($0) }) }.map(String.init))
    }

    @Test("each Debian package that is installed has its reason")
    func packages() throws {
        let list = try String(
            contentsOf: LayoutTests.root.appendingPathComponent("Deploy/packages"), encoding: .utf8)
        let names = list.split(separator: "\n").filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
        let told = try words(under: "What it stands on, and why")
        #expect(names.count > 30)
        #expect(names.filter { !told.contains($0) } == [])
    }

    @Test("each module has its sentence")
    func modules() throws {
        let sources = LayoutTests.root.appendingPathComponent("Sources")
        let files = FileManager.default
        let floors = ["System", "Core", "Adapters", "Server", "Tools"]
        let modules = try floors.flatMap { floor in
            try files.contentsOfDirectory(atPath: sources.appendingPathComponent(floor).path)
        }
        let told = try words(under: "The modules")
        #expect(modules.count > 30)
        #expect(modules.filter { !told.contains($0) && !$0.contains(".") } == [])
    }
}

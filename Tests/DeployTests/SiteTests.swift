import Foundation
import Testing

/// The documentation as a site.
@Suite(.enabled(if: Deployed.isInstalled("/usr/bin/mkdocs"), "mkdocs is not installed"))
struct SiteTests {
    @Test("the site is made of the Markdown that there is, and every link leads somewhere")
    func links() throws {
        let folder = try Folder()
        let output = folder.url.appendingPathComponent("site").path
        let made = try Deployed.run([Deployed.path("Deploy/site"), "--output", output])
        #expect(made.status == 0 && made.output.hasPrefix("site: "), "\(made.output)")
        for page in ["index.html", "Deploy/index.html", "Protocol/sync.html"] {
            #expect(FileManager.default.fileExists(atPath: "\(output)/\(page)"), "\(page)")
        }
    }
}

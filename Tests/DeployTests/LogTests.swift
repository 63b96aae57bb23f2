import Foundation
import Testing

/// What an operator reads in the log, of a server as it runs.
@Suite struct LogTests {
    @Test("one trace goes from a publish to its push, its device, its webhook and explain")
    func followed() throws {
        let folder = try Folder()
        let outcome = try Deployed.run([
            "/usr/bin/python3", Deployed.path("Tests/peers/followed.py"), "--rouse",
            Deployed.rouse, "--folder", folder.url.path,
        ])
        #expect(outcome.status == 0 && outcome.output.contains("followed: ok"), "\(outcome.output)")
    }
}

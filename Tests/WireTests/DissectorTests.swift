import Foundation
import Testing

/// Protocol/wireshark/rouse.lua, read by tshark.
@Suite(.enabled(if: DissectorTests.isThere, "needs tshark (Debian: tshark)"))
struct DissectorTests {
    static let isThere =
        GooglePeer.isThere && FileManager.default.isExecutableFile(atPath: "/usr/bin/tshark")

    @Test func everyGoldenFrameIsNamedAndNoneMalformed() throws {
        let outcome = try GooglePeer.run([GooglePeer.script("dissect.py")])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.hasSuffix(" frames, 0 wrong\n"))
    }
}

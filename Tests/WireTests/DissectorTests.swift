import Foundation
import Testing

private enum Wireshark {
    static let isThere =
        GooglePeer.isThere && FileManager.default.isExecutableFile(atPath: "/usr/bin/tshark")
}

/// Protocol/wireshark/rouse.lua, read by tshark.
@Suite(.enabled(if: Wireshark.isThere, "needs tshark (Debian: tshark)"))
struct DissectorTests {
    @Test func everyGoldenFrameIsNamedAndNoneMalformed() throws {
        let outcome = try GooglePeer.run([GooglePeer.script("dissect.py")])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.hasSuffix(" frames, 0 wrong\n"))
    }
}

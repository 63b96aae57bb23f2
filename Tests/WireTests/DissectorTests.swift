import Foundation
import Testing

/// Protocol/wireshark/rouse.lua, read by tshark.
@Suite(.enabled(if: Tshark.isThere, "needs tshark (Debian: tshark)"))
struct DissectorTests {
    @Test func everyGoldenFrameIsNamedAndNoneMalformed() throws {
        let outcome = try GooglePeer.run([GooglePeer.script("dissect.py")])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.hasSuffix(" frames, 0 wrong\n"))
    }
}

/// Apart from the suite: a suite cannot be asked in its own attribute.
private enum Tshark {
    static let isThere =
        GooglePeer.isThere && FileManager.default.isExecutableFile(atPath: "/usr/bin/tshark")
}

import Testing
import Wire

@testable import SyncServer

/// What every connection holds, and what every step of one passes on.
@Suite struct SizeTests {
    @Test("the state of a connection and its actions stay small")
    func sizes() {
        let session = MemoryLayout<Session>.size
        let action = MemoryLayout<SessionAction>.size
        print(
            "a session \(session) bytes, an action \(action), a frame \(MemoryLayout<Frame>.size)")
        // A server of 100,000 connections holds so many of them; most are idle.
        #expect(session <= 800)
        #expect(action <= 300)
    }
}

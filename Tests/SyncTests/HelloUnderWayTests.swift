import Model
import SyncClient
import Testing
import Wire

/// What changes on the phone while a HELLO is on its way.
@Suite struct HelloUnderWayTests {
    private func hellos(_ phone: Phone) -> [Hello] {
        phone.frames.compactMap { if case .hello(let hello) = $0.body { hello } else { nil } }
    }

    @Test("a push token that comes then is presented over another connection, after a drain, too")
    func token() throws {
        let token = PushRegistration(
            token: [7], environment: .production, topic: "org.example.chess")
        var phone = try Phone.inSync()
        phone.receive(.drain(Drain(deadlineMs: 60_000, slotMs: 30_000)))
        // The server has said when to come.
        #expect(phone.run { $0.setPush(token, now: $1) } == [])
        #expect(phone.run { $0.setPush(nil, now: $1) } == [])
        #expect(phone.pass(30_000) == ["disconnect", "connect"])
        phone.connect()
        #expect(hellos(phone).last?.push == nil)
        #expect(phone.run { $0.setPush(token, now: $1) } == ["disconnect", "connect"])
        phone.connect()
        #expect(hellos(phone).last?.push == token)
    }

    @Test("switches and the phase that change then are told behind WELCOME, and nothing else is")
    func state() throws {
        func told(_ change: (inout Phone) -> Void) throws -> [AppState] {
            var phone = try Phone()
            phone.start()
            phone.connect()
            change(&phone)
            phone.receive(Phone.welcome(), request: 1)
            return phone.frames.compactMap {
                if case .appState(let state) = $0.body { state } else { nil }
            }
        }
        #expect(try told { _ in }.isEmpty)
        let low = AppState(phase: .foreground, lowPower: .on)
        #expect(try told { $0.run { $0.switchesChanged(low, now: $1) } } == [low])
        let behind = AppState(phase: .background, remainingMs: 9_000)
        #expect(
            try told { $0.run { $0.appStateChanged(behind, now: $1) } }.map(\.phase)
                == [.background])
    }
}

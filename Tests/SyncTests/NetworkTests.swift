import Model
import SyncClient
import Testing
import Wire

/// A device that is somewhere else: on another network, or in another place of the world.
@Suite struct NetworkTests {
    @Test("a connection of the former network is asked, and without an answer left after 5 s")
    func aDeadConnection() throws {
        var phone = try Phone.inSync()
        #expect(phone.run { $0.networkChanged(now: $1) } == ["send PING"])
        #expect(phone.pass(3_000) == [])
        // A network that flutters puts nothing off.
        #expect(phone.run { $0.networkChanged(now: $1) } == [])
        #expect(phone.pass(1_999) == [])
        // Without back-off.
        #expect(phone.pass(1) == ["disconnect", "connect"])
        // What is tried then has as long as ever.
        #expect(phone.pass(29_999) == [])
        #expect(phone.pass(1).first == "disconnect")
    }

    @Test("one that answers stays, and is asked as seldom as before")
    func aLivingConnection() throws {
        var phone = try Phone.inSync()
        #expect(phone.run { $0.networkChanged(now: $1) } == ["send PING"])
        #expect(phone.receive(.pong(Pong())) == [])
        #expect(phone.pass(161_999) == [])
        #expect(phone.pass(1) == ["send PING"])
        #expect(phone.pass(29_999) == [])
        #expect(phone.pass(1).first == "disconnect")
    }

    @Test("a connection that ends with its network is made anew at once, but once")
    func anEndedConnection() throws {
        var phone = try Phone.inSync()
        #expect(phone.run { $0.networkChanged(now: $1) } == ["send PING"])
        #expect(phone.close() == ["connect"])
        #expect(phone.close().first?.hasPrefix("retry after") == true)
        // The server's word goes before.
        phone = try Phone.inSync()
        phone.run { $0.networkChanged(now: $1) }
        #expect(phone.close(.protocolViolation) == ["parked"])
    }

    @Test("one that waits for its PONG when the network changes is asked anew")
    func whileAsked() throws {
        var phone = try Phone.inSync()
        #expect(phone.pass(162_000) == ["send PING"])
        #expect(phone.pass(20_000) == [])
        #expect(phone.run { $0.networkChanged(now: $1) } == ["send PING"])
        #expect(phone.pass(4_999) == [])
        #expect(phone.pass(1) == ["disconnect", "connect"])
    }

    @Test("another language or zone is said in a HELLO of its own, once")
    func anotherPlace() throws {
        var phone = try Phone.inSync()
        let vienna = ClientPlace(
            locale: "de-AT", timeZone: "Europe/Vienna", secondsFromUTC: 3_600)
        #expect(phone.run { $0.setPlace(vienna, now: $1) } == ["disconnect", "connect"])
        phone.connect()
        guard case .hello(let hello)? = phone.frames.last?.body else {
            Issue.record("no HELLO")
            return
        }
        #expect(hello.locale == "de-AT")
        #expect(hello.timeZone == "Europe/Vienna")
        #expect(hello.utcOffset == 1_500)
        phone.receive(Phone.welcome(), request: 1)
        #expect(phone.run { $0.setPlace(vienna, now: $1) } == [])
    }

    @Test("a covered app says it when it is in front again")
    func coveredMeanwhile() throws {
        var phone = try Phone.inSync()
        phone.run { $0.appStateChanged(AppState(phase: .inactive), now: $1) }
        let place = ClientPlace(locale: "fr")
        #expect(phone.run { $0.setPlace(place, now: $1) } == [])
        let lines = phone.run {
            $0.appStateChanged(AppState(phase: .foreground), now: $1)
        }
        #expect(lines.suffix(2) == ["disconnect", "connect"])
    }

    @Test("one that is asked to go says it with its next HELLO, in its slot")
    func drained() throws {
        var phone = try Phone.inSync()
        phone.receive(.drain(Drain(slotMs: 5_000)))
        let place = ClientPlace(locale: "fr")
        #expect(phone.run { $0.setPlace(place, now: $1) } == [])
        #expect(phone.session.isOpen)
    }

    @Test("an offset that is none is left out", arguments: [-90_000, 90_000])
    func noOffset(_ seconds: Int) {
        #expect(ClientPlace(locale: "", timeZone: "", secondsFromUTC: seconds).utcOffset == 0)
        #expect(ClientPlace(locale: "", timeZone: "", secondsFromUTC: -3_600).utcOffset == 1_380)
    }
}

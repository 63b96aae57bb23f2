import APNsSimulator
import Crypto
import EventLoop
import Feed
import Foundation
import Model
import PushPool
import SQLiteStore
import StoreService
import Telemetry
import Testing
import Wake
import Wire

@testable import PushGateway

/// The gateway between a real store and the simulator, which checks each request as Apple does.
extension GatewayTests {
    @Test("a message wakes, then alerts a device that stays away; a dead token is dropped")
    func overTheStore() throws {
        let city = try City(grace: 300)
        defer { city.stop() }
        let session = try city.login("anna")
        _ = try city.commit(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        let conversation = try city.converse(["anna", "bob"])
        try city.publish("Shall we?", to: conversation, from: "bob")
        eventually("no wake and no alert") { city.pushes.count >= 2 }
        let pushes = city.pushes
        #expect(pushes.map(\.pushType) == ["background", "alert"])
        #expect(pushes.map(\.status) == [200, 200])
        #expect(pushes.map(\.priority) == [5, 10])
        #expect(pushes.allSatisfy { $0.lints == nil })
        eventually("the answers were not written down") {
            city.history().map(\.acceptedAt).filter { $0 != nil }.count == 2
        }
        let history = city.history()
        #expect(Set(history.map(\.wake.description)) == Set(pushes.compactMap(\.apnsId)))
        #expect(history.map(\.outcome) == [.accepted, .noShow])

        try city.killToken()
        try city.publish("Hello?", to: conversation, from: "bob")
        eventually("the dead token was not told") { city.pushes.last?.status == 410 }
        eventually("the dead token was kept") { city.device()?.device.pushToken == nil }
        #expect(city.device()?.reachability == .tokenless)
        #expect(city.history().first?.status == 410)
        #expect(city.history().first?.reason == "Unregistered")
    }

    @Test("after a restart the provider token that is kept is sent: APNs punishes another one")
    func keptToken() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        for user in ["anna", "carl", "dora"] {
            if user != "anna" { try city.restartGateway() }
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
            let conversation = try city.converse([user, "bob"])
            try city.publish("Hello", to: conversation, from: "bob")
            eventually("nobody was woken") { city.history(user).first?.acceptedAt != nil }
        }
        let pushes = city.pushes
        #expect(pushes.count == 3 && Set(pushes.map(\.connection)).count == 3)
        #expect(pushes.allSatisfy { $0.lints == nil }, "\(pushes.compactMap(\.lints))")
    }

    @Test("this host's clock is hours off: the device is woken, by APNs' own time")
    func wrongClock() throws {
        for hours in [Int64(2), -2] {
            let city = try City(grace: 60_000)
            defer { city.stop() }
            city.setTrueTime(ahead: hours * 3_600_000)
            let session = try city.login("anna")
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
            let conversation = try city.converse(["anna", "bob"])
            try city.publish("Hello", to: conversation, from: "bob", urgency: .urgent)
            // A paused credential's push is due again after a minute.
            var waits = 0
            eventually("\(hours) hours: nobody was told") {
                waits += 1
                if waits % 400 == 0 { city.advance(milliseconds: 61_000) }
                return city.history("anna").contains { $0.acceptedAt != nil }
            }
            #expect(city.pushes.count { $0.status == 403 } == 1)
        }
    }

    @Test("another certificate while pushes flow: nothing is lost, old connections end in peace")
    func swappedCertificate() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        try city.useCertificate()
        let users = (0..<120).map { "user\($0)" }
        for user in users {
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        }
        let conversation = try city.converse(users + ["bob"])
        // A few at a time, each answered late, so that the change comes in the middle.
        city.slow(streams: 4, milliseconds: 50)
        try city.publish("Everybody!", to: conversation, from: "bob")
        eventually("nothing flows") { city.pushes.count >= 20 }
        try city.useCertificate()
        eventually("not everybody was woken") {
            Set(city.pushes.filter { $0.status == 200 }.compactMap(\.token)).count == 120
        }
        eventually("the answers were not written down") {
            users.allSatisfy { city.history($0).first?.acceptedAt != nil }
        }
        // Each once, and each at the first try: no stream was cut.
        #expect(city.pushes.count == 120)
        for user in users { #expect(city.history(user).count == 1) }
        let connections = Set(city.pushes.compactMap(\.connection))
        #expect(connections.count == 2, "\(connections)")
        let old = try #require(connections.min())
        eventually("the old connection stays") { city.isClosed(old) }
    }

    @Test("faults of APNs between a real store and the simulator: everybody is woken, once")
    func faults() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        let users = (0..<20).map { "user\($0)" }
        for user in users {
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        }
        let conversation = try city.converse(users + ["bob"])
        try city.publish("Everybody!", to: conversation, from: "bob")
        for _ in 0..<5 {
            shortly()
            city.goAway(unprocessed: 2)
        }
        eventually("not everybody was woken") {
            Set(city.pushes.filter { $0.status == 200 }.compactMap(\.token)).count == 20
        }
        eventually("the answers were not written down") {
            users.allSatisfy { city.history($0).first?.acceptedAt != nil }
        }
        for user in users { #expect(city.history(user).count == 1) }
    }
}

extension GatewayTests {
    @Test("the doctor finds in the simulator's answers what is wrong with a credential")
    func doctor() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        let now = SystemClock.wallMilliseconds()
        func bad(
            wall: UInt64 = SystemClock.wallMilliseconds(),
            _ change: (inout PushCredentialRecord) -> Void
        ) throws -> [String] {
            var credential = city.credential
            change(&credential)
            return try CredentialDoctor.examine(credential, wall: wall)
                .filter { !$0.isGood }.map(\.check)
        }
        #expect(try bad { _ in } == [])
        #expect(try bad { $0.keyID = "KEY0000002" } == ["key"])
        #expect(try bad { $0.team = "TEAM000002" } == ["key"])
        #expect(try bad { $0.privateKeyPEM = PrivateKey.generate(.p256).pem } == ["key"])
        #expect(try bad { $0.topics = "com.example.other" } == ["topic"])
        #expect(try bad(wall: now - 2 * 3_600_000) { _ in } == ["clock"])
        city.bindKey(to: .production)
        #expect(try bad { _ in } == ["endpoint"])
        // Nobody was pushed to.
        #expect(city.pushes.allSatisfy { $0.status != 200 })
    }
}

import EventLoop
import Feed
import Foundation
import Model
import StoreService
import SyncClient
import SyncServer
import Testing
import Wire

@testable import SyncService

/// Who gets in, over sockets.
@Suite struct AccessTests {
    /// What a peer came to, from its thread to the test's.
    private final class Peer: @unchecked Sendable {
        // @unchecked: written before the semaphore is signalled, read after.
        private let done = DispatchSemaphore(value: 0)
        private var result: (output: String, status: Int32) = ("not run", -1)

        init(_ service: Service, _ name: String) {
            Thread.detachNewThread {
                self.result = (try? service.runPeer(name, [])) ?? ("not started", -1)
                self.done.signal()
            }
        }

        func end() -> (output: String, status: Int32) {
            done.wait()
            return result
        }
    }

    @Test(
        "asked who it is, suspended, let in again, revoked: each on the open connection, at once",
        .enabled(if: PeerTests.hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func access() throws {
        let service = try Service()
        defer { service.stop() }
        let peer = Peer(service, "access.py")
        let user = UserID("anna")
        let steps: [Administration] = [
            .revokeSessions(Service.app, user, reauthenticate: true),
            .suspendUser(Service.app, user), .resumeUser(Service.app, user),
            .revokeSessions(Service.app, user, reauthenticate: false),
        ]
        for (number, step) in steps.enumerated() {
            let file = service.directory.appendingPathComponent("step-\(number)").path
            let end = ContinuousClock.now + .seconds(60)
            while !FileManager.default.fileExists(atPath: file), ContinuousClock.now < end {
                usleep(2_000)
            }
            #expect(try service.commit(.administer(step)).answer == .done)
            FileManager.default.createFile(atPath: file + "-done", contents: nil)
        }
        let (output, status) = peer.end()
        #expect(status == 0 && output.contains("revoked at once: ok"), "\(output)")
    }

    @Test(
        "ended while a request is on its way: told 2004, and not that another took its place",
        .enabled(if: PeerTests.hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func overtaken() throws {
        let service = try Service()
        defer { service.stop() }
        func file(_ name: String) -> String {
            service.directory.appendingPathComponent(name).path
        }
        func make(_ name: String) {
            _ = FileManager.default.createFile(atPath: file(name), contents: nil)
        }
        func until(_ what: Comment, _ isSo: () -> Bool) {
            let end = ContinuousClock.now + .seconds(60)
            while !isSo(), ContinuousClock.now < end { usleep(2_000) }
            #expect(isSo(), what)
        }
        let peer = Peer(service, "overtaken.py")
        until("logged in") { FileManager.default.fileExists(atPath: file("in")) }
        // The end of the session and then a request of it are in one transaction: the next after
        // one that the store makes by itself.
        make("hold-commits")
        until("the store is held") {
            FileManager.default.fileExists(atPath: file("hold-commits.on"))
        }
        let revoked = Latch()
        Thread.detachNewThread {
            let revoke = Administration.revokeSessions(
                Service.app, UserID("anna"), reauthenticate: false)
            let answer = Result { try service.commit(.administer(revoke)).answer }
            #expect((try? answer.get()) == .done, "\(answer)")
            revoked.arrive()
        }
        until("the end of the session waits") { service.store.waitingRequests == 1 }
        make("go")
        until("the request waits") { service.store.waitingRequests == 2 }
        // Both are told while the connection's loop looks elsewhere.
        let busy = Latch()
        service.sync.threads[0].perform { _ in busy.wait() }
        try FileManager.default.removeItem(atPath: file("hold-commits"))
        #expect(revoked.wait(seconds: 60))
        _ = try service.commit(.keepAlive)
        busy.arrive()
        let (output, status) = peer.end()
        #expect(status == 0 && output.contains("CLOSE 2004"), "\(output)")
    }

    @Test(
        "too many connections, too many mutations: closed before TLS, and told 1002",
        .enabled(if: PeerTests.hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func rates() throws {
        let service = try Service { configuration in
            configuration.rates.exemptsLoopback = false
            configuration.rates.addressConnections = RateLimit(perSecond: 1, burst: 4)
            configuration.rates.userMutations = RateLimit(perSecond: 1, burst: 2)
            configuration.rates.userReads = RateLimit(perSecond: 1, burst: 12)
        }
        defer { service.stop() }
        let (output, status) = try service.runPeer("rates.py", [])
        #expect(status == 0 && output.contains("of a HELLO told to wait: ok"), "\(output)")
    }

    @Test("mutations of a HELLO are those of who was let in, not of who named a device")
    func whoseMutations() {
        var rates = DeviceRates()
        rates.userMutations = RateLimit(perSecond: 1, burst: 10)
        rates.appRequests = RateLimit(perSecond: 1, burst: 100)
        let gates = RateGates(rates)
        let app = AppID("chess")
        let (now, device) = (Instant(milliseconds: 5), DeviceID(high: 1, low: 1))
        let large = Mutation(
            number: 1,
            operation: .createConversation(
                CreateConversation(participants: (0..<99).map { "u\($0)" })))
        func hello(_ mutations: [Mutation]) -> StoreRequest {
            .openSession(
                OpenSession(
                    app: app, device: device, role: .app, credential: .sessionToken(hash: [1]),
                    newTokenHash: [2], freshEpochHalf: 1, boot: BootID(high: 1, low: 1),
                    sync: SyncFrame(mutations: mutations)))
        }
        func session(_ user: String) -> SessionKey {
            SessionKey(
                app: app, user: UserID(user), device: device, role: .app, generation: 1)
        }
        // Whoever is let in owes; a HELLO alone takes one of the app's, and nothing of a user's.
        for _ in 0..<9 { #expect(gates.wait(hello([large]), now: now) == nil) }
        gates.opened(session("anna"), [large], now: now)
        #expect(gates.wait(hello([large]), now: now) == 60_000)
        #expect(gates.wait(hello([]), now: now) == nil)
        // Another user who has logged in on the device owes nothing.
        gates.opened(session("ben"), [], now: now)
        #expect(gates.wait(hello([large]), now: now) == nil)
        // What one request costs its user is not the app's to bear.
        let mutate = Mutate(session: session("carl"), mutation: large)
        #expect(gates.wait(.mutate(mutate), now: now) == nil)
        for _ in 0..<80 { #expect(gates.wait(hello([]), now: now) == nil) }
        // What the app's rate refuses is not taken of the user.
        for _ in 0..<9 { _ = gates.wait(hello([]), now: now) }
        let small = Mutation(number: 2, operation: .sendMessage(SendMessage()))
        let dora = StoreRequest.mutate(Mutate(session: session("dora"), mutation: small))
        for _ in 0..<50 { #expect(gates.wait(dora, now: now) == 1_000) }
        gates.rates.appRequests = .none
        for _ in 0..<10 { #expect(gates.wait(dora, now: now) == nil) }
        #expect(gates.wait(dora, now: now) == 1_000)
    }

    @Test("who changes the members of large conversations has fewer mutations")
    func costs() {
        func cost(_ operation: Mutation.Operation) -> UInt64 {
            Mutation(number: 1, operation: operation).cost
        }
        func names(_ count: Int) -> [String] { (0..<count).map { "u\($0)" } }
        #expect(cost(.createConversation(CreateConversation(participants: names(9)))) == 1)
        #expect(cost(.createConversation(CreateConversation(participants: names(255)))) == 651)
        #expect(cost(.addParticipants(AddParticipants(users: names(1)))) == 3)
        #expect(cost(.removeParticipants(RemoveParticipants(users: names(100)))) == 257)
        #expect(cost(.sendMessage(SendMessage())) == 1)
        #expect(cost(.addParticipants(AddParticipants(users: names(8_000)))) == 656)
        let many = (1...3).map { Mutation(number: $0, operation: .sendMessage(SendMessage())) }
        #expect(many.cost == 3)
    }

    @Test(
        "without TLS all is as with it",
        .enabled(if: PeerTests.hasPeer, "python3-protobuf or python3-jwt is not installed"))
    func plain() throws {
        let service = try Service { configuration in
            configuration.plain = PlainListener(host: "127.0.0.1", port: 0)
        }
        defer { service.stop() }
        let port = try #require(service.sync.plainPort)
        #expect(port != service.sync.port)
        let (output, status) = try service.runPeer("client.py", ["--plain"], port: port)
        #expect(status == 0 && output.contains("came back: ok"), "\(output)")
    }

    @Test("addresses of this machine and of private networks are told from others")
    func addresses() throws {
        for text in [
            "127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "172.31.255.1",
            "192.168.0.9", "169.254.1.1", "fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1",
        ] {
            #expect(try #require(PeerAddress(text)).isTrusted, "\(text)")
        }
        for text in [
            "8.8.8.8", "172.32.0.1", "192.169.0.1", "11.0.0.1", "2001:db8::1", "::", "::2",
        ] {
            #expect(try !#require(PeerAddress(text)).isTrusted, "\(text)")
        }
        for text in ["", "localhost", "1.2.3", "1.2.3.4.5", "0x7f.1"] {
            #expect(PeerAddress(text) == nil, "\(text)")
        }
        #expect(try !#require(PeerAddress("10.0.0.1")).isLoopback)
        #expect(try #require(PeerAddress("::1")).isLoopback)
    }
}

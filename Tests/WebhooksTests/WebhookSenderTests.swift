import EventLoop
import Glibc
import Model
import StoreService
import Telemetry
import Testing

@testable import Feed
@testable import Webhooks

/// The sender beside a store that these tests make up.
@Suite struct WebhookSenderTests {
    private static let app = AppID("shop")

    /// To an address that is no receiver's: the attempt fails before anything is sent.
    private func job(_ claim: UInt64, url: String = "http://10.0.0.1/") -> DeliveryJob {
        DeliveryJob(
            key: WebhookKey(app: Self.app, webhook: WebhookID(high: 0, low: claim)), claim: claim,
            delivery: DeliveryID(high: 0, low: claim), attempt: 1, url: url, secrets: ["s"],
            dropped: 0, events: [])
    }

    private func start(_ script: Script, openMax: Int = 2) throws -> LoopThread {
        var configuration = WebhooksConfiguration(
            addresses: try #require(AddressPolicy(allowing: "127.0.0.0/8")))
        configuration.openMax = openMax
        configuration.tick = 20
        configuration.countInterval = 20
        configuration.stopDeadline = 200
        let parts = SenderParts(
            boot: BootID(high: 0, low: 9), configuration: configuration, render: { _ in [] },
            log: Log(level: .error, descriptor: -1), metrics: WebhookMetrics(Metrics()),
            wall: { script.readWall() },
            makeQueue: { loop in
                script.loop = loop
                return script
            })
        return try LoopThread.start(name: "sender") { loop in
            script.sender = try WebhookSender(loop: loop, parts: parts)
        }
    }

    private func end(_ thread: LoopThread, _ script: Script) {
        let ended = Latch()
        thread.perform { _ in script.sender?.stop { ended.arrive() } }
        #expect(ended.wait(seconds: 20))
        thread.stop()
        thread.join()
        script.sender = nil
    }

    @Test("an answer that the store cannot take is written again, and keeps its place until then")
    func finishAgain() throws {
        let (script, done) = (Script(), Latch())
        script.jobs = [job(1)]
        script.failing = 2
        script.claimed = { request in
            if script.finishes.count == 3, request.underWay.isEmpty { done.arrive() }
        }
        let thread = try start(script)
        #expect(done.wait(seconds: 20))
        end(thread, script)
        #expect(script.finishes.map(\.claim) == [1, 1, 1])
        #expect(script.finishes.allSatisfy { $0.answer == script.finishes[0].answer })
        // Not as often as the store is looked at.
        let times = script.times
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 1_000 })
        let (first, next) = (script.claims[0], script.claims[1])
        #expect(first.underWay.isEmpty && first.ids.count == 2)
        #expect(next.underWay == [Self.app: 1] && next.ids.count == 1)
        #expect(script.claims.last?.ids.count == 2)
    }

    @Test("no claim is for more than eight, and none is made while as many as may be are under way")
    func claimsAreBounded() throws {
        let (script, done) = (Script(), Latch())
        let (listener, port) = try Self.silence()
        defer { close(listener) }
        script.jobs = (1...12).map { job($0, url: "http://127.0.0.1:\(port)/") }
        script.counted = { if script.counts == 40 { done.arrive() } }
        let thread = try start(script, openMax: 10)
        #expect(done.wait(seconds: 20))
        end(thread, script)
        #expect(script.claims.map(\.ids.count) == [8, 2])
        #expect(Set(script.claims.flatMap(\.ids)).count == 10)
    }

    @Test("who stops waits for answers, for a while, and asks for nothing more")
    func stopping() throws {
        let (script, sent) = (Script(), Latch())
        let (listener, port) = try Self.silence()
        defer { close(listener) }
        script.jobs = [job(1, url: "http://127.0.0.1:\(port)/")]
        script.claimed = { if !$0.underWay.isEmpty { sent.arrive() } }
        let thread = try start(script)
        #expect(sent.wait(seconds: 20))
        let (claims, ended) = (Counted(), Latch())
        thread.perform { _ in
            script.sender?.stop { ended.arrive() }
            claims.count = script.claims.count
        }
        #expect(ended.wait(seconds: 20))
        thread.stop()
        thread.join()
        script.sender = nil
        #expect(script.claims.count == claims.count)
        // It is as it was for who takes over when the lease ends.
        #expect(script.finishes.isEmpty)
    }

    @Test("what a claim brings that was under way at the stop goes back unsent")
    func stoppingBesideAClaim() throws {
        let (script, asked) = (Script(), Latch())
        script.jobs = [job(1)]
        script.holdsClaims = true
        script.claimed = { _ in asked.arrive() }
        let thread = try start(script)
        #expect(asked.wait(seconds: 20))
        let ended = Latch()
        thread.perform { _ in
            script.sender?.stop { ended.arrive() }
            script.release()
        }
        #expect(ended.wait(seconds: 20))
        thread.stop()
        thread.join()
        script.sender = nil
        #expect(script.finishes.map(\.answer) == [.notSent])
    }

    @Test("a store in which nothing is written is asked again when something is due, or rung for")
    func idle() throws {
        let (script, quiet, due, written) = (Script(), Latch(), Latch(), Latch())
        script.nextDue = Timestamp(milliseconds: script.wall + 500)
        script.walled = { if script.walls == 60 { quiet.arrive() } }
        script.claimed = { _ in
            if script.claims.count == 2 { due.arrive() }
            if script.claims.count == 3 { written.arrive() }
        }
        let thread = try start(script)
        #expect(quiet.wait(seconds: 20))
        let counts = Counted()
        thread.perform { _ in
            counts.count = script.claims.count
            script.wall += 500
            script.nextDue = nil
        }
        #expect(due.wait(seconds: 20))
        thread.perform { _ in
            script.changes = 2
            script.sender?.ring()
        }
        #expect(written.wait(seconds: 20))
        #expect(counts.count == 1)
        end(thread, script)
    }

    /// A receiver that takes connections and never answers.
    private static func silence() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }
}

private final class Counted: @unchecked Sendable {
    // @unchecked: written on the loop, read behind a latch.
    var count = 0
}

/// Answers on a later turn of the loop, as the store does, and remembers what it was asked.
private final class Script: DeliveryQueue, @unchecked Sendable {
    // @unchecked: touched on the loop's thread while there is one, before and after by the test.
    var loop: Loop?
    var sender: WebhookSender?
    var changes: UInt64? = 1
    var jobs: [DeliveryJob] = []
    var nextDue: Timestamp?
    /// The first answers that cannot be written.
    var failing = 0
    var holdsClaims = false
    private var held: (() -> Void)?
    var claimed: (ClaimDeliveries) -> Void = { _ in }
    var walled: () -> Void = {}
    var counted: () -> Void = {}
    private(set) var claims: [ClaimDeliveries] = []
    private(set) var finishes: [FinishDelivery] = []
    private(set) var times: [UInt64] = []
    var wall: UInt64 = 1_800_000_000_000
    private(set) var walls = 0
    private(set) var counts = 0

    func readWall() -> UInt64 {
        walls += 1
        walled()
        return wall
    }

    func claim(
        _ request: ClaimDeliveries,
        reply: @escaping (Result<ClaimedDeliveries, StoreError>) -> Void
    ) {
        claims.append(request)
        let given = Array(jobs.prefix(request.ids.count))
        jobs.removeFirst(given.count)
        let answer = ClaimedDeliveries(jobs: given, more: !jobs.isEmpty, nextDue: nextDue)
        held = { reply(.success(answer)) }
        if !holdsClaims { loop?.nextTurn { self.release() } }
        claimed(request)
    }

    func release() {
        let reply = held
        held = nil
        reply?()
    }

    func finish(
        _ request: FinishDelivery,
        reply: @escaping (Result<DeliveryEffect?, StoreError>) -> Void
    ) {
        finishes.append(request)
        times.append(UInt64(loop?.now ?? 0))
        let isTaken = finishes.count > failing
        loop?.nextTurn { reply(isTaken ? .success(.taken) : .failure(.conflict("busy"))) }
    }

    func count(reply: @escaping (Result<WebhookBacklog, StoreError>) -> Void) {
        counts += 1
        counted()
        loop?.nextTurn { reply(.success(WebhookBacklog(events: 1, oldest: nil, deactivated: 0))) }
    }
}

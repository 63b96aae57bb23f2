import EventLoop
import Failpoints
import Foundation
import Testing

@testable import Scenario

/// Kills the server at every named point, one story each, and holds the promises to account.
@Suite(.serialized) struct FailpointTests {
    /// Stories at a time: they mostly wait for timers.
    private static let workers = 20

    struct Outcome: Sendable {
        let point: String
        let seconds: Double
        let hasDied: Bool
        let problem: String?
    }

    @Test("a server killed at any durable step keeps every promise")
    func everyPoint() throws {
        let world = try World()
        defer { world.clear() }
        let points = Self.points()
        let outcomes = Self.play(points, in: world)
        #expect(outcomes.count == points.count)
        for outcome in outcomes {
            #expect(outcome.hasDied, "\(outcome.point) was never come by")
            #expect(outcome.problem == nil, "\(outcome.point): \(outcome.problem ?? "")")
        }
        let slowest = outcomes.max { $0.seconds < $1.seconds }
        print(
            "\(points.count) failpoints, \(outcomes.count { $0.hasDied }) kills, slowest "
                + "\(slowest?.point ?? "") \(Int(slowest?.seconds ?? 0)) s")
    }

    @Test("a name that does not exist is an error at the start")
    func unknownName() throws {
        let world = try World()
        defer { world.clear() }
        let server = try world.makeServer("unknown")
        #expect(throws: (any Error).self) {
            try server.start(settings: [Failpoint.variable: "committed.nothing"])
        }
        #expect(server.lastLogLines().contains("there is no failpoint `committed.nothing`"))
        #expect(!server.wasKilled)
    }

    /// All; under the thread sanitizer, where a story takes a minute of processor time, another
    /// eighth each time.
    private static func points() -> [Failpoint] {
        let environment = ProcessInfo.processInfo.environment
        if let only = environment["FAILPOINTS_ONLY"]?.split(separator: ",") {
            return Failpoint.all.filter { point in only.contains { point.name.contains($0) } }
        }
        guard environment["TSAN_OPTIONS"] != nil else { return Failpoint.all }
        let first = Int.random(in: 0..<8)
        let points = Failpoint.all.enumerated().filter { $0.offset % 8 == first }.map(\.element)
        print("the thread sanitizer: each eighth failpoint from number \(first) on")
        return points
    }

    private static func play(_ points: [Failpoint], in world: World) -> [Outcome] {
        let lock = Lock()
        // Then no further story begins; what has begun ends by its own patience.
        let limit = Date().addingTimeInterval(900)
        nonisolated(unsafe) var next = 0
        nonisolated(unsafe) var outcomes: [Outcome] = []
        let ended = Latch(count: min(workers, points.count))
        for _ in 0..<min(workers, points.count) {
            let thread = Thread {
                while true {
                    let taken = lock.withLock { () -> Int? in
                        guard next < points.count, Date() < limit else { return nil }
                        next += 1
                        return next - 1
                    }
                    guard let taken else { break }
                    let outcome = play(points[taken], number: taken, in: world)
                    lock.withLock { outcomes.append(outcome) }
                }
                ended.arrive()
            }
            thread.stackSize = 4 << 20
            thread.start()
        }
        ended.wait()
        return lock.withLock { outcomes }
    }

    private static func play(_ point: Failpoint, number: Int, in world: World) -> Outcome {
        let began = Date()
        var hasDied = false
        var problem: String?
        do {
            let story = try Story(world, name: "s\(number)", point: point)
            defer {
                hasDied = story.hasDied
                story.end()
            }
            do {
                try story.play()
            } catch {
                problem = "\(error)\n\(story.server.lastLogLines(12))"
            }
        } catch {
            problem = "\(error)"
        }
        let seconds = Date().timeIntervalSince(began)
        if ProcessInfo.processInfo.environment["FAILPOINTS_VERBOSE"] != nil {
            print(point.name, seconds, hasDied, problem ?? "")
        }
        return Outcome(
            point: point.name, seconds: seconds, hasDied: hasDied, problem: problem)
    }
}

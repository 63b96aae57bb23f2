import Foundation
import Model
import Testing
import Wake

/// The diagrams of a device and of its wake in Protocol/diagrams are what the code does: nothing
/// else, and nothing less.
@Suite struct DiagramTests {
    struct Edge: Hashable, Comparable, CustomStringConvertible {
        var from: String
        var to: String
        var event: String

        var description: String { "\(from) -> \(to): \(event)" }

        static func < (left: Edge, right: Edge) -> Bool { left.description < right.description }
    }

    private static func drawn(_ diagram: String) throws -> [Edge] {
        struct Drawn: Decodable {
            struct Diagram: Decodable {
                let name: String
                let edges: [Arrow]
            }
            struct Arrow: Decodable {
                let from: String
                let to: String
                let events: [String]
            }
            let diagrams: [Diagram]
        }
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let file = root.appendingPathComponent("Protocol/diagrams/states.json")
        let drawn = try JSONDecoder().decode(Drawn.self, from: Data(contentsOf: file))
        let found = try #require(drawn.diagrams.first { $0.name == diagram })
        return found.edges.flatMap { arrow in
            arrow.events.map { Edge(from: arrow.from, to: arrow.to, event: $0) }
        }.sorted()
    }

    /// Every state of the transition table, with and without a session, meets every event.
    private static func walk(_ state: (Reachability) -> String) -> [Edge] {
        var machines = states.map(\.machine)
        machines += machines.map { machine in
            var online = machine
            online.isSessionCounted = true
            return online
        }
        let session: [(name: String, happen: @Sendable (inout Reachability) -> [WakeAction])] = [
            (
                "session counts",
                {
                    $0.isSessionCounted = true
                    return []
                }
            ),
            (
                "session is gone",
                {
                    $0.isSessionCounted = false
                    return []
                }
            ),
        ]
        var found: Set<Edge> = []
        for machine in machines {
            for (name, happen) in events + session {
                var after = machine
                _ = happen(&after)
                guard state(machine) != state(after) else { continue }
                found.insert(Edge(from: state(machine), to: state(after), event: name))
            }
        }
        return found.sorted()
    }

    @Test("reachability: each state of a device with each event")
    func reachability() throws {
        let found = Self.walk { "\($0.state)" }
        #expect(found == (try Self.drawn("reachability")), "\(found)")
    }

    @Test("wake: each phase of a wake with each event")
    func wake() throws {
        let found = Self.walk { "\($0.row.phase)" }
        #expect(found == (try Self.drawn("wake")), "\(found)")
    }
}

import AppLife
import Foundation
import Model
import Testing
import Wire

/// Each state of an app, and each thing that may come: the table "State by state" in
/// Protocol/push.md, whose rows are carried out.
@Suite struct AppTableTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let state: String
        let input: String
        let does: String

        var testDescription: String { "\(state): \(input)" }
    }

    /// What happened until the app is so.
    static let states: [(name: String, make: @Sendable (inout System) -> Void)] = [
        ("just started", { $0.give(.launched) }),
        (
            "locked",
            {
                $0.isUnlocked = false
                $0.give(.launched)
            }
        ),
        ("in front", { $0.give(.launched, .becameActive, .synced) }),
        (
            "in front, the conversation open",
            { $0.give(.launched, .becameActive, .onScreen(.conversation(System.room)), .synced) }
        ),
        ("covered", { $0.give(.launched, .becameActive, .synced, .resignedActive) }),
        (
            "active in the background",
            {
                $0.give(
                    .launched, .becameActive, .synced, .enteredBackground(until: $0.now + 60_000))
            }
        ),
        (
            "suspended",
            {
                $0.give(
                    .launched, .becameActive, .synced, .enteredBackground(until: $0.now + 5_000))
                $0.give(.willSuspend)
            }
        ),
        (
            "woken",
            {
                $0.give(.launched)
                $0.push(1)
            }
        ),
        (
            "woken, its own work goes on",
            {
                $0.give(.launched)
                $0.push(1)
                $0.give(.workBegan)
            }
        ),
    ]

    static let inputs: [(name: String, give: @Sendable (inout System) -> Void)] = [
        ("a push", { $0.push(2) }),
        (
            "background refresh",
            { $0.give(.refreshTask(SystemTask(id: 2, deadline: $0.now + 30_000))) }
        ),
        ("opened", { $0.give(.becameActive) }),
        ("covered", { $0.give(.resignedActive) }),
        ("left", { $0.give(.enteredBackground(until: $0.now + 5_000)) }),
        ("its time is over", { $0.give(.willSuspend) }),
        (
            "unlocked",
            {
                $0.isUnlocked = true
                $0.give(.unlocked)
            }
        ),
        ("a message", { $0.apply(2) }),
        (
            "a message of a muted conversation",
            {
                $0.standings[2] = .muted
                $0.owed = [2]
                $0.give(.applied)
            }
        ),
        (
            "an edit of what stands",
            {
                ($0.screen, $0.edited) = ([2], [2])
                $0.apply(2)
            }
        ),
        (
            "read elsewhere",
            {
                ($0.screen, $0.standings[2]) = ([2], .over)
                $0.give(.unread(0), .applied)
            }
        ),
        ("in sync", { $0.give(.synced) }),
        ("the server tells of more", { $0.give(.syncRequested) }),
        ("the connection is lost", { $0.give(.disconnected) }),
        ("logged out", { $0.give(.gaveUp) }),
        (
            "the store fails",
            {
                $0.storeFails = true
                $0.give(.applied)
            }
        ),
        (
            "the deadline",
            {
                $0.pass(29_000)
                $0.give(.deadlineReached)
            }
        ),
        ("its own work ends", { $0.give(.workEnded(isNew: true)) }),
    ]

    /// What the app does, by the code.
    static func does(_ state: String, _ input: String) -> String? {
        guard let made = states.first(where: { $0.name == state }),
            let given = inputs.first(where: { $0.name == input })
        else { return nil }
        var system = System()
        made.make(&system)
        _ = system.take()
        given.give(&system)
        let words = system.take()
        return words.isEmpty ? "nothing" : words.joined(separator: ", ")
    }

    static let rows: [Row] = {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let page = try? String(
            contentsOf: root.appendingPathComponent("Protocol/push.md"), encoding: .utf8)
        let part = page?.components(separatedBy: "### State by state").last ?? ""
        return part.split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard line.hasPrefix("| "), cells.count == 3, cells[0] != "the app" else { return nil }
            return Row(state: cells[0], input: cells[1], does: cells[2])
        }
    }()

    @Test("the app does what its row says", arguments: rows)
    func rowByRow(_ row: Row) {
        #expect(Self.does(row.state, row.input) == row.does)
    }

    @Test("each state and input has one row") func theTableIsWhole() {
        let wanted = Self.states.flatMap { state in
            Self.inputs.map { "\(state.name): \($0.name)" }
        }
        let has = Self.rows.map(\.testDescription)
        #expect(has == wanted)
        guard ProcessInfo.processInfo.environment["ROUSE_TABLE"] != nil else { return }
        for state in Self.states {
            for input in Self.inputs {
                let does = Self.does(state.name, input.name) ?? ""
                print("| \(state.name) | \(input.name) | \(does) |")
            }
        }
    }
}

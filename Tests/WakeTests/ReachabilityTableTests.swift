import Testing

/// The transition table of one device, state by state. Below a state's own line stand the events
/// that change it or ask for something: all others leave it as it is and ask for nothing.
///
/// A line reads: state, phase of the wake, push in flight, when the next push is due and when
/// something happens without one, in seconds from the event. After `|`: what is to be done.
private let table = """
    fresh: wakeable none - due - deadline -
        urgent: same | queue-urgent
        useful: wakeable due - due +0 deadline -
        changed: wakeable due - due +0 deadline -
        session gone behind: wakeable due - due +0 deadline -
        token gone: tokenless none - due - deadline - | drop-alerts
    due: wakeable due - due -100 deadline -
        urgent: same | queue-urgent
        claimed behind: wakeable sending silent due - deadline +60 | sent send-silent
        claimed not behind: wakeable none - due - deadline -
        applied all: wakeable none - due - deadline -
        synced: wakeable none - due - deadline -
        token gone: tokenless none - due - deadline - | drop-alerts
    sending: wakeable sending silent due - deadline -40
        urgent: same | queue-urgent
        accepted: waking waiting - due - deadline +60 | accepted
        dead token: tokenless none - due - deadline - | refused-410 =rejected detach =superseded drop-alerts
        retry later: wakeable due - due +5 deadline - | refused-503
        our bug: wakeable none - due - deadline - | refused-400 =rejected alert-pending
        unanswered: wakeable due - due +5 deadline -
        not sent: wakeable due - due +1 deadline -
        lease ended: wakeable due - due +5 deadline -
        hello: same | connected
        applied all: same | synced =synced
        synced: same | synced =synced
        token gone: tokenless none silent due - deadline -40 | =superseded drop-alerts
        token new: wakeable due silent due - deadline -40 | =superseded
    waiting: waking waiting - due - deadline -40
        urgent: same | queue-urgent
        grace ended behind: unreachable none - due - deadline - | =no-show demoted alert-pending
        grace ended not behind: wakeable none - due - deadline - | =superseded
        hello: waking waiting - due - deadline +30 | connected
        applied some: waking waiting - due - deadline +30 | connected
        applied all: wakeable none - due - deadline - | synced =synced
        synced: wakeable none - due - deadline - | synced =synced
        service away: wakeable due - due +0 deadline - | =expired
        token gone: tokenless none - due - deadline - | =superseded drop-alerts
        token new: wakeable due - due +0 deadline - | =superseded
    connected: waking waiting - due - deadline -65
        urgent: same | queue-urgent
        grace ended behind: wakeable none - due - deadline - | =connected-not-synced alert-pending
        grace ended not behind: wakeable none - due - deadline - | =superseded
        applied all: wakeable none - due - deadline - | synced =synced
        synced: wakeable none - due - deadline - | synced =synced
        service away: wakeable due - due +0 deadline - | =expired
        token gone: tokenless none - due - deadline - | =superseded drop-alerts
        token new: wakeable due - due +0 deadline - | =superseded
    unreachable: unreachable none - due - deadline -
        urgent: same | queue-urgent
        useful: unreachable due - due +86300 deadline -
        changed: same | queue-alert
        synced: wakeable none - due - deadline - | recovered
        session gone behind: unreachable due - due +0 deadline -
        token gone: tokenless none - due - deadline - | drop-alerts
        token new: wakeable none - due - deadline -
    alert sending: unreachable none alert due - deadline -40
        urgent: same | queue-urgent
        useful: unreachable due alert due - deadline -40
        changed: same | queue-alert
        accepted: unreachable none - due - deadline - | accepted =accepted settle-sent
        dead token: tokenless none - due - deadline - | refused-410 =rejected detach drop-alerts
        retry later: unreachable none - due - deadline - | refused-503 settle-queuedAgain
        our bug: unreachable none - due - deadline - | refused-400 =rejected settle-refused
        unanswered: unreachable none - due - deadline - | settle-unanswered
        not sent: unreachable none - due - deadline - | settle-queuedAgain
        lease ended: unreachable none - due - deadline - | settle-lost
        synced: wakeable none alert due - deadline -40 | recovered
        session gone behind: unreachable due alert due - deadline -40
        token gone: tokenless none alert due - deadline -40 | drop-alerts
        token new: wakeable none alert due - deadline -40
    alerted: unreachable none - due - deadline -
        urgent: same | queue-urgent
        useful: unreachable due - due +86300 deadline -
        changed: same | queue-alert
        synced: wakeable none - due - deadline - | recovered
        session gone behind: unreachable due - due +0 deadline -
        session gone synced: unreachable none - due +1 deadline -
        token gone: tokenless none - due - deadline - | drop-alerts
        token new: wakeable none - due - deadline -
        read elsewhere: unreachable none - due +1 deadline -
    tokenless: tokenless none - due - deadline -
        token gone: same | drop-alerts
        token new: wakeable none - due - deadline -
    online: online waiting - due - deadline -40
        urgent: same | queue-urgent+2
        grace ended behind: online none - due - deadline - | =connected-not-synced alert-pending
        grace ended not behind: online none - due - deadline - | =superseded
        hello: online waiting - due - deadline +30 | connected
        applied some: online waiting - due - deadline +30 | connected
        applied all: online none - due - deadline - | synced =synced
        synced: online none - due - deadline - | synced =synced
        service away: online due - due +0 deadline - | =expired
        token gone: online none - due - deadline - | =superseded drop-alerts
        token new: online due - due +0 deadline - | =superseded
    refresh off: wakeable none - due - deadline -
        urgent: same | queue-urgent
        changed: same | queue-alert
        session gone behind: wakeable due - due +0 deadline -
        token gone: tokenless none - due - deadline - | drop-alerts
    """

@Suite struct ReachabilityTableTests {
    private struct Cell: Equatable {
        var line: String
        var actions: String
    }

    private var expected: (states: [String: String], cells: [String: Cell]) {
        var found: [String: String] = [:]
        var cells: [String: Cell] = [:]
        var state = ""
        for row in table.split(separator: "\n") {
            let colon = row.firstIndex(of: ":") ?? row.endIndex
            let name = String(row[..<colon].drop { $0 == " " })
            let rest = String(row[colon...].dropFirst(2))
            if !row.hasPrefix(" ") {
                state = name
                found[state] = rest
                continue
            }
            let halves = rest.split(separator: "|", maxSplits: 1).map {
                $0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            }
            let line = halves.first.map { String($0) } ?? ""
            cells["\(state): \(name)"] = Cell(
                line: line == "same" ? found[state] ?? "" : line,
                actions: halves.count > 1 ? String(halves[1]) : "")
        }
        return (found, cells)
    }

    @Test func everyStateMeetsEveryEvent() {
        let (lines, cells) = expected
        #expect(lines.count == states.count)
        var met: Set<String> = []
        for (state, machine) in states {
            #expect(machine.line == lines[state], "\(state)")
            for (event, happen) in events {
                var after = machine
                let actions = happen(&after).map(\.word).joined(separator: " ")
                let key = "\(state): \(event)"
                met.insert(key)
                let cell = cells[key] ?? Cell(line: lines[state] ?? "", actions: "")
                #expect(after.line == cell.line, "\(key)")
                #expect(actions == cell.actions, "\(key)")
            }
        }
        #expect(Set(cells.keys).subtracting(met).isEmpty)
    }
}

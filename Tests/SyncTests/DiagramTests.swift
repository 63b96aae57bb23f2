import Feed
import Foundation
import Model
import Testing
import Wire

@testable import SyncClient
@testable import SyncServer

/// An arrow of a diagram, for one of the events that lead along it.
struct DiagramEdge: Hashable, Comparable, CustomStringConvertible {
    var from: String
    var to: String
    var event: String

    var description: String { "\(from) -> \(to): \(event)" }

    static func < (left: DiagramEdge, right: DiagramEdge) -> Bool {
        left.description < right.description
    }

    /// The arrows of a diagram in Protocol/diagrams/states.json.
    static func drawn(_ diagram: String) throws -> [DiagramEdge] {
        struct Drawn: Decodable {
            struct Diagram: Decodable {
                let name: String
                let edges: [Edge]
            }
            struct Edge: Decodable {
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
        return found.edges.flatMap { edge in
            edge.events.map { DiagramEdge(from: edge.from, to: edge.to, event: $0) }
        }.sorted()
    }

    /// Every state meets every event: the arrows are the changes.
    static func walk<Machine>(
        _ machines: [Machine], _ events: [(name: String, happen: (inout Machine) -> Void)],
        state: (Machine) -> String
    ) -> [DiagramEdge] {
        var found: Set<DiagramEdge> = []
        for machine in machines {
            for (name, happen) in events {
                var after = machine
                happen(&after)
                guard state(machine) != state(after) else { continue }
                found.insert(
                    DiagramEdge(from: state(machine), to: state(after), event: name))
            }
        }
        return found.sorted()
    }
}

/// The diagrams in Protocol/diagrams are what the code does: nothing else, and nothing less.
@Suite struct DiagramTests {
    private typealias DeskEvent = (name: String, happen: (inout Desk) -> Void)
    private typealias PhoneEvent = (name: String, happen: (inout Phone) -> Void)

    private static let wall = Timestamp(milliseconds: 4_000_000)

    // MARK: - The connection, on the server

    private static func connection(_ desk: Desk) -> String {
        switch desk.session.phase {
        case .awaitingHello: "awaiting HELLO"
        case .challenged: "challenged"
        case .verifying: "verifying"
        case .opening: "opening"
        case .open: "open"
        case .ended: "ended"
        }
    }

    private static func frames() -> [DeskEvent] {
        FrameType.allCases.compactMap { type in
            StateTableTests.bodies[type].map { body in
                (type.name, { desk in desk.receive(body, request: 9) })
            }
        }
    }

    @Test("connection: each phase with each frame and each answer")
    func connection() throws {
        let desks = StateTableTests.State.allCases.map(\.desk)
        let expected = Dictionary(
            StateTableTests.State.allCases.map {
                (Self.connection($0.desk), Set((StateTableTests.table[$0] ?? [:]).keys.map(\.name)))
            }, uniquingKeysWith: { $0.union($1) })
        let others: [DeskEvent] = [
            (
                "HELLO without a session token",
                { desk in
                    guard Self.connection(desk) == "awaiting HELLO" else { return }
                    desk.receive(.hello(Desk.hello(token: [])))
                }
            ),
            (
                "token is good",
                { desk in
                    let tag = desk.tag
                    desk.run {
                        $0.identityVerified(tag, LoginTests.claims(), now: $1, wall: Self.wall)
                    }
                }
            ),
            (
                "token is refused",
                { desk in
                    let tag = desk.tag
                    desk.run { $0.identityRefused(tag, .expired, now: $1) }
                }
            ),
            (
                "third token is refused",
                { desk in
                    guard Self.connection(desk) == "verifying" else { return }
                    for _ in 0..<3 {
                        let tag = desk.tag
                        desk.run { $0.identityRefused(tag, .expired, now: $1) }
                        desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
                    }
                }
            ),
            ("let in", { $0.answer(Desk.opened(Desk.position(head: 10, applied: 10))) }),
            ("session token is not good", { $0.answer(.refused(.expired, detail: "")) }),
            ("user is refused", { $0.answer(.refused(.suspended, detail: "")) }),
            (
                "store fails",
                { desk in
                    let tag = desk.tag
                    desk.run { $0.storeFailed(tag, .full(""), now: $1) }
                }
            ),
            ("time is up", { $0.pass(400_000) }),
            ("no frame", { $0.run { $0.decodingFailed(.malformed, now: $1) } }),
            (
                "revoked, suspended or superseded",
                { desk in
                    // Only who is in is known by name.
                    guard desk.session.phase == .open else { return }
                    desk.run { $0.ended(.revoked, now: $1) }
                }
            ),
            (
                "drain is over",
                { desk in
                    desk.run { $0.drain(deadline: 1_000, slot: 0, now: $1) }
                    desk.pass(1_000)
                }
            ),
            ("socket is gone", { $0.run { $0.closed(now: $1) } }),
        ]
        let found = DiagramEdge.walk(desks, Self.frames() + others, state: Self.connection)
        // Whatever does not belong ends it, and is drawn as one arrow.
        let named = Set(
            found.map { edge in
                let isFrame = FrameType.allCases.contains { $0.name == edge.event }
                guard isFrame, expected[edge.from]?.contains(edge.event) != true else {
                    return edge
                }
                return DiagramEdge(from: edge.from, to: edge.to, event: "any other frame")
            }
        ).sorted()
        #expect(named == (try DiagramEdge.drawn("connection")), "\(named)")
    }

    // MARK: - The open session, on the server

    private static func session(_ desk: Desk) -> String {
        let session = desk.session
        guard session.phase == .open else { return "ended" }
        if session.reauthentication != nil { return "asked anew" }
        return switch session.mode {
        case .live: "live"
        case .hint: "hint"
        case .dormant: "dormant"
        }
    }

    @Test("session: how an open session is told of changes, and how it ends")
    func session() throws {
        let background = AppState(phase: .background, remainingMs: 25_000)
        let desks = [
            Desk.open(), Desk.open(state: background), Desk.open(state: AppState(phase: .inactive)),
            ReauthenticationTests.challenged(),
        ]
        func says(_ state: AppState) -> (inout Desk) -> Void {
            { $0.receive(.appState(state), request: 9) }
        }
        let events: [DeskEvent] = [
            ("APP_STATE foreground", says(AppState(phase: .foreground))),
            ("APP_STATE background", says(background)),
            ("APP_STATE inactive", says(AppState(phase: .inactive))),
            (
                "background time is over",
                { desk in
                    guard Self.session(desk) == "hint" else { return }
                    desk.pass(60_000)
                }
            ),
            ("CHALLENGE", { $0 = ReauthenticationTests.challenged($0) }),
            (
                "AUTHENTICATE is good",
                { desk in
                    guard Self.session(desk) == "asked anew" else { return }
                    _ = ReauthenticationTests.verified(&desk)
                    desk.answer(Desk.opened(Desk.position(head: 10, applied: 10)))
                }
            ),
            (
                "CHALLENGE unanswered",
                { desk in
                    guard desk.session.reauthentication != nil else { return }
                    desk.pass(60_000)
                }
            ),
            (
                "drain is over",
                { desk in
                    desk.run { $0.drain(deadline: 1_000, slot: 0, now: $1) }
                    desk.pass(1_000)
                }
            ),
            ("silence", { $0.pass(400_000) }),
            ("CLOSE", { $0.receive(.close(Close(code: 5000))) }),
            ("revoked, suspended or superseded", { $0.run { $0.ended(.revoked, now: $1) } }),
            ("socket is gone", { $0.run { $0.closed(now: $1) } }),
        ]
        let found = DiagramEdge.walk(desks, events, state: Self.session)
        #expect(found == (try DiagramEdge.drawn("session")), "\(found)")
    }

    // MARK: - The client

    private static func client(_ phone: Phone) -> String {
        switch phone.session.phase {
        case .idle: "idle"
        case .waiting: "waiting"
        case .connecting: "connecting"
        case .opening: "opening"
        case .authenticating: "authenticating"
        case .open: "open"
        }
    }

    private static func phones() throws -> [Phone] {
        let idle = try Phone()
        var connecting = idle
        connecting.start()
        var opening = connecting
        opening.connect()
        var authenticating = opening
        authenticating.receive(.challenge(Challenge()), request: 1)
        var open = opening
        open.receive(Phone.welcome(), request: 1)
        open.receive(Phone.delta(10, []), request: 1)
        var waiting = connecting
        waiting.close()
        return [idle, connecting, opening, authenticating, open, waiting]
    }

    @Test("client: each phase with each event of app, network and server")
    func client() throws {
        // The server speaks only when there is a connection to speak on.
        func isConnected(_ phone: Phone) -> Bool {
            ["opening", "authenticating", "open"].contains(Self.client(phone))
        }
        func closes(_ code: Code) -> (inout Phone) -> Void {
            { phone in if isConnected(phone) { phone.close(code, retryAfter: 1_000) } }
        }
        let events: [PhoneEvent] = [
            ("start", { $0.start() }),
            (
                "foreground",
                { phone in
                    _ = phone.run { $0.appStateChanged(AppState(phase: .background), now: $1) }
                    _ = phone.run { $0.appStateChanged(AppState(phase: .foreground), now: $1) }
                }
            ),
            (
                "inactive",
                { phone in
                    _ = phone.run { $0.appStateChanged(AppState(phase: .inactive), now: $1) }
                }
            ),
            (
                "push",
                { phone in
                    let state = AppState(phase: .background, remainingMs: 25_000)
                    _ = phone.run { $0.pushReceived(wake: nil, appState: state, now: $1) }
                }
            ),
            ("sleep", { phone in _ = phone.run { $0.sleep(now: $1) } }),
            ("network changed", { phone in _ = phone.run { $0.networkChanged(now: $1) } }),
            ("TLS is done", { $0.connect() }),
            (
                "CHALLENGE",
                { if isConnected($0) { $0.receive(.challenge(Challenge()), request: 1) } }
            ),
            ("WELCOME", { if isConnected($0) { $0.receive(Phone.welcome(), request: 1) } }),
            (
                "no identity token",
                { phone in
                    _ = phone.run { $0.identityToken(nil, now: $1) }
                }
            ),
            (
                "ERROR 2001",
                { if isConnected($0) { $0.receive(.error(ErrorFrame(code: 2001))) } }
            ),
            ("connection is gone", { $0.close() }),
            ("CLOSE: try again", closes(.goingAway)),
            ("CLOSE: never again", closes(.protocolViolation)),
            ("CLOSE: log in anew", closes(.revoked)),
            ("CLOSE: upgrade", closes(.upgradeRequired)),
            (
                "time is up",
                { phone in
                    guard let next = phone.session.nextDeadline else { return }
                    phone.now = max(next, phone.now)
                    let isOpen = phone.session.phase == .open
                    _ = phone.run { $0.deadlineReached(now: $1) }
                    // Open: the keepalive's PING goes unanswered.
                    guard isOpen, let next = phone.session.nextDeadline else { return }
                    phone.now = max(next, phone.now)
                    _ = phone.run { $0.deadlineReached(now: $1) }
                }
            ),
            (
                "slot of a drain",
                { phone in
                    guard Self.client(phone) == "open" else { return }
                    phone.receive(
                        .drain(Drain(deadlineMs: 9_000, slotMs: 1_000, place: .sameAddressAtSlot)))
                    phone.pass(1_000)
                }
            ),
        ]
        let found = DiagramEdge.walk(try Self.phones(), events, state: Self.client)
        #expect(found == (try DiagramEdge.drawn("client")), "\(found)")
    }

    // MARK: - One mutation

    private static func mutation(_ phone: Phone) -> String {
        if phone.store.outbox.isEmpty { return "answered" }
        guard let first = phone.session.outbox.first else { return "queued" }
        return first.isSent ? "sent" : "queued"
    }

    /// A device offline, one that has just sent a mutation, and one whose mutation is to be sent
    /// again. A store is shared by copies of a phone, so each is made anew for each event.
    private static let mutations: [(name: String, make: @Sendable () throws -> Phone)] = [
        ("queued", { try Phone(mutations: 1) }),
        ("sent", { try Phone.inSync(mutations: 1) }),
        (
            "held back",
            {
                var phone = try Phone.inSync(mutations: 1)
                phone.receive(
                    .mutationResult(MutationResult(number: 1, code: Code.unavailable.rawValue)))
                return phone
            }
        ),
    ]

    @Test("mutation: from the outbox to its stored result")
    func mutation() throws {
        func result(_ code: UInt32) -> (inout Phone) -> Void {
            { phone in
                guard Self.mutation(phone) == "sent" else { return }
                phone.receive(.mutationResult(MutationResult(number: 1, code: code)))
            }
        }
        let events: [PhoneEvent] = [
            (
                "connected",
                { phone in
                    guard phone.session.isIdle else { return }
                    phone.start()
                    phone.connect()
                    phone.receive(Phone.welcome(), request: 1)
                }
            ),
            ("connection is gone", { $0.close() }),
            ("result: done or refused for good", result(0)),
            ("result: refused for now", result(Code.unavailable.rawValue)),
            (
                "time to send again",
                { phone in if phone.session.isOpen { phone.pass(2_000) } }
            ),
        ]
        var found: Set<DiagramEdge> = []
        for (name, make) in Self.mutations {
            for (event, happen) in events {
                var phone = try make()
                let before = name == "held back" ? "queued" : name
                #expect(Self.mutation(phone) == before)
                happen(&phone)
                let after = Self.mutation(phone)
                guard before != after else { continue }
                found.insert(DiagramEdge(from: before, to: after, event: event))
            }
        }
        #expect(found.sorted() == (try DiagramEdge.drawn("mutation")), "\(found.sorted())")
    }
}

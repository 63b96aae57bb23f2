import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// Every state of a connection meets every frame: nothing is undefined, nothing traps.
@Suite struct StateTableTests {
    enum State: String, CaseIterable {
        case awaitingHello, challenged, verifying, opening, open, openExtension, ended

        var desk: Desk {
            var desk = Desk()
            switch self {
            case .awaitingHello: break
            case .challenged: desk = LoginTests.challenged()
            case .verifying:
                desk = LoginTests.challenged()
                desk.receive(.authenticate(Authenticate(identityToken: "jwt")))
            case .opening: desk.receive(.hello(Desk.hello()), request: 1)
            case .open: desk = Desk.open()
            case .openExtension:
                desk.receive(.hello(Desk.hello(role: .extension, sync: nil)), request: 1)
                desk.answer(Desk.opened(Desk.position(head: 10, applied: 7), role: .extension))
                desk.give(Desk.page(10, []))
            case .ended:
                desk = Desk.open()
                desk.run { $0.closed(now: $1) }
            }
            return desk
        }
    }

    static let bodies: [FrameType: FrameBody] = [
        .hello: .hello(Desk.hello()), .challenge: .challenge(Challenge()),
        .authenticate: .authenticate(Authenticate(identityToken: "jwt")),
        .welcome: .welcome(Welcome()), .sync: .sync(SyncFrame(mode: .advance)),
        .delta: .delta(Delta()), .syncRequest: .syncRequest(SyncRequest()), .ack: .ack(Ack()),
        .mutate: .mutate(Mutation(number: 1)), .mutationResult: .mutationResult(MutationResult()),
        .appState: .appState(AppState(phase: .inactive)), .ping: .ping(Ping()),
        .pong: .pong(Pong()), .drain: .drain(Drain()), .error: .error(ErrorFrame()),
        .close: .close(Close(code: 5000)), .fetch: .fetch(Fetch()), .page: .page(PageFrame()),
        .snapshot: .snapshot(SnapshotFrame()), .snapshotPage: .snapshotPage(SnapshotPage()),
        .signal: .signal(Signal()), .digest: .digest(DigestFrame()),
        .digestResult: .digestResult(DigestResult()),
    ]

    /// What comes of it, first line only; 5004 closes unless it stands here.
    static let table: [State: [FrameType: String]] = [
        .awaitingHello: [
            .hello: "store open token [9] dormant never with SYNC", .close: "close 5000",
        ],
        .challenged: [
            .authenticate: "verify jwt of chess", .ping: "send PONG @9", .pong: "",
            .close: "close 5000",
        ],
        .verifying: [.ping: "send PONG @9", .pong: "", .close: "close 5000"],
        .opening: [.ping: "send PONG @9", .pong: "", .close: "close 5000"],
        .open: [
            .sync: "store sync applied 0", .ack: "", .mutate: "store mutate 1",
            .appState: "store state dormant 0 with switches", .ping: "send PONG @9", .pong: "",
            .close: "leave anna", .fetch: "history FETCH 65536 bytes",
            .snapshot: "history SNAPSHOT 32768 bytes", .digest: "history DIGEST",
            .signal: "send ERROR 4009 @9",
        ],
        .openExtension: [
            .sync: "send ERROR 4003 @9", .ack: "", .mutate: "send ERROR 4003 @9",
            .appState: "send ERROR 4003 @9", .ping: "send PONG @9", .pong: "",
            .close: "leave anna", .fetch: "send ERROR 4003 @9", .snapshot: "send ERROR 4003 @9",
            .digest: "send ERROR 4003 @9", .signal: "send ERROR 4009 @9",
        ],
    ]

    @Test(arguments: State.allCases, FrameType.allCases)
    func everyFrameInEveryState(_ state: State, _ type: FrameType) throws {
        let body = try #require(Self.bodies[type])
        #expect(body.type == type)
        var desk = state.desk
        let lines = desk.receive(body, request: 9)
        if state == .ended {
            #expect(lines == [])
        } else if let expected = Self.table[state]?[type] {
            #expect(lines.first ?? "" == expected)
        } else {
            #expect(lines.first?.hasPrefix("send CLOSE 5004") == true)
            #expect(lines.contains("close 5004"))
        }
        // Whatever came: the end is clean.
        desk.run { $0.closed(now: $1) }
        #expect(desk.receive(.ping(Ping())) == [])
    }

    @Test(arguments: State.allCases)
    func everyOtherEventInEveryState(_ state: State) {
        let other = RequestTag(number: 999)
        let inputs: [(inout Session, Instant) -> [SessionAction]] = [
            { $0.decodingFailed(.malformed, now: $1) },
            { $0.headMoved(to: .max, kinds: .max, now: $1) },
            { $0.storeAnswered(other, .done, now: $1, wall: Timestamp(milliseconds: 1)) },
            { $0.storeFailed(other, .full(""), now: $1) },
            { $0.pageRead(other, Desk.page(0, [1]), now: $1) },
            { $0.readFailed(other, .full(""), now: $1) },
            { $0.historyRead(other, .page(PageFrame()), now: $1) },
            { $0.historyFailed(other, .full(""), now: $1) },
            {
                $0.identityVerified(
                    other, LoginTests.claims(), now: $1, wall: Timestamp(milliseconds: 1))
            },
            { $0.audienceFound(other, [UserID("bob")], now: $1) },
            { $0.challenged(now: $1) },
            {
                $0.entropyDrawn(
                    SessionEntropy(sessionToken: [1], nonce: [2], seed: 3), now: $1)
            },
            { $0.signalled(Signal(kind: .typing), now: $1) },
            { $0.identityRefused(other, .expired, now: $1) },
            { $0.progressed(taken: .max, unsent: .max, outstanding: .max, now: $1) },
            { $0.ended(.revoked, now: $1) },
            { $0.drain(deadline: .max, slot: .max, now: $1) },
            { $0.shutDown(.unavailable, now: $1) },
            { $0.deadlineReached(now: $1) },
            { $0.closed(now: $1) },
        ]
        for input in inputs {
            var desk = state.desk
            desk.run(input)
            desk.run { $0.deadlineReached(now: Instant(milliseconds: .max - $1.milliseconds % 2)) }
            desk.run { $0.closed(now: $1) }
        }
    }

    /// P7: what an idle connection costs here, beside the empty buffers it may point to.
    @Test func anIdleSessionIsSmall() {
        #expect(MemoryLayout<Session>.stride <= 1_536)
    }

    @Test(arguments: [
        (WireError.malformed, 4000), (.tooLarge(bytes: 2, limit: 1), 4001),
        (.unknownFrame(9), 4008), (.reservedByte(1), 5004),
    ])
    func bytesThatAreNoFrames(_ error: WireError, _ code: Int) {
        var desk = Desk.open()
        #expect(
            desk.run { $0.decodingFailed(error, now: $1) } == [
                "send CLOSE \(code) applied 10", "leave anna", "close \(code)",
                "store end 10 within 10000",
            ])
    }
}

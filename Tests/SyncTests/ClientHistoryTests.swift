import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// History, snapshots, peeks and digests on the client's side (history.md).
@Suite struct ClientHistoryTests {
    private let room = ConversationID(high: 1, low: 1)

    private func message(_ position: UInt64, sender: String = "ben", sent: UInt64 = 0) -> Entry {
        Entry(
            conversation: room, object: MessageID(high: 2, low: position).bytes, version: 1,
            body: .message(MessageState(position: position, sender: sender, sentMs: sent)))
    }

    private func page(
        _ positions: ClosedRange<UInt64>, from: UInt64? = nil, start: UInt64 = 40,
        next: [UInt8] = [], room: ConversationID? = nil, epoch: Epoch = Phone.epoch,
        unread: UInt32? = nil
    ) -> FrameBody {
        let room = room ?? self.room
        let state = Entry(
            conversation: room, object: room.bytes, version: 1,
            body: .conversationState(ConversationState()))
        return .snapshotPage(
            SnapshotPage(
                conversations: [
                    SnapshotConversation(
                        conversation: room, entries: [state] + positions.map { message($0) },
                        completeFrom: from ?? positions.lowerBound)
                ], start: Cursor(epoch: epoch, seq: start), continuation: next,
                unread: unread))
    }

    private func welcome(_ floor: UInt64 = 0) -> FrameBody {
        .welcome(
            Welcome(
                version: 1, sessionToken: [8], serverTimeMs: 1_000_000_000_000,
                epoch: Phone.epoch, mutationFloor: floor, keepaliveMs: 180_000,
                features: ["live", "snapshot"], user: "anna"))
    }

    private func reset(
        _ reason: ResetReason = .noCursor, epoch: Epoch = Phone.epoch, after wait: UInt32 = 0
    ) -> FrameBody {
        let zero = Cursor(epoch: epoch, seq: 0)
        return .delta(
            Delta(
                from: zero, to: zero, head: 40, more: true,
                reset: Reset(reason: reason, retryAfterMs: wait)))
    }

    @Test(
        "SYN-26: a device that is to wait sends nothing before its turn", arguments: [true, false])
    func paced(snapshots: Bool) throws {
        var phone = try Phone(at: 10, snapshots: snapshots)
        phone.start()
        phone.connect()
        phone.receive(snapshots ? welcome() : Phone.welcome(), request: 1)
        let other = Epoch(high: 9, low: 9)
        let lines = phone.receive(reset(.epochChanged, epoch: other, after: 7_000), request: 1)
        #expect(!lines.contains { $0.hasPrefix("send SNAPSHOT") || $0.hasPrefix("send SYNC") })
        phone.now = phone.now + 6_999
        #expect(!phone.run { $0.deadlineReached(now: $1) }.contains { $0.hasPrefix("send S") })
        phone.now = phone.now + 1
        let turn = phone.run { $0.deadlineReached(now: $1) }
        let first = snapshots ? "send SNAPSHOT" : "send SYNC"
        #expect(turn.contains { $0.hasPrefix(first) }, "\(turn)")
    }

    /// Without a cursor, told of the reset.
    private func asking(at seq: UInt64? = nil, _ reason: ResetReason = .noCursor) throws
        -> (Phone, [String])
    {
        var phone = try Phone(at: seq, snapshots: true)
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        let lines = phone.receive(reset(reason), request: 1)
        return (phone, lines)
    }

    @Test("HIS-13, HIS-20: pages, then the deltas above the start, then a digest")
    func firstSync() throws {
        var (phone, lines) = try asking()
        #expect(lines == ["send SNAPSHOT @2"])
        #expect(
            phone.receive(page(5...9, next: [7]), request: 2) == [
                "snapshot 6 first", "send SNAPSHOT @3",
            ])
        #expect(phone.session.cursor == nil)
        // Pushed or asked meanwhile: it comes again from the start.
        #expect(phone.receive(Phone.delta(40, [41])) == [])
        #expect(phone.receive(.syncRequest(SyncRequest(head: 41))) == [])
        #expect(!phone.session.isInSync)
        let other = ConversationID(high: 1, low: 2)
        #expect(
            phone.receive(page(1...2, room: other), request: 3) == [
                "snapshot 3 last", "send SYNC at 40 connect",
            ])
        #expect(
            phone.receive(Phone.delta(40, [41]), request: 4) == [
                "apply [41] to 41", "send ACK 41", "synced 41", "send DIGEST @5",
            ])
        #expect(phone.session.isInSync)
        let result = DigestResult(comparable: false)
        #expect(phone.receive(.digestResult(result), request: 5) == ["digest says nothing"])
    }

    @Test("HIS-20: it goes on where it stopped, over connections and restarts")
    func goesOn() throws {
        var (phone, _) = try asking()
        phone.receive(page(5...9, next: [7]), request: 2)
        phone.close()
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at -"])
        phone.receive(welcome(), request: 1)
        let lines = phone.run { $0.received(Frame(self.reset(), request: 1), now: $1) }
        #expect(lines == ["send SNAPSHOT @2"])
        #expect(phone.sentSnapshot?.continuation == [7])
        #expect(
            phone.receive(page(1...2), request: 2) == [
                "snapshot 2 last", "send SYNC at 40 connect",
            ])
        #expect(phone.store.snapshots == 1)
    }

    @Test("HIS-18: a continuation of another history begins anew")
    func otherHistory() throws {
        var (phone, _) = try asking()
        phone.receive(page(5...9, next: [7]), request: 2)
        let error = ErrorFrame(
            code: Code.epochChanged.rawValue, retry: Code.epochChanged.retryClass)
        #expect(phone.receive(.error(error), request: 3) == ["send SNAPSHOT @4"])
        #expect(phone.sentSnapshot?.continuation == [])
        phone.receive(page(5...9), request: 4)
        #expect(phone.store.snapshots == 2)
    }

    @Test("HIS-18: what cannot be read now is asked again")
    func retried() throws {
        var (phone, _) = try asking()
        let busy = ErrorFrame(
            code: Code.unavailable.rawValue, retry: .retryAfter, retryAfterMs: 3_000)
        #expect(phone.receive(.error(busy), request: 2) == [])
        #expect(phone.pass(2_000) == [])
        #expect(phone.pass(2_000) == ["send SNAPSHOT @3"])
    }

    @Test("HIS-19: stale rows stay until a page is complete for them; nothing else is removed")
    func sweeps() throws {
        var phone = try Phone(at: 10, snapshots: true)
        let gone = ConversationID(high: 1, low: 9)
        let old = Entry(
            conversation: gone, object: gone.bytes, version: 1,
            body: .conversationState(ConversationState()))
        _ = try phone.store.apply(
            LocalChange(
                entries: (1...9).map { message($0) } + [old],
                to: Cursor(epoch: Phone.epoch, seq: 10)))
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        phone.receive(reset(.cursorTooOld), request: 1)
        func held() -> [UInt64] {
            phone.store.rows.values.map(\.entry.position).filter { $0 > 0 }.sorted()
        }
        #expect(held() == Array(1...9))
        // 7 is gone at the server, and 1 to 4 were not looked at.
        let entries = [5, 6, 8, 9].map { message($0) }
        let first = SnapshotPage(
            conversations: [
                SnapshotConversation(conversation: room, entries: entries, completeFrom: 5)
            ], start: Cursor(epoch: Phone.epoch, seq: 40), continuation: [1])
        phone.receive(.snapshotPage(first), request: 2)
        #expect(held() == [1, 2, 3, 4, 5, 6, 8, 9])
        #expect(phone.store.rows.values.contains { $0.entry.conversation == gone })
        phone.receive(.snapshotPage(SnapshotPage(start: first.start)), request: 3)
        #expect(!phone.store.rows.values.contains { $0.entry.conversation == gone })
        #expect(held() == [1, 2, 3, 4, 5, 6, 8, 9])
        // Nothing is sent again: what lacks was deleted.
        #expect(phone.store.outbox.isEmpty)
        // Looked at: 3 is gone, too.
        phone.receive(Phone.delta(40, []), request: 4)
        phone.run { $0.fetch(Fetch(conversation: self.room, below: 5), ticket: 1, now: $1) }
        let older = PageFrame(
            entries: [message(4), message(2)], first: 2, last: 4, more: true, position: 9)
        #expect(
            phone.receive(.page(older), request: phone.lastAsked) == [
                "history []", "fetched 1: 2-4 more",
            ])
        #expect(held() == [1, 2, 4, 5, 6, 8, 9])
    }

    @Test("HIS-37: the icon's number comes with the last page, if the server names it there")
    func unread() throws {
        for told in [0, 3, nil] as [UInt32?] {
            var phone = try Phone(at: nil, snapshots: true)
            phone.start()
            phone.connect()
            phone.receive(welcome(), request: 1)
            phone.receive(reset(), request: 1)
            phone.receive(page(5...6, next: [1], unread: 9), request: 2)
            #expect(phone.icons.isEmpty)
            phone.receive(page(3...4, unread: told), request: 3)
            #expect(phone.icons == [told].compactMap { $0 })
            // The server takes this phone for in sync now, and nothing it sends comes here.
            phone.close()
            #expect(phone.session.cursor?.seq == 40)
        }
    }

    @Test("HIS-21: after a restore the own messages it lacks are sent again")
    func lostMessages() throws {
        var phone = try Phone(at: 10, mutations: 2, snapshots: true)
        phone.store.state.user = "anna"
        let week: UInt64 = 7 * 86_400_000
        let now: UInt64 = 1_000_000_000_000
        let entries = [
            message(5, sender: "anna", sent: now - week - 1), message(6, sender: "ben", sent: now),
            message(7, sender: "anna", sent: now - week), message(8, sender: "anna", sent: now),
        ]
        _ = try phone.store.apply(
            LocalChange(entries: entries, to: Cursor(epoch: Phone.epoch, seq: 10)))
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        let other = Epoch(high: 9, low: 9)
        phone.receive(reset(.epochChanged, epoch: other), request: 1)
        let lines = phone.receive(page(1...4, start: 20, epoch: other), request: phone.lastAsked)
        #expect(lines.contains("snapshot 5 first last"))
        let sent = phone.store.outbox.compactMap { queued -> UInt64? in
            guard case .sendMessage(let send) = queued.mutation.operation else { return nil }
            return send.message?.low
        }
        #expect(sent == [7, 8])
        // What waited stands behind them, and comes after the cursor.
        #expect(
            lines.suffix(5) == [
                "send SYNC at 20 connect", "send MUTATE 3", "send MUTATE 4", "send MUTATE 5",
                "send MUTATE 6",
            ])
        #expect(phone.store.outbox.map(\.mutation.number) == [3, 4, 5, 6])
    }

    @Test("HIS-21: until the snapshot tells what was lost, what waits is held back")
    func heldMutations() throws {
        var phone = try Phone(at: 10, mutations: 1, snapshots: true)
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        let other = Epoch(high: 9, low: 9)
        phone.receive(reset(.epochChanged, epoch: other), request: 1)
        let first = page(1...4, start: 20, next: [7], epoch: other)
        #expect(
            phone.receive(first, request: phone.lastAsked) == [
                "snapshot 5 first", "send SNAPSHOT @3",
            ])
        // Also over connections and restarts.
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        #expect(phone.connect() == ["send HELLO token at -"])
        phone.receive(welcome(), request: 1)
        #expect(phone.receive(reset(epoch: other), request: 1) == ["send SNAPSHOT @2"])
        let room = ConversationID(high: 1, low: 2)
        #expect(
            phone.receive(page(1...1, start: 20, room: room, epoch: other), request: 2) == [
                "snapshot 1 last", "send SYNC at 20 connect", "send MUTATE 3",
            ])
    }

    @Test("HIS-12: three FETCHes at a time, the others after; lost ones are sent again")
    func fetches() throws {
        var phone = try Phone.inSync()
        for ticket in 1...4 as ClosedRange<UInt64> {
            let lines = phone.run {
                $0.fetch(Fetch(conversation: self.room, below: 50), ticket: ticket, now: $1)
            }
            #expect(lines == (ticket < 4 ? ["send FETCH @\(ticket + 1)"] : []))
        }
        let page = PageFrame(entries: [message(3)], first: 3, last: 3, more: true, position: 9)
        #expect(
            phone.receive(.page(page), request: 2) == [
                "history [0]", "fetched 1: 3-3 more", "send FETCH @5",
            ])
        let error = ErrorFrame(code: Code.notFound.rawValue)
        #expect(phone.receive(.error(error), request: 3) == ["fetch 2 failed 4004"])
        phone.close()
        phone.pass(6_000)
        phone.connect()
        #expect(
            phone.receive(Phone.welcome(), request: 1) == ["send FETCH @2", "send FETCH @3"])
        #expect(phone.session.cursor?.seq == 10)
    }

    @Test("CON-15: a FETCH that is told to wait is sent again when that time is over")
    func limitedFetch() throws {
        var phone = try Phone.inSync()
        phone.run { $0.fetch(Fetch(conversation: self.room), ticket: 1, now: $1) }
        #expect(phone.receive(.error(limited), request: 2) == [])
        // Nor are others sent before.
        #expect(phone.run { $0.fetch(Fetch(conversation: self.room), ticket: 2, now: $1) } == [])
        #expect(!phone.pass(8_900).contains { $0.hasPrefix("send FETCH") })
        #expect(
            phone.pass(200).filter { $0.hasPrefix("send FETCH") } == [
                "send FETCH @3", "send FETCH @4",
            ])
    }

    private let limited = ErrorFrame(
        code: Code.rateLimited.rawValue, retry: .retryAfter, retryAfterMs: 9_000)

    @Test("CON-15: a DIGEST that is told to wait is summed up anew when that time is over")
    func limitedDigest() throws {
        var phone = try Phone.inSync()
        #expect(phone.run { $0.checkDigest(now: $1) } == ["send DIGEST @2"])
        #expect(phone.receive(.error(limited), request: 2) == [])
        // Nor earlier because the app wishes it.
        #expect(phone.run { $0.checkDigest(now: $1) } == [])
        #expect(phone.pass(8_999).filter { $0.hasPrefix("send DIGEST") } == [])
        #expect(phone.pass(1).filter { $0.hasPrefix("send DIGEST") }.count == 1)
    }

    @Test("CON-15: a SNAPSHOT that is told to wait goes on when that time is over")
    func limitedSnapshot() throws {
        var (phone, _) = try asking()
        phone.receive(page(5...9, next: [7]), request: 2)
        #expect(phone.receive(.error(limited), request: 3) == [])
        #expect(phone.receive(.syncRequest(SyncRequest(head: 99))) == [])
        #expect(phone.run { $0.userRefresh(now: $1) } == [])
        #expect(phone.pass(8_999).filter { $0.hasPrefix("send S") } == [])
        #expect(phone.pass(1) == ["send SNAPSHOT @4"])
        #expect(phone.sentSnapshot?.continuation == [7])
    }

    @Test("CON-15: an extension's peek that is told to wait is sent again, as a peek")
    func limitedPeek() throws {
        var phone = try Phone(role: .extension)
        phone.start(.background)
        phone.connect()
        phone.receive(Phone.welcome(live: false), request: 1)
        phone.receive(.error(limited), request: 1)
        #expect(phone.run { $0.peek(now: $1) } == [])
        phone.pass(9_000)
        guard case .sync(let sync) = phone.frames.last?.body else {
            Issue.record("no SYNC: \(phone.frames)")
            return
        }
        #expect(sync.mode == .peek)
    }

    @Test("SYN-11: a client goes on after a page that is empty and has more behind it")
    func emptyPages() throws {
        var phone = try Phone(at: 10)
        phone.start()
        phone.connect()
        phone.receive(Phone.welcome(live: false), request: 1)
        #expect(
            phone.receive(Phone.delta(10, [], to: 2_000, head: 5_000), request: 1) == [
                "apply [] to 2000", "send SYNC at 2000 syncRequest",
            ])
        #expect(
            phone.receive(Phone.delta(2_000, [2_001], to: 4_000, head: 5_000), request: 2) == [
                "apply [2001] to 4000", "send SYNC at 4000 syncRequest",
            ])
        #expect(
            phone.receive(Phone.delta(4_000, [], to: 5_000), request: 3) == [
                "apply [] to 5000", "send ACK 5000", "synced 5000",
            ])
    }

    @Test("HIS-2: a page moves no cursor, and what is newer stays")
    func noCursor() throws {
        var phone = try Phone.inSync()
        var newer = message(3)
        newer.version = 5
        _ = try phone.store.applyHistory(HistoryChange(entries: [newer]))
        phone.run { $0.fetch(Fetch(conversation: self.room), ticket: 1, now: $1) }
        let page = PageFrame(entries: [message(3)], first: 3, last: 3, position: 3)
        #expect(phone.receive(.page(page), request: 2) == ["history []", "fetched 1: 3-3"])
        #expect(phone.store.state.cursor?.seq == 10)
        #expect(phone.store.rows.values.contains { $0.entry.version == 5 })
    }

    @Test("SYN-12, SYN-28: woken with little time it peeks, and acknowledges a range")
    func peeks() throws {
        var phone = try Phone(peeks: true)
        phone.looksForOrphans = true
        phone.run {
            $0.start(
                appState: AppState(phase: .background, remainingMs: 20_000),
                wake: WakeID(high: 1, low: 1), now: $1)
        }
        phone.connect()
        #expect(phone.sentHello?.sync?.mode == .peek)
        phone.receive(Phone.welcome(), request: 1)
        var entry = message(4)
        entry.seq = 18
        let at = Cursor(epoch: Phone.epoch, seq: 10)
        let delta = Delta(entries: [entry], from: at, to: at, head: 20, more: true)
        // Then the rest, and its conversation, which it does not know.
        #expect(
            phone.receive(.delta(delta), request: 1) == [
                "history [18]", "send ACK 0 18-20", "send FETCH @3", "send SYNC at 10 wake",
            ])
        #expect(phone.session.cursor?.seq == 10)
        #expect(
            phone.receive(Phone.delta(10, [15, 20]), request: 2).first == "apply [15, 20] to 20")
    }

    private func woken() throws -> Phone {
        var phone = try Phone(snapshots: true, peeks: true)
        phone.run {
            $0.start(
                appState: AppState(phase: .background, remainingMs: 20_000),
                wake: WakeID(high: 1, low: 1), now: $1)
        }
        phone.connect()
        return phone
    }

    @Test("a peek that finds nothing new ends in sync, and takes what was read meanwhile")
    func peeksAtNothing() throws {
        var phone = try woken()
        phone.receive(Phone.welcome(live: false), request: 1)
        let read = ReadReceipt(conversation: ConversationID(high: 1, low: 1), through: 1)
        try phone.store.addRead(read)
        #expect(phone.run { $0.readQueued(read, now: $1) } == [])
        let at = Cursor(epoch: Phone.epoch, seq: 10)
        #expect(
            phone.receive(.delta(Delta(from: at, to: at, head: 10)), request: 1) == [
                "history []", "send SYNC at 10 wake r1",
            ])
        guard case .sync(let sync) = phone.frames.last?.body else {
            Issue.record("no SYNC")
            return
        }
        #expect(sync.reads == [read])
        #expect(phone.receive(Phone.delta(10, []), request: 2).contains("synced 10"))
        #expect(phone.session.isInSync)
    }

    @Test("SYN-14: a peek into another history stores and acknowledges nothing, and resets")
    func peeksAfterRestore() throws {
        var phone = try woken()
        let epoch = Epoch(high: 9, low: 9)
        phone.receive(
            .welcome(
                Welcome(
                    version: 1, sessionToken: [8], epoch: epoch, keepaliveMs: 180_000,
                    features: ["snapshot"], user: "anna")), request: 1)
        var entry = message(4)
        entry.seq = 5
        let at = Cursor(epoch: epoch, seq: 5)
        #expect(
            phone.receive(.delta(Delta(entries: [entry], from: at, to: at, head: 5)), request: 1)
                == ["send SYNC at 10 wake"])
        let start = Cursor(epoch: epoch, seq: 0)
        let reset = Delta(
            from: start, to: start, head: 5, reset: Reset(reason: .epochChanged))
        #expect(phone.receive(.delta(reset), request: 2).contains { $0.hasPrefix("send SNAPSHOT") })
    }

    @Test("HIS-18: a continuation that the server cannot read begins anew, once")
    func unreadableContinuation() throws {
        var phone = try Phone(at: nil, snapshots: true)
        phone.store.state.snapshot = LocalSnapshot(
            start: Cursor(epoch: Phone.epoch, seq: 40), continuation: [1],
            resendSince: Timestamp(milliseconds: 5))
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 1)
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        let start = Cursor(epoch: Phone.epoch, seq: 0)
        let reset = Delta(from: start, to: start, head: 40, reset: Reset(reason: .noCursor))
        phone.receive(.delta(reset), request: 1)
        #expect(phone.sentSnapshot?.continuation == [1])
        let refusal = ErrorFrame(code: Code.malformed.rawValue, retry: .none)
        #expect(phone.receive(.error(refusal), request: 2).count == 1)
        #expect(phone.sentSnapshot?.continuation == [])
        // What the server lost is sent again all the same (HIS-21).
        let number = try phone.store.enqueue(.sendMessage(SendMessage()), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == [])
        // There is nothing else to try on this connection.
        let lines = phone.receive(.error(refusal), request: 3)
        #expect(lines.first == "disconnect" && lines.last?.hasPrefix("retry after") == true)
        #expect(phone.session.nextDeadline != nil)
    }

    @Test("SES-17: an extension peeks, acknowledges and goes")
    func extensions() throws {
        var phone = try Phone(mutations: 1, role: .extension)
        phone.start()
        phone.connect()
        #expect(phone.sentHello?.role == .extension)
        #expect(phone.sentHello?.sync?.mode == .peek)
        #expect(phone.sentHello?.sync?.mutations == [])
        #expect(phone.receive(Phone.welcome(live: false), request: 1) == [])
        var entry = message(4)
        entry.seq = 18
        let at = Cursor(epoch: Phone.epoch, seq: 10)
        let delta = Delta(entries: [entry], from: at, to: at, head: 18)
        #expect(
            phone.receive(.delta(delta), request: 1) == [
                "history [18]", "send ACK 0 18-18", "send CLOSE 5000 applied 0", "disconnect",
            ])
        #expect(phone.session.isIdle)
    }

    @Test("an extension whose cursor is another history's peeks once all the same")
    func extensionAfterRestore() throws {
        var phone = try Phone(role: .extension)
        phone.start()
        phone.connect()
        let epoch = Epoch(high: 9, low: 9)
        phone.receive(
            .welcome(Welcome(version: 1, sessionToken: [8], epoch: epoch, user: "anna")),
            request: 1)
        var entry = message(4)
        entry.seq = 5
        let at = Cursor(epoch: epoch, seq: 5)
        #expect(
            phone.receive(.delta(Delta(entries: [entry], from: at, to: at, head: 5)), request: 1)
                == ["history [5]", "send ACK 0 5-5", "send CLOSE 5000 applied 0", "disconnect"])
    }

    @Test("HIS-33, HIS-34: asked for a digest it tells one, and repairs itself once")
    func repairs() throws {
        var phone = try Phone(snapshots: true)
        phone.start()
        phone.connect()
        phone.receive(welcome(), request: 1)
        let at = Cursor(epoch: Phone.epoch, seq: 10)
        let delta = Delta(from: at, to: at, head: 10, digestWanted: true)
        #expect(
            phone.receive(.delta(delta), request: 1) == [
                "send ACK 10", "synced 10", "send DIGEST @2",
            ])
        let other = DigestResult(
            cursor: at, comparable: true, messages: DigestSum(count: 1, hash: 1))
        #expect(
            phone.receive(.digestResult(other), request: 2) == [
                "digest differs of 0", "send SNAPSHOT @3",
            ])
        #expect(
            phone.receive(page(1...1, start: 10), request: 3) == [
                "snapshot 2 first last", "send SYNC at 10 connect",
            ])
        #expect(
            phone.receive(Phone.delta(10, []), request: 4) == [
                "send ACK 10", "synced 10", "send DIGEST @5",
            ])
        // Still different: not again on this connection.
        #expect(phone.receive(.digestResult(other), request: 5) == ["digest differs of 2"])
        phone.run { $0.checkDigest(now: $1) }
        var sums = DigestSum()
        sums.add(.conversation, id: room.bytes, version: 1)
        var messages = DigestSum()
        messages.add(.message, id: message(1).object, version: 1)
        let same = DigestResult(
            cursor: at, comparable: true, conversations: sums, messages: messages)
        #expect(phone.receive(.digestResult(same), request: 6) == ["digest equal of 2"])
    }
}

extension Phone {
    /// The number of the last request sent.
    var lastAsked: UInt16 { frames.last { $0.request != 0 }?.request ?? 0 }
    private func sent<Body>(_ pick: (FrameBody) -> Body?) -> Body? {
        frames.compactMap { pick($0.body) }.last
    }
    var sentSnapshot: SnapshotFrame? {
        sent { if case .snapshot(let frame) = $0 { frame } else { nil } }
    }
    var sentHello: Hello? { sent { if case .hello(let hello) = $0 { hello } else { nil } } }
}

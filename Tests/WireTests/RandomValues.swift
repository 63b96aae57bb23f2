import Model
import Wire

/// SplitMix64: the same seed gives the same values on every machine.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}

/// Random frames, every field of every body at its default now and then.
struct RandomValues {
    var generator: SeededGenerator

    mutating func chance(_ outOf: Int) -> Bool { Int.random(in: 0..<outOf, using: &generator) == 0 }

    mutating func u64() -> UInt64 {
        chance(3) ? 0 : generator.next() >> UInt64.random(in: 0...63, using: &generator)
    }
    mutating func u32() -> UInt32 { UInt32(truncatingIfNeeded: u64()) }
    mutating func flag() -> Bool { chance(2) }

    mutating func some<Value: CaseIterable>(_: Value.Type = Value.self) -> Value
    where Value.AllCases == [Value] {
        let all = Value.allCases
        return all[Int.random(in: 0..<all.count, using: &generator)]
    }

    mutating func bytes() -> [UInt8] {
        let counts = [0, 0, 1, 16, 31, 127, 128, 129, 500]
        let count = counts[Int.random(in: 0..<counts.count, using: &generator)]
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }
    mutating func object() -> [UInt8] {
        let id: MessageID? = id()
        return id?.bytes ?? []
    }
    mutating func id<Noun>() -> Identifier<Noun>? {
        chance(3) ? nil : Identifier(high: u64(), low: u64())
    }
    mutating func cursor() -> Cursor? {
        chance(3) ? nil : Cursor(epoch: Epoch(high: u64(), low: u64()), seq: u64())
    }
    mutating func text() -> String {
        let letters: [Character] = ["a", "Z", "0", " ", "\n", "\"", "\\", "\u{0}", "é", "漢", "😀"]
        let counts = [0, 0, 1, 5, 30, 140]
        let count = counts[Int.random(in: 0..<counts.count, using: &generator)]
        return String(
            (0..<count).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] })
    }
    mutating func list<Value>(_ make: (inout RandomValues) -> Value) -> [Value] {
        (0..<Int.random(in: 0...3, using: &generator)).map { _ in make(&self) }
    }
    mutating func maybe<Value>(_ make: (inout RandomValues) -> Value) -> Value? {
        chance(3) ? nil : make(&self)
    }

    mutating func range() -> InclusiveRange { InclusiveRange(first: u64(), last: u64()) }
    mutating func read() -> ReadReceipt {
        ReadReceipt(
            conversation: id(), through: u64(), ranges: list { $0.range() }, announcement: id())
    }
    mutating func part() -> Part {
        Part(
            mimeType: text(), content: bytes(),
            reference: maybe {
                PartReference(
                    url: $0.text(), size: $0.u64(), digest: $0.bytes(), expiresMs: $0.u64())
            })
    }
    mutating func metadataChange() -> MetadataChange {
        MetadataChange(path: list { $0.text() }, value: text(), removed: flag())
    }
    mutating func digestSum() -> DigestSum { DigestSum(count: u64(), hash: u64()) }
    mutating func pushText() -> PushText { PushText(title: text(), body: text()) }
    mutating func localized() -> LocalizedText {
        LocalizedText(key: text(), arguments: list { $0.text() })
    }
    mutating func hints() -> PushHints {
        PushHints(
            subtitle: text(), titleKey: maybe { $0.localized() },
            subtitleKey: maybe { $0.localized() }, bodyKey: maybe { $0.localized() },
            sound: maybe { PushSound(kind: $0.some(), name: $0.text(), volume: $0.u32()) },
            thread: text(), category: text(), interruptionLevel: some(), relevance: u32(),
            targetContent: text(), event: text(), object: text(), data: text())
    }

    mutating func appState() -> AppState {
        AppState(
            phase: some(), remainingMs: u32(), notifications: some(), backgroundRefresh: some(),
            lowPower: some())
    }

    mutating func mutation() -> Mutation {
        let operations: [Mutation.Operation?] = [
            nil,
            .createConversation(
                CreateConversation(
                    conversation: id(), participants: list { $0.text() }, distinct: flag(),
                    metadata: list { $0.metadataChange() }, receiptsOff: flag())),
            .addParticipants(AddParticipants(conversation: id(), users: list { $0.text() })),
            .sendMessage(
                SendMessage(
                    conversation: id(), message: id(), parts: list { $0.part() },
                    push: maybe { $0.pushText() })),
            .forgetDevice(ForgetDevice()),
            .removeParticipants(
                RemoveParticipants(conversation: id(), users: list { $0.text() })),
            .editMessage(
                EditMessage(
                    message: id(), parts: list { $0.part() }, push: maybe { $0.pushText() },
                    baseVersion: u64())),
            .deleteMessage(DeleteMessage(message: id(), forEveryone: flag())),
            .deleteConversation(DeleteConversation(conversation: id(), forEveryone: flag())),
            .changeMetadata(
                ChangeMetadata(
                    conversation: id(), changes: list { $0.metadataChange() }, baseVersion: u64())),
            .muteConversation(MuteConversation(conversation: id(), muted: flag(), forMs: u64())),
            .blockUser(BlockUser(user: text(), blocked: flag())),
        ]
        return Mutation(
            number: u64(), delayMs: u32(),
            operation: operations[Int.random(in: 0..<operations.count, using: &generator)])
    }

    mutating func result() -> MutationResult {
        MutationResult(
            number: u64(), code: u32(), retry: some(), retryAfterMs: u32(), object: object(),
            position: u64())
    }

    mutating func sync() -> SyncFrame {
        SyncFrame(
            cursor: cursor(), applied: u64(), pageBytes: u32(), mode: some(),
            reads: list { $0.read() }, mutations: list { $0.mutation() }, reason: some(),
            resetHead: u64())
    }

    mutating func entry() -> Entry {
        let bodies: [Entry.Body?] = [
            nil,
            .conversationState(
                ConversationState(
                    createdMs: u64(), creator: text(), distinct: flag(), receiptsOff: flag(),
                    participants: u32())),
            .participant(ParticipantState(user: text(), joinedPosition: u64(), removed: flag())),
            .message(
                MessageState(
                    position: u64(), sender: text(), sentMs: u64(), parts: list { $0.part() },
                    push: maybe { $0.pushText() }, editedMs: u64(),
                    hints: maybe { $0.hints() })),
            .receipt(ReceiptState(user: text(), deliveredThrough: u64(), readThrough: u64())),
            .readMark(ReadMarkState(through: u64(), ranges: list { $0.range() })),
            .tombstone(
                TombstoneState(
                    position: u64(), conversation: flag(), forEveryone: flag(), by: text(),
                    deletedMs: u64())),
            .metadata(
                MetadataState(
                    values: list { MetadataValue(path: $0.list { $0.text() }, value: $0.text()) })),
            .announcement(
                AnnouncementState(
                    sentMs: u64(), parts: list { $0.part() }, push: maybe { $0.pushText() },
                    read: flag(), hints: maybe { $0.hints() })),
            .conversationSettings(ConversationSettings(muted: flag(), mutedUntilMs: u64())),
            .block(BlockState(user: text(), blocked: flag())),
        ]
        return Entry(
            seq: u64(), conversation: id(), object: object(), version: u64(), alerted: flag(),
            body: bodies[Int.random(in: 0..<bodies.count, using: &generator)])
    }

    mutating func hello() -> Hello {
        Hello(
            versionMin: u32(), versionMax: u32(), app: text(), device: id(), role: some(),
            clientName: text(), clientVersion: text(), features: list { $0.text() },
            sessionToken: bytes(), appState: maybe { $0.appState() },
            push: maybe {
                PushRegistration(token: $0.bytes(), environment: $0.some(), topic: $0.text())
            }, sync: maybe { $0.sync() }, wake: id(), locale: text(), timeZone: text(),
            utcOffset: u32())
    }

    mutating func welcome() -> Welcome {
        Welcome(
            version: u32(), sessionToken: bytes(), sessionTokenLifetimeMs: u64(),
            serverTimeMs: u64(), epoch: id(), mutationFloor: u64(), keepaliveMs: u32(),
            limits: maybe {
                AdvertisedLimits(
                    bodyBytes: $0.u32(), windowBytes: $0.u32(), windowDeltas: $0.u32(),
                    mutationsUnanswered: $0.u32(), messageBytes: $0.u32(),
                    participantsPerRequest: $0.u32())
            }, features: list { $0.text() }, node: text(), pushTokenHeld: flag(), user: text())
    }

    mutating func delta() -> Delta {
        Delta(
            entries: list { $0.entry() }, from: cursor(), to: cursor(), head: u64(), more: flag(),
            results: list { $0.result() }, mutationFloor: u64(),
            reset: maybe { Reset(reason: $0.some(), retryAfterMs: $0.u32()) }, unread: u32(),
            digestWanted: flag())
    }

    mutating func history() -> FrameBody {
        let bodies: [FrameBody] = [
            .fetch(
                Fetch(
                    conversation: id(), above: u64(), below: u64(), ascending: flag(), limit: u32(),
                    object: object(), receipts: flag(), after: text())),
            .page(
                PageFrame(
                    entries: list { $0.entry() }, first: u64(), last: u64(), more: flag(),
                    position: u64())),
            .snapshot(SnapshotFrame(messages: u32(), pageBytes: u32(), continuation: bytes())),
            .snapshotPage(
                SnapshotPage(
                    conversations: list {
                        SnapshotConversation(
                            conversation: $0.id(), entries: $0.list { $0.entry() },
                            completeFrom: $0.u64(), unread: $0.u32(),
                            participantsComplete: $0.flag())
                    }, entries: list { $0.entry() }, start: cursor(), continuation: bytes(),
                    unread: flag() ? u32() : nil, announcementsComplete: flag())),
        ]
        return bodies[Int.random(in: 0..<bodies.count, using: &generator)]
    }

    mutating func body() -> FrameBody {
        switch some(FrameType.self) {
        case .hello: .hello(hello())
        case .challenge:
            .challenge(Challenge(nonce: bytes(), lifetimeMs: u32(), reason: some()))
        case .authenticate: .authenticate(Authenticate(identityToken: text()))
        case .welcome: .welcome(welcome())
        case .sync: .sync(sync())
        case .delta: .delta(delta())
        case .syncRequest:
            .syncRequest(SyncRequest(head: u64(), kinds: u32(), urgent: flag()))
        case .ack:
            .ack(Ack(applied: u64(), ranges: list { $0.range() }, reads: list { $0.read() }))
        case .mutate: .mutate(mutation())
        case .mutationResult: .mutationResult(result())
        case .fetch, .page, .snapshot, .snapshotPage: history()
        case .signal:
            .signal(Signal(conversation: id(), kind: some(), ttlMs: u32(), user: text()))
        case .appState: .appState(appState())
        case .digest:
            .digest(
                DigestFrame(
                    cursor: cursor(), conversations: maybe { $0.digestSum() },
                    readMarks: maybe { $0.digestSum() }, messages: maybe { $0.digestSum() },
                    positions: u32()))
        case .digestResult:
            .digestResult(
                DigestResult(
                    cursor: cursor(), comparable: flag(), conversations: maybe { $0.digestSum() },
                    readMarks: maybe { $0.digestSum() }, messages: maybe { $0.digestSum() }))
        case .ping: .ping(Ping(nextMs: u32()))
        case .pong: .pong(Pong(nextMs: u32()))
        case .drain: .drain(Drain(deadlineMs: u32(), slotMs: u32(), place: some()))
        case .error:
            .error(
                ErrorFrame(
                    code: u32(), name: text(), retry: some(), retryAfterMs: u32(), detail: text()))
        case .close:
            .close(Close(code: u32(), retry: some(), applied: u64(), retryAfterMs: u32()))
        }
    }

    mutating func frame() -> Frame {
        Frame(body(), request: UInt16(truncatingIfNeeded: u64()), more: flag())
    }

    /// `body` with a few bytes changed, put in, taken out or doubled.
    mutating func damaged(_ body: [UInt8]) -> [UInt8] {
        var body = body
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let place = Int.random(in: 0...body.count, using: &generator)
            let byte: UInt8 =
                chance(3)
                ? [0, 1, 0x7F, 0x80, 0xFF][Int.random(in: 0..<5, using: &generator)]
                : UInt8(truncatingIfNeeded: generator.next())
            switch Int.random(in: 0..<5, using: &generator) {
            case 0 where place < body.count: body[place] = byte
            case 1 where place < body.count: body[place] ^= 1 << (byte & 7)
            case 2: body.insert(byte, at: place)
            case 3 where place < body.count: body.remove(at: place)
            default:
                let end = min(body.count, place + Int(byte & 31))
                body.insert(contentsOf: body[place..<end], at: place)
            }
        }
        return body
    }
}

/// Where random values of this run start: ROUSE_SEED, or any number.
func seed() -> UInt64 {
    let environment = ProcessEnvironment.seed
    let seed = environment ?? UInt64.random(in: 0...UInt64(UInt32.max))
    print("seed \(seed): repeat with ROUSE_SEED=\(seed)")
    return seed
}

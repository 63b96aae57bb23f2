import Model
import Wire

/// Servers that break one thing in the frames a case seldom looks into: DELTAs unasked, peeks,
/// snapshots, pages.
extension Mutant {
    /// Changes DELTAs, with whether one came unasked.
    private static func told(
        _ name: String, _ what: String,
        _ change: @escaping @Sendable (inout Delta, _ isUnasked: Bool) -> Void
    ) -> Mutant {
        says(name, what) { frame, _ in
            guard case .delta(var delta) = frame.body else { return nil }
            change(&delta, frame.request == 0)
            return [Frame(.delta(delta), request: frame.request, more: frame.more)]
        }
    }

    /// Changes the pages of snapshots.
    private static func snapshot(
        _ name: String, _ what: String, _ change: @escaping @Sendable (inout SnapshotPage) -> Void
    ) -> Mutant {
        says(name, what) { frame, _ in
            guard case .snapshotPage(var page) = frame.body else { return nil }
            change(&page)
            return [Frame(.snapshotPage(page), request: frame.request)]
        }
    }

    /// Changes SYNCs.
    private static func sync(
        _ name: String, _ what: String, _ change: @escaping @Sendable (inout SyncFrame) -> Void
    ) -> Mutant {
        hears(name, what) { frame, _, _ in
            guard case .sync(var sync) = frame.body else { return nil }
            change(&sync)
            return Frame(.sync(sync), request: frame.request)
        }
    }

    private static func isPeek(_ delta: Delta) -> Bool {
        delta.to == delta.from && !delta.entries.isEmpty
    }

    /// What belongs to a conversation beside itself, its participants and messages.
    private static func isState(_ entry: Entry) -> Bool {
        switch entry.body {
        case .metadata, .conversationSettings, .readMark: true
        default: false
        }
    }

    static let watchMutants = deltaMutants + snapshotMutants + heardMutants + saidMutants

    private static let deltaMutants: [Mutant] = [
        told("versions-stay", "settings, blocks and tombstones have version 1 for ever") {
            delta, _ in
            for index in delta.entries.indices {
                switch delta.entries[index].body {
                case .conversationSettings, .block, .tombstone: delta.entries[index].version = 1
                default: break
                }
            }
        },
        told("unread-off-unasked", "a DELTA unasked names one unread too many") {
            delta, isUnasked in
            if isUnasked, !delta.more { delta.unread += 1 }
        },
        told("unread-off-in-peeks", "a peek names one unread too many") { delta, _ in
            if isPeek(delta), !delta.more { delta.unread += 1 }
        },
        told("floor-unsaid", "DELTAs unasked and peeks name no floor") { delta, isUnasked in
            if isUnasked || isPeek(delta) { delta.mutationFloor = 0 }
        },
        told("reset-unasked", "a DELTA unasked carries a reset") { delta, isUnasked in
            if isUnasked { delta.reset = Reset(reason: .noCursor) }
        },
        told("head-too-high", "a page with more names a head that is not there yet") { delta, _ in
            if delta.more { delta.head += 5 }
        },
        told("head-too-low", "a page with more names a head just above itself") { delta, _ in
            if delta.more, !isPeek(delta) { delta.head = (delta.to?.seq ?? 0) + 1 }
        },
        told("floor-of-refused", "a number that was refused for a time is said to be taken") {
            delta, _ in
            for result in delta.results where result.code == Code.unavailable.rawValue {
                delta.mutationFloor = result.number
            }
        },
    ]

    private static let snapshotMutants: [Mutant] = [
        snapshot("snapshot-without-state", "a snapshot lacks metadata, settings and read marks") {
            page in
            for index in page.conversations.indices {
                page.conversations[index].entries.removeAll(where: isState)
            }
        },
        snapshot("snapshot-without-receipts", "a snapshot lacks receipts and tombstones") { page in
            for index in page.conversations.indices {
                page.conversations[index].entries.removeAll { entry in
                    switch entry.body {
                    case .receipt, .tombstone: true
                    default: false
                    }
                }
            }
        },
        snapshot("snapshot-without-participants", "a snapshot lacks participants") { page in
            for index in page.conversations.indices {
                page.conversations[index].entries.removeAll { entry in
                    if case .participant = entry.body { true } else { false }
                }
            }
        },
        snapshot("snapshot-without-messages", "a snapshot lacks messages") { page in
            for index in page.conversations.indices {
                page.conversations[index].entries.removeAll { entry in
                    if case .message = entry.body { true } else { false }
                }
            }
        },
        snapshot("snapshot-without-blocks", "a snapshot lacks blocks and announcements") { page in
            page.entries = []
        },
        snapshot("snapshot-unread-off", "a conversation of a snapshot has one unread more") {
            page in
            for index in page.conversations.indices { page.conversations[index].unread += 1 }
        },
        snapshot("snapshot-complete-low", "a snapshot says that it holds all messages") { page in
            for index in page.conversations.indices {
                page.conversations[index].completeFrom = 1
            }
        },
        snapshot("snapshot-complete-high", "a snapshot is complete from one further on") { page in
            for index in page.conversations.indices {
                page.conversations[index].completeFrom += 1
            }
        },
        snapshot("snapshot-without-versions", "entries of a snapshot have no version") { page in
            for index in page.conversations.indices {
                for place in page.conversations[index].entries.indices {
                    page.conversations[index].entries[place].version = 0
                }
            }
        },
        snapshot("snapshot-oldest-first", "a page of a snapshot begins with the oldest") { page in
            page.conversations.reverse()
        },
        hears("snapshot-as-it-likes", "a snapshot holds as many messages as the server likes") {
            frame, _, _ in
            guard case .snapshot(var asked) = frame.body else { return nil }
            asked.messages = 0
            return Frame(.snapshot(asked), request: frame.request)
        },
    ]

    private static let heardMutants: [Mutant] = [
        sync("peek-from-applied", "a peek is from `applied`, whatever its cursor") { sync in
            if sync.mode == .peek { sync.cursor = nil }
        },
        sync("applied-is-the-cursor", "a SYNC's `applied` is its cursor") { sync in
            if let cursor = sync.cursor { sync.applied = cursor.seq }
        },
        sync("page-bytes-over", "pages are 200 bytes larger than asked for") { sync in
            if sync.pageBytes > 0 { sync.pageBytes += 200 }
        },
        Mutant(name: "peek-acknowledges", what: "a peek raises `applied`") { Believing($0) },
        Mutant(name: "results-dropped", what: "of a device 100 results are kept") {
            ShortMemory($0)
        },
        hears("edit-keeps-push", "an edit has no push text") { frame, _, _ in
            guard case .mutate(var mutation) = frame.body,
                case .editMessage(var edit) = mutation.operation
            else { return nil }
            edit.push = nil
            mutation.operation = .editMessage(edit)
            return Frame(.mutate(mutation), request: frame.request)
        },
        hears("mute-without-end", "a mute does not end by itself") { frame, _, _ in
            guard case .mutate(var mutation) = frame.body,
                case .muteConversation(var mute) = mutation.operation
            else { return nil }
            mute.forMs = 0
            mutation.operation = .muteConversation(mute)
            return Frame(.mutate(mutation), request: frame.request)
        },
        hears("app-state-of-hello-ignored", "whoever logs in is in the foreground") { frame, _, _ in
            guard case .hello(var hello) = frame.body else { return nil }
            hello.appState = AppState(phase: .foreground)
            return Frame(.hello(hello), request: frame.request)
        },
        hears("inactive-as-foreground", "an inactive app is taken for one in the foreground") {
            frame, _, _ in
            guard case .appState(var state) = frame.body, state.phase == .inactive else {
                return nil
            }
            state.phase = .foreground
            return Frame(.appState(state), request: frame.request)
        },
        hears("signals-last", "a signal without a time lasts 29 s") { frame, _, _ in
            guard case .signal(var signal) = frame.body, signal.ttlMs == 0 else { return nil }
            signal.ttlMs = 29_000
            return Frame(.signal(signal), request: frame.request)
        },
    ]

    private static let saidMutants: [Mutant] = [
        says("page-without-state", "a PAGE lacks metadata, settings and read mark") { frame, _ in
            guard case .page(var page) = frame.body else { return nil }
            page.entries.removeAll(where: isState)
            return [Frame(.page(page), request: frame.request)]
        },
        says("page-without-hints", "a PAGE lacks what a backend said of a push") { frame, _ in
            guard case .page(var page) = frame.body else { return nil }
            for index in page.entries.indices {
                guard case .message(var message) = page.entries[index].body else { continue }
                message.hints = nil
                page.entries[index].body = .message(message)
            }
            return [Frame(.page(page), request: frame.request)]
        },
        says("old-continuation-malformed", "a continuation of another epoch is malformed") {
            frame, _ in
            guard case .error(var error) = frame.body, error.code == Code.epochChanged.rawValue
            else { return nil }
            error.code = Code.malformed.rawValue
            return [Frame(.error(error), request: frame.request)]
        },
        says("signals-are-typing", "every signal is one of typing") { frame, _ in
            guard case .signal(var signal) = frame.body else { return nil }
            signal.kind = .typing
            return [Frame(.signal(signal))]
        },
        says("digest-elsewhere", "a digest's result names another cursor") { frame, _ in
            guard case .digestResult(var result) = frame.body else { return nil }
            result.cursor?.seq += 1
            return [Frame(.digestResult(result), request: frame.request)]
        },
        says("node-unnamed", "WELCOME names no node") { frame, _ in
            guard case .welcome(var welcome) = frame.body else { return nil }
            welcome.node = ""
            return [Frame(.welcome(welcome), request: frame.request)]
        },
        Mutant(name: "moved-device-stays", what: "whom a login or logout ends is not told") {
            Immortal($0, code: .revoked)
        },
    ]
}

/// Takes what a peek says of `applied` for an ACK.
final class Believing: Defect {
    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .sync(let sync) = frame?.body, sync.mode == .peek, sync.applied > 0 {
            relay.server(Frame(.ack(Ack(applied: sync.applied))))
        }
        relay.toServer += bytes
    }
}

/// Knows no result of a number that 100 others came after.
final class ShortMemory: Defect {
    private var newest: UInt64 = 0

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .sync(let sync) = frame?.body {
            newest = sync.mutations.map(\.number).reduce(newest, max)
        }
        guard let frame, case .mutate(let mutation) = frame.body, mutation.number != 0,
            mutation.number + 100 < newest
        else {
            relay.toServer += bytes
            return
        }
        let result = MutationResult(number: mutation.number, code: Code.resultGone.rawValue)
        relay.client(Frame(.mutationResult(result), request: frame.request))
    }
}

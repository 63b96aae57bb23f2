import Model
import SyncClient
import SyncServer
import Wire

/// `LocalStore` in memory, to the letter of its contract; a fault makes the next call fail.
final class MemoryLocalStore: LocalStore {
    struct Key: Hashable {
        var kind: Int
        var conversation: ConversationID?
        var name: [UInt8]
    }

    struct Row: Equatable {
        var entry: Entry
        var isStale = false
    }

    var state = LocalState()
    private(set) var rows: [Key: Row] = [:]
    private(set) var outbox: [(mutation: Mutation, at: Timestamp)] = []
    /// The number of the logout that was, or may have been, sent.
    private var sentLogout: UInt64?
    /// Up to where mutations may have left.
    private var sentThrough: UInt64 = 0
    private(set) var results: [UInt64: MutationResult] = [:]
    /// What every `apply` gave back, in order.
    private(set) var applied: [Entry] = []
    /// How often `apply` marked everything stale, and swept.
    private(set) var resets = 0
    private(set) var sweeps = 0
    /// From where on the messages of a conversation are whole, and of which the present
    /// snapshot said so.
    private var windows: [ConversationID: UInt64] = [:]
    private var seenInSnapshot: Set<ConversationID> = []
    /// How many snapshots began.
    private(set) var snapshots = 0
    var fault: LocalStoreError?
    /// So many calls are good before the fault.
    var callsBeforeFault = 0

    private func check() throws(LocalStoreError) {
        if callsBeforeFault > 0 {
            callsBeforeFault -= 1
        } else if let fault {
            self.fault = nil
            throw fault
        }
    }

    static func key(_ entry: Entry) -> Key? {
        switch entry.body {
        case .conversationState: Key(kind: 0, conversation: entry.conversation, name: [])
        case .participant(let state):
            Key(kind: 1, conversation: entry.conversation, name: Array(state.user.utf8))
        case .message: Key(kind: 2, conversation: nil, name: entry.object)
        case .receipt(let state):
            Key(kind: 3, conversation: entry.conversation, name: Array(state.user.utf8))
        case .readMark: Key(kind: 4, conversation: entry.conversation, name: [])
        case .tombstone(let state):
            state.conversation
                ? Key(kind: 0, conversation: entry.conversation, name: [])
                : Key(
                    kind: entry.conversation == nil ? 6 : 2, conversation: nil,
                    name: entry.object)
        case .metadata: Key(kind: 5, conversation: entry.conversation, name: [])
        case .announcement: Key(kind: 6, conversation: nil, name: entry.object)
        case .conversationSettings: Key(kind: 7, conversation: entry.conversation, name: [])
        case .block(let state): Key(kind: 8, conversation: nil, name: Array(state.user.utf8))
        case nil: nil
        }
    }

    func load() throws(LocalStoreError) -> LocalState {
        try check()
        var loaded = state
        loaded.firstUnanswered = outbox.first?.mutation.number
        loaded.hasSentLogout = outbox.contains { $0.mutation.number == sentLogout }
        return loaded
    }

    func apply(_ change: LocalChange) throws(LocalStoreError) -> [Entry] {
        try check()
        if change.marksStale {
            dropReads(unlessOf: change.to.epoch)
            resets += 1
            for key in rows.keys { rows[key]?.isStale = true }
            state.isResetting = true
        }
        var fresh: [Entry] = []
        for entry in change.entries {
            guard let key = Self.key(entry) else { continue }
            if let row = rows[key], !row.isStale, row.entry.version >= entry.version { continue }
            let isNew = rows[key]?.entry.version != entry.version
            rows[key] = Row(entry: entry)
            if isNew { fresh.append(entry) }
            settle(entry)
        }
        if change.sweeps {
            sweeps += 1
            rows = rows.filter { !$0.value.isStale }
            state.isResetting = false
        }
        if let history = change.historyThrough { state.historyThrough = history }
        state.cursor = change.to
        applied += fresh
        return fresh
    }

    private func dropReads(unlessOf epoch: Epoch) {
        guard let held = state.cursor?.epoch ?? state.snapshot?.start.epoch, held != epoch
        else { return }
        state.pendingReads.removeAll { $0.conversation != nil }
    }

    private func keep(_ entries: [Entry]) -> [Entry] {
        var fresh: [Entry] = []
        for entry in entries {
            guard let key = Self.key(entry) else { continue }
            if let row = rows[key], !row.isStale, row.entry.version >= entry.version { continue }
            let known = rows[key]?.entry
            rows[key] = Row(entry: entry)
            if known?.version != entry.version || known?.position != entry.position {
                fresh.append(entry)
            }
            settle(entry)
        }
        return fresh
    }

    private func dropStale(
        _ conversation: ConversationID?, _ kinds: Set<Int>, from first: UInt64 = 0,
        through last: UInt64 = .max
    ) -> [Entry] {
        let dropped = rows.filter { key, row in
            row.isStale && kinds.contains(key.kind) && row.entry.conversation == conversation
                && row.entry.position >= first && row.entry.position <= last
        }
        for key in dropped.keys { rows[key] = nil }
        return dropped.values.map(\.entry)
    }

    func applyHistory(_ change: HistoryChange) throws(LocalStoreError) -> [Entry] {
        try check()
        let fresh = keep(change.entries)
        if let complete = change.complete {
            _ = dropStale(
                complete.conversation, [2], from: complete.first, through: complete.last)
        }
        applied += fresh
        return fresh
    }

    /// Here what waits for a conversation is in the outbox.
    func sendAwaited(at time: Timestamp) -> UInt64? { nil }

    func applySnapshot(
        _ change: SnapshotChange, at time: Timestamp
    ) throws(LocalStoreError) -> (applied: [Entry], lastMutation: UInt64) {
        try check()
        if change.isFirst {
            dropReads(unlessOf: change.start.epoch)
            snapshots += 1
            seenInSnapshot = []
            for key in rows.keys { rows[key]?.isStale = true }
            state.isResetting = false
            state.historyThrough = change.start.seq
            state.cursor = nil
        }
        let before = reach()
        var fresh = keep(change.page.entries)
        var lost: [Entry] = []
        for page in change.page.conversations {
            fresh += keep(page.entries)
            lost += dropStale(page.conversation, [0, 4, 5, 7])
            if page.participantsComplete { _ = dropStale(page.conversation, [1, 3]) }
            lost += dropStale(page.conversation, [2], from: page.completeFrom)
            if let id = page.conversation {
                if !seenInSnapshot.contains(id) { lost += stale(below: page.completeFrom, in: id) }
                let known = seenInSnapshot.contains(id) ? windows[id] : nil
                windows[id] = min(known ?? .max, page.completeFrom)
                seenInSnapshot.insert(id)
            }
        }
        state.snapshot = LocalSnapshot(
            start: change.start, continuation: change.page.continuation,
            resendSince: change.resendSince)
        let after = reach()
        if change.isLast {
            _ = dropStale(nil, [8])
            for (key, row) in rows where key.kind == 0 && row.isStale {
                lost += dropStale(row.entry.conversation, [0, 1, 2, 3, 4, 5, 7])
            }
            state.snapshot = nil
            state.cursor = change.start
        }
        if let since = change.resendSince?.milliseconds {
            let waiting = takeMutations(from: change.mutationFloor + 1)
            defer { append(waiting) }
            state.lastMutation = max(state.lastMutation, change.mutationFloor)
            for entry in lost.sorted(by: { $0.position < $1.position }) {
                guard case .message(let message) = entry.body, message.sender == state.user,
                    message.sentMs >= since, let id = entry.conversation,
                    let floor = after[id] ?? 0,
                    message.position > min(floor, (before[id] ?? 0) ?? 0)
                else { continue }
                let again = SendMessage(
                    conversation: entry.conversation, message: MessageID(entry.object),
                    parts: message.parts, push: message.push)
                _ = try enqueue(.sendMessage(again), at: time)
            }
        }
        applied += fresh
        return (fresh, state.lastMutation)
    }

    /// Above which position the user sees messages of each conversation; `nil`: the user has left.
    private func reach() -> [ConversationID: UInt64?] {
        var found: [ConversationID: UInt64?] = [:]
        for entry in rows.values.map(\.entry) {
            guard let conversation = entry.conversation,
                case .participant(let participant) = entry.body, participant.user == state.user
            else { continue }
            found[conversation] = .some(participant.removed ? nil : participant.joinedPosition)
        }
        return found
    }

    private func stale(below position: UInt64, in conversation: ConversationID) -> [Entry] {
        rows.values.filter {
            $0.isStale && $0.entry.conversation == conversation && $0.entry.position < position
        }.map(\.entry)
    }

    func orphans(limit: Int) throws(LocalStoreError) -> [ConversationID] {
        try check()
        let known = Set(rows.filter { $0.key.kind == 0 }.values.map(\.entry.conversation))
        let all = Set(rows.values.compactMap(\.entry.conversation))
        return all.filter { !known.contains($0) }.sorted().prefix(limit).map { $0 }
    }

    func digest() throws(LocalStoreError) -> LocalDigest {
        try check()
        var digest = LocalDigest()
        var messages: [ConversationID: [Entry]] = [:]
        for entry in rows.values.map(\.entry) {
            guard let conversation = entry.conversation else { continue }
            switch entry.body {
            case .conversationState:
                digest.conversations.add(
                    .conversation, id: conversation.bytes, version: entry.version)
            case .readMark:
                digest.readMarks.add(.readMark, id: conversation.bytes, version: entry.version)
            case .message: messages[conversation, default: []].append(entry)
            default: break
            }
        }
        for (conversation, entries) in messages {
            guard let from = windows[conversation], from > 1 else { continue }
            let newest = entries.map(\.position).max() ?? 0
            digest.positions = min(
                digest.positions, newest < from ? 1 : UInt32(clamping: newest - from + 1))
        }
        for entries in messages.values {
            let newest = entries.map(\.position).max() ?? 0
            for entry in entries where entry.position + UInt64(digest.positions) > newest {
                digest.messages.add(.message, id: entry.object, version: entry.version)
            }
        }
        return digest
    }

    func saveSession(token: [UInt8], user: String) throws(LocalStoreError) {
        try check()
        if !state.user.isEmpty && state.user != user {
            rows = [:]
            outbox = []
            results = [:]
            state = LocalState()
        }
        state.sessionToken = token
        state.user = user
    }

    func erase(keepsLogout: Bool) throws(LocalStoreError) {
        try check()
        let logout = outbox.first { $0.mutation.isLogout }
        var left = LocalState(lastMutation: state.lastMutation)
        if keepsLogout, logout != nil, !state.sessionToken.isEmpty {
            (left.sessionToken, left.user) = (state.sessionToken, state.user)
            left.isLeaving = true
        }
        (rows, results, outbox, state) = ([:], [:], [], left)
        if let logout, state.isLeaving { outbox = [logout] }
    }

    func forgetSession() throws(LocalStoreError) {
        try check()
        state.sessionToken = []
    }

    func savePush(_ push: PushRegistration?) throws(LocalStoreError) {
        try check()
        state.push = push
    }

    func enqueue(
        _ operation: Mutation.Operation, at time: Timestamp, leaves: Bool
    ) throws(LocalStoreError) -> UInt64 {
        try check()
        state.lastMutation += 1
        outbox.append((Mutation(number: state.lastMutation, operation: operation), time))
        if leaves { sentThrough = state.lastMutation }
        return state.lastMutation
    }

    func markSent(through number: UInt64) throws(LocalStoreError) {
        try check()
        sentThrough = max(sentThrough, number)
    }

    func withdraw(_ message: MessageID) throws(LocalStoreError) -> [MutationResult]? {
        try check()
        let numbers = outbox.map(\.mutation).filter {
            $0.number > sentThrough && $0.object == message.bytes
        }.map(\.number)
        let isMade = outbox.contains {
            guard case .sendMessage = $0.mutation.operation else { return false }
            return numbers.contains($0.mutation.number)
        }
        guard isMade else { return nil }
        outbox.removeAll { numbers.contains($0.mutation.number) }
        state.lastMutation += 1
        return numbers.map { MutationResult(number: $0, code: Code.gone.rawValue) }
            + [MutationResult(number: state.lastMutation)]
    }

    func mutations(
        after number: UInt64, limit: Int, now: Timestamp
    ) throws(LocalStoreError) -> [Mutation] {
        try check()
        return outbox.filter { $0.mutation.number > number }.prefix(limit).map { queued in
            var mutation = queued.mutation
            mutation.delayMs = UInt32(clamping: now.since(queued.at))
            return mutation
        }
    }

    func markLogoutSent(_ number: UInt64) throws(LocalStoreError) {
        try check()
        sentLogout = number
    }

    func saveResults(_ results: [MutationResult]) throws(LocalStoreError) {
        try check()
        for result in results {
            guard let index = outbox.firstIndex(where: { $0.mutation.number == result.number })
            else { continue }
            outbox.remove(at: index)
            self.results[result.number] = result
        }
    }

    func result(of number: UInt64) throws(LocalStoreError) -> MutationResult? {
        try check()
        return results[number]
    }

    func raiseMutationNumbers(above floor: UInt64) throws(LocalStoreError) {
        try check()
        state.lastMutation = max(state.lastMutation, floor)
    }

    func renumberMutations(
        from first: UInt64, above floor: UInt64
    ) throws(LocalStoreError) {
        try check()
        state.lastMutation = max(state.lastMutation, floor)
        append(takeMutations(from: first))
        sentThrough = state.lastMutation
    }

    private func takeMutations(from first: UInt64) -> [(mutation: Mutation, at: Timestamp)] {
        defer { outbox.removeAll { $0.mutation.number >= first } }
        return outbox.filter { $0.mutation.number >= first }
    }

    private func append(_ waiting: [(mutation: Mutation, at: Timestamp)]) {
        for var queued in waiting {
            state.lastMutation += 1
            if queued.mutation.number == sentLogout { sentLogout = state.lastMutation }
            queued.mutation.number = state.lastMutation
            outbox.append(queued)
        }
    }

    private func settle(_ entry: Entry) {
        switch entry.body {
        case .readMark(let mark):
            state.pendingReads.removeAll {
                $0.conversation == entry.conversation && $0.isCovered(by: mark)
            }
        case .announcement(let announcement):
            guard announcement.read else { return }
            state.pendingReads.removeAll { $0.announcement?.bytes == entry.object }
        case .tombstone where entry.conversation == nil:
            state.pendingReads.removeAll { $0.announcement?.bytes == entry.object }
        default: break
        }
    }

    func endReads(
        _ answered: [ReadReceipt]
    ) throws(LocalStoreError) -> [ReadReceipt] {
        try check()
        let reach = reach()
        let ended = answered.filter { receipt in
            guard state.pendingReads.contains(receipt) else { return false }
            guard let id = receipt.conversation else { return true }
            if isMarked(receipt) { return true }
            if case .some(.none) = reach[id] { return true }
            let own = rows[Key(kind: 0, conversation: id, name: [])]
            if case .tombstone = own?.entry.body { return true }
            return !rows.values.contains { $0.entry.conversation == id }
        }
        for receipt in ended {
            state.pendingReads.removeAll { $0 == receipt }
            let key = Key(kind: 6, conversation: nil, name: receipt.announcement?.bytes ?? [])
            guard var entry = rows[key]?.entry, case .announcement(var read) = entry.body else {
                continue
            }
            read.read = true
            entry.body = .announcement(read)
            rows[key]?.entry = entry
        }
        return ended
    }

    func addRead(_ receipt: ReadReceipt) throws(LocalStoreError) -> Bool {
        try check()
        if isMarked(receipt) { return false }
        guard
            let index = state.pendingReads.firstIndex(where: { $0.subject == receipt.subject })
        else {
            state.pendingReads.append(receipt)
            return true
        }
        let before = state.pendingReads[index]
        state.pendingReads[index].merge(receipt)
        return state.pendingReads[index].normalized != before.normalized
    }

    private func isMarked(_ receipt: ReadReceipt) -> Bool {
        rows.values.contains { row in
            guard !row.isStale, row.entry.conversation == receipt.conversation else { return false }
            return switch row.entry.body {
            case .readMark(let mark): receipt.isCovered(by: mark)
            case .announcement(let state):
                state.read && row.entry.object == receipt.announcement?.bytes
            default: false
            }
        }
    }
}

extension Entry {
    /// Of a message, in its conversation; else 0.
    var position: UInt64 {
        switch body {
        case .message(let state): state.position
        case .tombstone(let state): state.position
        default: 0
        }
    }
}

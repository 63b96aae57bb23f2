import Model
import Wire

// What each kind of request may cost the only writer, in rows read and written. One row is 5 to
// 12 us of it on SQLite, so 1,000 rows hold up everybody for about 10 ms. A debug build, and so
// every test and simulation, stops at a request that exceeds its ceiling; a release build counts
// (`rouse_store_rows_read_total`, `rouse_store_request_rows_max`).

extension StoreRequest {
    /// What the request is, for metrics and messages.
    public var kind: String {
        switch self {
        case .openSession: "open_session"
        case .sync: "sync"
        case .acknowledge: "acknowledge"
        case .changeAppState: "app_state"
        case .mutate: "mutate"
        case .endSession: "end_session"
        case .abandonSession: "abandon_session"
        case .reauthenticate: "reauthenticate"
        case .change(_, let change, _): change.kind
        case .administer: "administer"
        case .webhooks: "webhooks"
        case .schedules: "schedules"
        case .campaigns: "campaigns"
        case .continueFanOut: "fan_out"
        case .continueDeletions: "deletions"
        case .coalesceReceipts: "receipts"
        case .enforceRetention: "retention"
        case .start: "start"
        case .restore: "restore"
        case .claimPushes: "claim_pushes"
        case .finishPush: "finish_push"
        case .keepProviderToken: "provider_token"
        case .keepTicketKeys: "ticket_keys"
        case .sweepWakes: "sweep"
        case .keepAlive: "alive"
        case .rested: "rested"
        case .beat: "beat"
        case .order: "order"
        }
    }

    func isWithinCeiling(_ rows: RowCount, limits: RuleLimits) -> Bool {
        ceiling(limits).map { rows.total <= $0 } ?? true
    }

    /// The most rows it may read and write together; `nil`: nobody waits for it.
    private func ceiling(_ limits: RuleLimits) -> Int? {
        let costs = RowCosts(limits)
        switch self {
        // A login looks at all devices of the user and may forget some; what it takes from
        // another user's device is that one's alerts.
        case .openSession(let open):
            return costs.turn + costs.login + costs.report
                + (open.sync?.reads.count ?? 0) * costs.reading
        case .sync(let sync):
            return costs.turn + costs.login + costs.report
                + sync.sync.reads.count * costs.reading
        // One report, and what it tells of reading until the turn is spent.
        case .acknowledge(let told):
            return costs.turn + costs.report + told.reads.count * costs.reading
        case .endSession, .abandonSession: return costs.turn + costs.report
        case .changeAppState, .reauthenticate, .finishPush:
            return costs.device
        case .mutate: return costs.turn + costs.change
        case .change(_, let change, _): return change.ceiling(costs)
        case .administer: return costs.devices * costs.forget + costs.sessions
        case .campaigns(.advance), .schedules(.publishDue): return costs.turn + costs.recipient
        case .webhooks, .schedules, .campaigns: return costs.turn + costs.queue
        case .continueFanOut: return costs.turn + costs.change
        case .coalesceReceipts: return costs.turn + costs.receipts
        // Each of its parts has a share of the turn, and the last step of each may exceed it.
        case .enforceRetention: return 2 * costs.turn + costs.device
        case .continueDeletions(let rows): return costs.turn + costs.change + max(1, rows) * 16
        case .start: return costs.queue
        // A backup made into a store, before anybody is served.
        case .restore: return nil
        // The last few devices may exceed the turn.
        case .claimPushes: return costs.turn + costs.queue + 2 * costs.device
        // Each of its parts goes on by one device, whatever the others took.
        case .sweepWakes: return costs.turn + costs.queue + 4 * costs.device
        case .keepAlive, .rested: return costs.queue
        // The first turn over the sessions of a node that is gone.
        case .beat, .order: return costs.turn + costs.queue
        case .keepProviderToken, .keepTicketKeys: return 16
        }
    }
}

extension Change {
    fileprivate var kind: String {
        switch self {
        case .createConversation: "create_conversation"
        case .addParticipants: "add_participants"
        case .publish: "publish"
        case .removeParticipants: "remove_participants"
        case .editMessage: "edit_message"
        case .deleteMessage: "delete_message"
        case .deleteConversation: "delete_conversation"
        case .changeMetadata: "change_metadata"
        case .announce: "announce"
        case .takeBackAnnouncement: "take_back_announcement"
        case .deleteUser: "delete_user"
        case .mute: "mute"
        case .block: "block"
        }
    }

    fileprivate func ceiling(_ costs: RowCosts) -> Int {
        switch self {
        // It is in feeds until the turn is spent; the rest of them follow in the background.
        case .publish, .editMessage, .deleteMessage, .changeMetadata, .announce,
            .takeBackAnnouncement:
            costs.turn + costs.recipient
        // The same, with what is named in the request or looked through for it.
        case .createConversation, .addParticipants, .removeParticipants, .deleteConversation,
            .mute, .block:
            costs.turn + costs.change
        // Every device of the user is logged out.
        case .deleteUser: costs.devices * costs.forget + costs.change
        }
    }
}

/// What the ceilings are made of.
private struct RowCosts {
    /// After so many rows what is left waits for the next turn.
    let turn: Int
    /// Live and forgotten devices of one user.
    let devices: Int
    /// One device looked at and told at its worst: it is behind by more than one look reaches,
    /// and as many alerts are written as one demotion writes.
    let device = 2_560
    /// Logs out one device.
    let forget = 96

    init(_ limits: RuleLimits) {
        turn = limits.rowsPerTurn
        devices = 2 * limits.devicesPerUser
        names = limits.participantsPerRequest
        step = limits.receiptStep
        conversations = limits.receiptConversations
        members = limits.participantsPerRequest
        mutations = limits.mutationsPerRequest
        listed = limits.sessionsPerTurn
    }

    private let names: Int
    private let step: Int
    private let conversations: Int
    private let members: Int
    private let mutations: Int
    private let listed: Int

    /// One recipient above the turn, all of whose devices are owed something; and the request
    /// itself.
    var recipient: Int { devices * 24 + 512 }
    /// Users named in the request, each looked at and written.
    var change: Int { recipient + names * 8 }
    /// `applied`, ranges and what they close; the entries that count as delivered; one
    /// conversation read, with a recount and every device told.
    var report: Int { 4 * AlertRoom.rows + 8 * step + devices * 24 + 4_352 }
    /// One more conversation read, on every device; the session hands over few at a time.
    var reading: Int { devices * 12 + 64 }
    /// All devices listed, tokens rotated, two devices logged out.
    var login: Int { devices + 4 * forget + 2 * AlertRoom.rows + mutations * 8 }
    /// One receipt told, with the messages looked at for their authors.
    var receipts: Int { 3 * step + 6 * step + conversations * 8 }
    /// Rows of sessions ended in one turn, each read and written.
    var sessions: Int { 2 * listed + 64 }
    /// A claim or sweep looks at queues, each by one row.
    var queue: Int { 16_384 }
}

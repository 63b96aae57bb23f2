import Model
public import Wire

extension SyncedSession {
    init(epoch: Epoch, _ feed: OpenFeed, _ device: DeviceRecord) {
        self.init(
            epoch: epoch, head: feed.user.head, applied: device.applied,
            mutationFloor: device.mutationFloor)
    }
}

extension ResetReason? {
    /// Numbers, positions and what waits on the device are of a history that this server does
    /// not have.
    public var isOfAnotherHistory: Bool { self == .epochChanged || self == .cursorAhead }
}

extension Work {
    /// SYNC: what it tells in one step, then each mutation in its own.
    func sync(_ request: SyncWrite) throws(RuleFailure) -> StoreAnswer {
        let session = request.session
        let (reset, after, hadPushRows) = try step { () throws(RuleFailure) in
            var feed = try self.openFeed(session.app, session.user)
            var device = try self.lockDeviceOnly(session)
            let row = try self.current(session)
            let reset = try self.take(
                request.sync, of: session, freshEpochHalf: request.freshEpochHalf, &feed, &device)
            device.lastSeenAt = self.now
            try self.put(device)
            try self.close(feed)
            return (reset, try self.pace(reset, of: session.app), row.hadPushRows)
        }
        let results =
            reset.isOfAnotherHistory
            ? request.sync.mutations.map { refusedForNow($0) }
            : try mutateAll(request.sync.mutations, session)
        var synced = try standing(
            of: session, results: results, reset: reset, hadPushRows: hadPushRows)
        synced.resetAfter = after
        return .synced(synced)
    }

    /// Takes cursor, `applied` and read receipts. The caller stores feed and device.
    ///
    /// - Returns: why the cursor cannot be continued. Then nothing is applied, whatever the SYNC
    ///   says: its numbers are of another history.
    func take(
        _ sync: SyncFrame, of session: SessionKey, freshEpochHalf: UInt64,
        _ feed: inout OpenFeed, _ device: inout DeviceRecord
    ) throws(RuleFailure) -> ResetReason? {
        guard sync.mutations.count <= limits.mutationsPerRequest else {
            throw .refused(.limit, "more than \(limits.mutationsPerRequest) mutations")
        }
        guard session.role == .app else {
            // SES-17: an extension's cursor, `applied` and mutations are not the app's.
            guard sync.mode == .peek, sync.mutations.isEmpty, sync.reads.isEmpty else {
                throw .refused(.forbidden, "an extension only peeks")
            }
            return nil
        }
        let before = device.applied
        let reset = try resetReason(sync, feed.user)
        if reset == .cursorAhead { feed.user.epochHalf = freshEpochHalf & .halfMask }
        // What the device says counts, also when it is less than before: a restored phone (P3).
        let told = reset == nil ? min(sync.applied, sync.cursor?.seq ?? 0) : 0
        if told < before || reset != nil { device.storedRanges = [] }
        try advance(&device, to: told, feed.user)
        countDelivery(from: told, before: before, of: &device, head: feed.user.head)
        try cover(&device)
        // SYN-32: a position named there may be another message's here.
        let reads =
            reset.isOfAnotherHistory
            ? sync.reads.filter { $0.conversation == nil } : sync.reads
        try read(reads, session, &feed, &device)
        return reset
    }

    private func resetReason(
        _ sync: SyncFrame, _ user: UserRecord
    ) throws(RuleFailure) -> ResetReason? {
        guard let cursor = sync.cursor else { return .noCursor }
        if try cursor.epoch != epoch(of: user) { return .epochChanged }
        if cursor.seq > user.head { return .cursorAhead }
        // A device that began at 0 after the removed entries were written holds nothing that they
        // would have removed. Only what the device keeps with its cursor says so (SYN-34), not
        // what the server remembers of it: it may be any older copy of itself.
        let isKnown = max(cursor.seq, sync.resetHead) >= user.compactedThrough
        return isKnown ? nil : .cursorTooOld
    }

    /// SYN-26: when this reset has its turn. After a restore all devices of an app come to be
    /// reset at once: some at a time are let begin, and each further one gets a time of its own,
    /// so that what others do is not held up and nobody comes back together. A first login
    /// waits for nobody.
    func pace(_ reset: ResetReason?, of app: AppID) throws(RuleFailure) -> Milliseconds {
        guard let reset, reset != .noCursor else { return 0 }
        let name = MetaRecord.resetsPrefix + app.name
        let known = try record(MetaRecord.self, [.text(name)], lock: .wait)?.number ?? 0
        let burst = limits.resetInterval * limits.resetBurst
        let earliest = now.milliseconds > burst ? now.milliseconds - burst : 0
        // A clock that was set back leaves a turn that is too far away to be one.
        let isSound = known <= now.milliseconds + limits.resetWaitMax
        let turn = max(earliest, isSound ? known : 0) + limits.resetInterval
        try put(MetaRecord(name: name, number: turn))
        return min(turn > now.milliseconds ? turn - now.milliseconds : 0, limits.resetWaitMax)
    }

    /// Where the session stands after its writes.
    func standing(
        of session: SessionKey, results: [MutationResult], reset: ResetReason?, hadPushRows: Bool
    ) throws(RuleFailure) -> SyncedSession {
        guard
            let user = try record(UserRecord.self, [.app(session.app), .user(session.user)]),
            let device = try record(
                DeviceRecord.self,
                [.app(session.app), .user(session.user), .identifier(session.device)])
        else { throw try ended(session) }
        return SyncedSession(
            epoch: try epoch(of: user), head: user.head, applied: device.applied,
            mutationFloor: device.mutationFloor, results: results, reset: reset,
            hadPushRows: hadPushRows, deliveryFailures: device.deliveryFailures)
    }

    /// SYN-31: a SYNC from where the last one stood, while there is something above: the page that
    /// is sent now was sent before, and nothing of it came to be applied.
    private func countDelivery(
        from told: UInt64, before: UInt64, of device: inout DeviceRecord, head: UInt64
    ) {
        let isAgain = told == before && told < head
        device.deliveryFailures =
            isAgain ? min(device.deliveryFailures + 1, UInt64(UInt32.max)) : told < head ? 1 : 0
    }

    func epoch(of user: UserRecord) throws(RuleFailure) -> Epoch {
        let half = try record(MetaRecord.self, [.text(MetaRecord.epochName)])?.number ?? 0
        return Epoch(high: half, low: user.epochHalf)
    }

    /// ACK, or `applied` persisted later.
    func acknowledge(_ request: Acknowledge) throws(RuleFailure) -> StoreAnswer {
        let session = request.session
        guard request.ranges.count <= limits.rangesPerRequest else {
            throw .refused(.limit, "more than \(limits.rangesPerRequest) ranges")
        }
        var feed = try openFeed(session.app, session.user)
        var device = try lockDeviceOnly(session)
        _ = try current(session)
        let head = feed.user.head
        try require(
            request.applied <= head, .ackAhead, "applied \(request.applied) is above \(head)")
        for range in request.ranges {
            try require(range.first <= range.last, .malformed, "an empty range")
            try require(range.last <= head, .ackAhead, "a range ends above \(head)")
        }
        if session.role == .extension {
            guard request.applied == 0, request.reads.isEmpty else {
                throw .refused(.forbidden, "an extension only acknowledges ranges")
            }
        } else {
            if request.applied > device.applied { device.deliveryFailures = 0 }
            try advance(&device, to: max(request.applied, device.applied), feed.user)
            try cover(&device, ranges: request.ranges, completesSync: request.completesSync)
            try read(request.reads, session, &feed, &device)
        }
        try deliver(request.ranges, session)
        device.lastSeenAt = now
        try put(device)
        try close(feed)
        return .acknowledged(head: feed.user.head)
    }

    /// Sets `applied`, up or down. What is newly applied is delivered: receipts become due.
    func advance(
        _ device: inout DeviceRecord, to applied: UInt64, _ user: UserRecord
    ) throws(RuleFailure) {
        device.applied = applied
        if user.receiptable(applied) > user.receipted {
            try receiptsAreDue(device.app, device.user)
        }
    }

    /// Cancels the wakes and alerts that the app's `applied` and ranges cover. The caller stores
    /// the device.
    func cover(
        _ device: inout DeviceRecord, ranges: [InclusiveRange] = [], completesSync: Bool = false
    ) throws(RuleFailure) {
        var covered = device
        try noteWakes(
            try wakeRules.applied(&covered, ranges: ranges, completesSync: completesSync))
        device = covered
    }
}

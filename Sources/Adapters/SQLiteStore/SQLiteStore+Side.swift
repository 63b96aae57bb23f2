public import Model

// Moving ten megabytes of journal takes tens of milliseconds, most of them waiting for the disk.
// Where there is another thread for it, the store writes on meanwhile, and moves itself only the
// little that came at last: nothing may be appended between that and the journal's new beginning.
extension SQLiteStore {
    public func journalTurn() throws(StoreError) -> JournalTurn {
        precondition(!isBusy, "a turn of the journal inside a body of the same store")
        let (connection, _) = try usable()
        if let side, side.isTaken { return .nothing }
        if let side, side.isHeld {
            guard connection.journalPages > side.pages else { return .nothing }
            side.taken()
            lock?.saysUnsynced = options.syncs
            return .move(side)
        }
        guard wantsMove else { return .nothing }
        do throws(StoreError) {
            // Both of its connections are opened by the path.
            try files.check()
            try madeSide(connection).hold()
            return .nothing
        } catch {
            // The process may open no more files, say. The store's own connection is there.
            closeSide()
            return isCheckpointDue ? .checkpoint : .nothing
        }
    }

    /// Once a part has been moved, others follow at once, each smaller than the one before, until
    /// so little is left that the journal can begin anew: written over and over, a short one stays
    /// in the processor's caches.
    private var wantsMove: Bool {
        if isCheckpointDue { return true }
        let isLong = journalSize > options.journalStep
        return isLong && !isMoveHindered && unmovedBytes > options.journalRest
    }

    private func madeSide(_ connection: Connection) throws(StoreError) -> SideCheckpoint {
        if let side, side.writer === connection { return side }
        closeSide()
        let made = try SideCheckpoint(beside: connection, options: options)
        side = made
        return made
    }

    public func journalMoved() throws(StoreError) {
        guard let side else { preconditionFailure("a move of no journal has ended") }
        let moved: Int
        do throws(StoreError) {
            moved = try side.ended()
        } catch {
            checkpointError = error
            if side.isUnsynced { throw noteUnsynced(error) }
            lock?.saysUnsynced = false
            if current?.connection !== side.writer { closeSide() }
            if let distrust = side.distrust {
                closeSide()
                // A sync that failed there may have lost what this connection thinks is on disk.
                if let current { drop(current.connection) }
                noteDamage(distrust)
            }
            throw error
        }
        lock?.saysUnsynced = false
        guard let current, current.connection === side.writer else {
            // Dropped meanwhile: opening it anew moves the rest.
            return closeSide()
        }
        checkpointedPages = side.pages
        isJournalUnmoved = true
        isMoveHindered = moved < side.pages
        checkpointError = nil
        if !isMoveHindered, unmovedBytes <= options.journalRest { try checkpoint() }
    }

    /// After a sync has failed of a checkpoint that did not move everything
    /// (`Connection.isUnsynced`). The journal still has it all, and must keep it.
    func noteUnsynced(_ error: StoreError) -> StoreError {
        if let current { drop(current.connection) }
        closeSide()
        lock?.saysUnsynced = true
        let lasting = Self.unsynced("\(error)")
        noteDamage(lasting)
        return lasting
    }

    static func unsynced(_ reason: String) -> StoreError {
        .unavailable(
            "the disk did not take what was moved into the database, and the journal must be "
                + "moved once more: see to the disk, end the server and everything else that has "
                + "the file open, such as a backup, and then start the server. \(reason)")
    }

    func closeSide() {
        side?.release()
        side?.close()
        side = nil
    }
}

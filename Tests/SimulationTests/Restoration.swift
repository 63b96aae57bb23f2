import Feed
import Model
import Wire

// Phones and servers that go back to an earlier copy of themselves.
extension Simulation {
    /// Phones are backed up; now and then one is set up from its backup.
    func phoneBackups() {
        clock.after(1_000 + chance.upTo(9_000)) { [unowned self] in
            guard !self.isCalm else { return }
            if let device = self.chance.one(of: self.devices) {
                if self.chance.once(in: 4) {
                    try device.restore { conversations in
                        (0..<2).compactMap { _ in self.message(to: conversations, of: device) }
                    }
                } else {
                    try device.backUp()
                }
            }
            self.phoneBackups()
        }
    }

    /// The server's machine is backed up and, now and then, lost.
    func serverBackups() {
        clock.after(5_000 + chance.upTo(30_000)) { [unowned self] in
            guard !self.isCalm else { return }
            if self.chance.once(in: 3) {
                try self.restoreServer()
            } else {
                try self.server.backUp()
            }
            self.serverBackups()
        }
    }

    private func restoreServer() throws {
        guard try server.restore() else { return }
        reached.count("the server restored")
        // It takes a while: nothing of before is still on its way. Of the numbers that icons were
        // sent since the copy was made, it knows nothing.
        for device in devices {
            device.cutLink(silently: false)
            device.doubtIcon()
        }
        forget(allBut: Set(try rows(MessageRecord.self).map(\.message)))
        try server.start()
        for user in Set(devices.map(\.user)).subtracting(suspended).sorted() {
            administer(.resumeUser(Self.app, UserID(user)))
        }
    }
}

public import Model

/// Why sessions end together.
public enum SessionEndCause: UInt64, StoredNumber, CaseIterable {
    /// Another process serves now.
    case processGone = 1
    case suspended = 2
    case removed = 3
}

/// Where a turn over sessions stopped.
public struct SessionPlace: Equatable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var role: UInt64

    init(app: AppID, user: UserID, device: DeviceID, role: UInt64) {
        self.app = app
        self.user = user
        self.device = device
        self.role = role
    }

    /// - Parameter row: a session as it is stored; `nil`: its key is that of none.
    init?(_ row: [ColumnValue]) {
        guard row.count >= 4, case .blob(let bytes) = row[2], let device = DeviceID(bytes),
            case .integer(let role) = row[3]
        else { return nil }
        self.init(
            app: AppID(row[0].words), user: UserID(row[1].words), device: device,
            role: UInt64(max(0, role)))
    }
}

/// Sessions that are being ended, some in each turn: of one app, or with an empty name of all.
public struct SessionEndRecord: Record, Equatable {
    public var app: AppID
    public var cause: SessionEndCause
    /// The process that serves now: its sessions live.
    public var boot: BootID = .blank
    /// Until when the devices of a process that is gone are expected back.
    public var until: Timestamp = .blank
    /// The last session looked at; `nil`: none was.
    public var last: SessionPlace?

    var key: [ColumnValue] { [.app(app), .unsigned(cause.rawValue)] }

    /// Where the next turn begins, in the order of the sessions it is about.
    var after: [ColumnValue]? {
        last.map { last in
            let own: [ColumnValue] = [
                .user(last.user), .identifier(last.device), .unsigned(last.role),
            ]
            return app.name.isEmpty ? [.app(last.app)] + own : own
        }
    }
}

extension SessionEndRecord {
    public static let table = Table("session_end", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        cause = c.key("cause", row?.cause)
        boot = c.value("boot", row?.boot)
        until = c.value("until", row?.until)
        // An empty app: none was.
        let place = SessionPlace(
            app: c.value("last_app", row?.last?.app ?? .blank),
            user: c.value("last_user", row?.last?.user ?? .blank),
            device: c.value("last_device", row?.last?.device ?? .blank),
            role: c.value("last_role", row?.last?.role ?? 0))
        last = place.app.name.isEmpty ? nil : place
    }
}

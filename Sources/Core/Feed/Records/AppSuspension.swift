import Model

/// When an app was suspended last. What is due by then, and comes due meanwhile, waits for the app.
struct AppSuspension {
    var since: Timestamp
    /// `nil`: it is suspended still.
    var until: Timestamp?

    static func key(of app: AppID) -> [ColumnValue] {
        [.text(MetaRecord.suspensionsPrefix + app.name)]
    }

    init(since: Timestamp, until: Timestamp? = nil) {
        self.since = since
        self.until = until
    }

    init(_ record: MetaRecord) {
        since = Timestamp(milliseconds: record.number)
        until = Identifier<Never>(record.bytes).map { Timestamp(milliseconds: $0.low) }
    }

    func record(of app: AppID) -> MetaRecord {
        MetaRecord(
            name: MetaRecord.suspensionsPrefix + app.name, number: since.milliseconds,
            bytes: until.map { Identifier<Never>(high: 0, low: $0.milliseconds).bytes } ?? [])
    }

    /// Whether the app was suspended then. Nothing of a suspended app is claimed: where there is no
    /// end, a node of an earlier version has resumed the app.
    func includes(_ moment: Timestamp) -> Bool {
        since < moment && until.map { moment <= $0 } ?? false
    }
}

extension Coverage {
    /// Why no case cites a clause, by its id.
    static let reasonsUncited: [String: String] = [
        "CON-3": "what a phase does is seen in the pushes that leave: WakeTests",
        "CON-4": "pushes go to APNs: FeedTests and `rouse demo` show them",
        "CON-16": "a listener without TLS is the operator's: SyncServiceTests",
        "FRM-14": "a property of the schema, not of a peer",
        "FRM-16": "memory is not on the wire: FloodTests",
        "FRM-32": "a unit, which every moment and duration uses",
        "FRM-41": "how the schema changes: there is one version",
        "FRM-43": "how the protocol changes: there is one version",
        "HIS-10": "rows of a client's store: SyncTests and StoreContractTests",
        "HIS-15": "how large a page should be depends on what others wrote: SyncTests",
        "HIS-21": "takes a server that was restored: SyncTests",
        "HIS-22": "a client's choice",
        "HIS-38": "takes a server that was restored: StoreContractTests and the simulation",
        "HIS-39": "takes a server that was restored: StoreContractTests",
        "HIS-23": "follows a client's own reset: SyncTests",
        "HIS-32": "a report is read by people: the server's log holds the counts",
        "HIS-34": "a client's repair: SyncTests",
        "HIS-35": "what a server counts and logs is not on the wire",
        "PSH-2": "pushes go to APNs: PushGatewayTests",
        "PSH-3": "pushes go to APNs: PushGatewayTests",
        "PSH-4": "pushes go to APNs: PushGatewayTests",
        "PSH-5": "takes a device that was alerted: FeedTests",
        "PSH-6": "pushes go to APNs: PushGatewayTests",
        "PSH-7": "takes a silent push that nobody answers: WakeTests, `rouse demo`",
        "PSH-8": "notifications are the system's: SyncTests show what the app is told",
        "PSH-9": "notifications are the system's: FeedTests show what is marked, and when",
        "PSH-10": "notifications are the system's: CampaignTests show the push",
        "PSH-11": "notifications are the system's: LocalHistoryTests, and the simulation's screens",
        "SES-13": "what is on the disk is not on the wire: SecretTests search store and log",
        "SIG-6": "what may be dropped cannot be missed",
        "SYN-30": "takes 30 days: FeedTests show it on a clock of their own",
        "SYN-31": "a SHOULD about an entry that a client cannot take: SyncTests",
        "SYN-35": "takes 30 days: FeedTests show it on a clock of their own",
    ]

    /// Why no case cites the clause.
    static func reasonUncited(_ clause: String) -> String {
        if let reason = reasonsUncited[clause] { return reason }
        if clause.hasPrefix("WHK-") { return "HTTP to an app's backend: WebhookTests" }
        return "no reason given"
    }
}

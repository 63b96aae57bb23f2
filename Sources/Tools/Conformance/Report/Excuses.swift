extension Coverage {
    /// MUSTs that no case can show.
    static let excuses: [Excuse] =
        ofClients
        + ofWebhooks.map {
            Excuse($0, .backend, "HTTP to an app's backend: WebhookTests and their peer show it")
        } + [
            Excuse(
                "CON-4: MUST NOT leave out a wake because of it", .inside,
                "pushes go to APNs: FeedTests and `rouse demo` show them"),
            Excuse(
                "HIS-32: MUST report the counts with it", .inside,
                "a report is read by people: the server's log holds the counts"),
            Excuse(
                "MSG-11: MUST refuse later numbers of this device with 1001", .inside,
                "a temporary refusal cannot be provoked from outside: SyncTests show it"),
            Excuse(
                "MSG-38: its entry MUST come anew", .inside,
                "takes 65,000 entries of a conversation of 256: FeedTests show it"),
            Excuse(
                "MSG-56: The server MUST then refuse with 4010", .inside,
                "its operator registers the kinds: EventKindTests show it"),
            Excuse(
                "SES-13: MUST keep tokens hashed only, and MUST NOT log them", .inside,
                "what is on the disk is not on the wire: SecretTests search store and log"),
            Excuse(
                "SYN-30: it MUST be answered with a reset of reason *cursor too old*", .inside,
                "takes 30 days: FeedTests show it on a clock of their own"),
            Excuse(
                "SYN-35: it MUST stay as long as the conversation's entry", .inside,
                "takes 30 days: FeedTests show it on a clock of their own"),
        ]

    private static let ofWebhooks: [Citation] = [
        "WHK-1: MUST NOT follow a redirect, MUST",
        "WHK-1: MUST check the certificate and the",
        "WHK-1: MUST NOT use a proxy of",
        "WHK-2: MUST ignore fields and kinds of",
        "WHK-3: MUST sign every attempt with every",
        "WHK-3: MUST compute it over the body",
        "WHK-3: MUST compare in constant time and",
        "WHK-4: MUST NOT log a secret or",
        "WHK-5: MUST NOT connect to an address",
        "WHK-7: MUST NOT send content of what",
        "WHK-9: MUST deliver it if the change",
        "WHK-9: MUST NOT if it was refused",
        "WHK-10: MUST deliver events to one webhook",
        "WHK-10: MUST NOT send a later one",
        "WHK-10: MUST drop an event whose `id`",
        "WHK-12: MUST be counted in the next",
        "WHK-15: MUST be told once, in the",
        "WHK-16: MUST be told once, when it",
        "WHK-17: MUST be told to that webhook",
    ]

    private static let ofClients: [Excuse] = [
        Excuse(
            "HIS-21: pending mutations above the floor may need them and MUST go behind", .client,
            "takes a server that was restored: StoreContractTests and the simulation show it"),
        Excuse(
            "HIS-38: MUST NOT make a message again by itself", .client,
            "takes a server that was restored: StoreContractTests and the simulation show it"),
        Excuse(
            "HIS-38: it MUST NOT either", .client,
            "takes a server that was restored: StoreContractTests show it"),
        Excuse(
            "HIS-37: MUST show it on the app's icon", .client,
            "a driver has no icon: SyncTests and the simulation's screens show it"),
        Excuse(
            "MSG-36: a client MUST remember the `position`", .client,
            "takes a page that was read before a deletion: StoreContractTests show it"),
        Excuse(
            "MSG-38: a client MUST remove the `Participant` entries", .client,
            "a driver tells messages, not participants: StoreContractTests show it"),
        Excuse(
            "HIS-36: MUST NOT send DIGEST until it has fetched further", .client,
            "takes a snapshot whose newest messages are all deleted: StoreContractTests show it"),
        Excuse(
            "MSG-23: a client MUST compare size and digest", .client,
            "the app fetches what a reference names, from elsewhere"),
        Excuse(
            "MSG-24: a client then MUST go on under that id", .client,
            "which id an app shows is its own affair: the result is stored for it"),
        Excuse(
            "MSG-52: a client then MUST remove its notification", .client,
            "notifications are the system's: no driver has any"),
        Excuse(
            "MSG-57: A client MUST remove the content", .client,
            "the state that a client tells holds no announcements: RouseClientTests show it"),
        Excuse(
            "PSH-8: a client MUST NOT notify", .client,
            "notifications are the system's: SyncTests show what the app is told"),
    ]
}

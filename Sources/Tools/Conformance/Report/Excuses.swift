extension Coverage {
    /// MUSTs that no case of a server can show.
    static let excuses: [Excuse] =
        ofClients.map { Excuse($0, .client, "a client's: no server can be asked") }
        + ofWebhooks.map {
            Excuse($0, .backend, "HTTP to an app's backend: WebhookTests and their peer show it")
        } + [
            Excuse(
                "CON-4: MUST NOT leave out a wake because of it", .inside,
                "pushes go to APNs: FeedTests and `rouse demo` show them"),
            Excuse(
                "SES-22: MUST close with 2000", .inside,
                "the backend must ask for a new login: SyncTests show it"),
            Excuse(
                "SES-23: MUST close all of them at once with 2004", .inside,
                "the backend must revoke: BackendAPITests show it"),
            Excuse(
                "HIS-32: MUST report the counts with it", .inside,
                "a report is read by people: the server's log holds the counts"),
            Excuse(
                "MSG-11: MUST refuse later numbers of this device with 1001", .inside,
                "a temporary refusal cannot be provoked from outside: SyncTests show it"),
            Excuse(
                "SES-13: MUST keep tokens hashed only, and MUST NOT log them", .inside,
                "what is on the disk is not on the wire: SecretTests search store and log"),
            Excuse(
                "SYN-30: MUST be answered with a reset of reason *cursor too old*", .inside,
                "takes 30 days: SyncServiceTests show it on a clock of their own"),
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
    ]

    private static let ofClients: [Citation] = [
        "CON-7: MUST send a frame at least that often",
        "CON-8: MUST connect again `slot_ms` after the DRAIN",
        "CON-11: A client that does not know the code MUST act by the class",
        "HIS-2: MUST NOT move its cursor",
        "HIS-19: MUST NOT remove anything else",
        "HIS-20: MUST NOT present `start` as its cursor",
        "MSG-6: Numbers MUST rise",
        "MSG-6: A client MUST store a mutation and its number durably",
        "MSG-23: a client MUST compare size and digest",
        "MSG-24: a client then MUST go on under that id",
        "MSG-34: A client MUST remove the content",
        "MSG-36: A client MUST remove the conversation",
        "MSG-37: a client MUST remove everything of the conversation",
        "MSG-52: a client then MUST remove its notification",
        "PSH-8: a client MUST NOT notify",
        "PSH-1: A client MUST work if every push is lost",
        "SES-8: client MUST send it again, as a SYNC frame",
        "SES-12: The client MUST store it durably",
        "SES-16: MUST NOT connect again before its next foreground",
        "SES-16: MUST log in anew with an identity token",
        "SES-21: MUST NOT be sent again on this connection",
        "SIG-4: A client MUST let it decay",
        "SYN-2: A client MUST NOT count on consecutive numbers",
        "SYN-4: A client MUST keep an entry whose parent it does not know",
        "SYN-5: A client MUST ignore an entry whose body it does not know",
        "SYN-6: A client MUST store its cursor in the same transaction",
        "SYN-6: MUST NOT present a cursor beyond",
        "SYN-13: MUST NOT apply it and sends SYNC",
        "SYN-14: the client MUST send ACK with its new `applied`",
        "SYN-17: The client MUST answer by SYNC",
        "SYN-25: MUST NOT discard its rows before",
        "SYN-28: the client MUST acknowledge them as a range",
    ]
}

/// The rooms of `Sources/Core/Feed`, from the ground up, and their doors. What each of them holds
/// stands in the README there.
///
/// A room uses those that stand before it, so that there is no circle. What needs one from above
/// belongs elsewhere: the declaration moves, or what it decides is handed in.
let feedRooms: [Room] = [
    Room(folder: "Records", isGround: true),
    Room(folder: "Requests", isGround: true),
    Room(folder: "Work", isGround: true),
    Room(
        folder: "Unread",
        doors: [
            "addUnread(to:)", "endUnread(of:now:)", "entryChanged(_:_:_:at:isToBeRead:now:)",
            "inStep(_:)", "isRead(_:by:)", "noteUnread()", "readPositions(_:_:_:)",
            "recountUnread(_:_:_:now:)", "unread(_:_:now:)", "unreadShown(_:_:now:)",
        ]),
    Room(
        folder: "Wakes",
        uses: ["Unread"],
        doors: [
            "AlertContent", "AlertRoom", "AlertedMessages", "TimedAlert", "WakeRules", "WakeStep",
            "aliveInterval", "announcementRead(_:_:_:from:head:)",
            "applied(_:ranges:completesSync:)", "cleared(_:)", "counts(now:)", "detachToken(_:)",
            "devices(_:_:in:)", "devicesMax", "endsWait(in:now:)", "entryReplaced(_:by:)",
            "entryWithdrawn(_:)", "feedGrew(_:urgency:)", "gapTolerance",
            "isPresumedGone(_:in:now:)", "isSessionCounted(of:now:)", "isSettled(_:now:)",
            "latenciesPrefix", "merged", "newestChange(of:)", "noteWakes(_:)", "outageEnd(in:now:)",
            "outageName", "pending(_:atMost:now:)", "policy(of:in:)",
            "readElsewhere(_:before:head:on:)", "registerToken(_:token:environment:topic:)",
            "sessionCounts(_:)", "sessionOpened(_:wake:)", "state(of:in:now:)", "stored()",
            "timedCame(_:_:zones:)", "unmuted(_:_:_:)", "unreadFell(_:_:_:)",
            "usefulCame(_:_:_:shownFrom:)", "usefulPending(_:now:)", "visibleChange", "wakeKey",
            "wakeRules", "wakes(of:limit:in:)",
        ]),
    Room(
        folder: "Pages",
        uses: ["Unread", "Wakes"],
        doors: [
            "PageReader", "PageRoom", "ReadBudget", "blocked(by:of:)", "chunk", "entry(of:)",
            "entry(of:in:)", "entry(of:participants:)", "entry(of:version:in:)", "firstChunk",
            "found(_:_:)", "page(_:_:)", "readable(_:_:_:_:)", "receipt(_:)", "standings(_:)",
        ]),
    Room(
        folder: "Entries",
        uses: ["Unread", "Wakes", "Pages"],
        doors: [
            "Attention", "FeedObject", "OpenFeed", "append(_:to:attention:tellsReceipts:)",
            "close(_:)", "entry(of:like:in:)", "moveToFront(_:in:)", "note(_:_:_:)",
            "openFeed(_:_:)", "receiptable(_:)", "receive(_:by:_:)",
            "replace(_:with:isVisible:isHidden:in:)", "withdraw(_:from:)",
        ]),
    Room(
        folder: "Devices",
        uses: ["Wakes"],
        doors: [
            "acceptedEnvironment(_:of:)", "admit(_:)", "continueSessionEnd(_:atMost:)",
            "continueSessionEnds()", "current(_:)", "detachPushToken(_:)", "devices(_:_:)",
            "devicesGivenUp(for:_:)", "endSessionRow(_:_:code:)", "endSessions(_:)", "ended(_:)",
            "forget(_:)", "giveUp(_:)", "holders(of:_:in:)", "lockDevice(_:)", "lockDeviceOnly(_:)",
            "rotateTokens(of:presented:newHash:lifetime:)", "suspend(_:)", "tokens(of:_:_:)",
        ]),
    Room(
        folder: "Membership",
        uses: ["Unread", "Wakes", "Entries"],
        doors: [
            "block(_:_:)", "isBlocked(_:by:_:)", "lockConversation(_:_:)", "membership(_:_:_:)",
            "metadata(of:)", "mute(_:_:)", "mute(_:_:delay:)", "participant(_:_:_:)",
            "reachableConversation(_:_:_:)", "reaches(_:_:_:)", "refuseBlocked(_:by:_:)",
            "refuseDeleting(_:_:)", "target(_:_:)",
        ]),
    Room(
        folder: "Receipts",
        uses: ["Wakes", "Entries", "Devices", "Membership"],
        doors: [
            "coalesceReceipts(users:)", "deliver(_:_:)", "read(_:_:_:_:)", "receiptsAreDue(_:_:)",
            "tellsReceipts(_:)",
        ]),
    Room(
        folder: "Content",
        doors: [
            "checkContent(_:_:_:)", "checkEnd(of:sendAt:)", "checkKind(of:in:)",
            "refusal(title:body:)",
        ]),
    Room(
        folder: "Announcements",
        uses: ["Entries", "Content"],
        doors: [
            "announce(_:_:isDue:)", "announcementTurn", "continueAnnouncements(_:)",
            "hasAnnouncements()", "recipients(_:)", "takeBackAnnouncement(_:_:)",
            "takingBackTurn",
        ]),
    Room(
        folder: "FanOut",
        uses: ["Unread", "Wakes", "Entries", "Membership", "Receipts", "Announcements"],
        doors: [
            "Audience", "bringBack(_:to:)", "continueFanOut(recipients:)",
            "deliver(_:object:joining:by:in:storing:)",
            "endConversation(in:)", "fanOutTurn", "knows(_:)", "oldestJob(_:_:)",
        ]),
    Room(
        folder: "Conversations",
        uses: ["Unread", "Membership", "FanOut"],
        doors: [
            "addParticipants(_:_:by:)", "changeMetadata(_:_:by:)", "clearConversation(_:_:of:)",
            "createConversation(_:_:by:)", "deleteConversation(_:_:by:)", "end(_:in:by:)",
            "giveUpDistinct(_:)", "lockDistinct(of:_:)", "removeParticipants(_:_:by:)",
        ]),
    Room(
        folder: "Messages",
        uses: ["Entries", "Membership", "Content", "FanOut"],
        doors: [
            "checkSender(_:of:)", "deleteMessage(_:_:by:)", "editMessage(_:_:by:)",
            "hideMessage(_:_:of:)", "sendMessage(_:_:by:isDue:)",
        ]),
    Room(
        folder: "Schedule",
        uses: ["Membership", "Content", "Announcements", "Messages"],
        doors: ["carryOut(schedules:)", "dropScheduled(by:_:limit:)"]),
    Room(
        folder: "Campaigns",
        uses: ["Wakes", "Pages", "Content"],
        doors: [
            "CampaignClaims", "carryOut(campaigns:)", "pauseCampaigns()", "readCampaigns(_:of:_:)",
            "resumeCampaigns(of:)", "writeDown(_:)",
        ]),
    Room(
        folder: "Webhooks",
        uses: ["Pages"],
        doors: [
            "carryOut(webhooks:)", "releaseDeliveries(besides:)", "releaseDeliveries(of:)",
            "webhookBacklog(_:)",
        ]),
    Room(
        folder: "Pushes",
        uses: ["Unread", "Wakes", "Devices", "Campaigns"],
        doors: [
            "claimPushes(_:)", "finishPush(_:)", "isMending(in:)", "keepAlive()",
            "nodeGone(_:)", "rested(_:)", "resumed(_:_:)",
            "started(boot:besides:)", "sweepWakes(rows:)",
        ]),
    Room(
        folder: "History",
        uses: ["Unread", "Pages"],
        doors: [
            "HistoryReach", "digest(_:_:_:_:_:)", "history(_:limits:)",
            "messages(of:above:through:ascending:limit:)", "readableEntry(of:in:)", "shown(_:in:)",
        ]),
    Room(
        folder: "Queries",
        uses: ["Unread", "Wakes", "Pages", "History"],
        doors: [
            "explain(_:of:_:)", "read(_:of:_:)", "users(of:prefix:after:_:)", "view(of:_:_:)",
        ]),
    Room(
        folder: "Retention",
        uses: [
            "Wakes", "Entries", "Devices", "Membership", "FanOut", "Conversations", "Messages",
            "Schedule",
        ],
        doors: [
            "continueDeletions(rows:)", "deleteUser(_:_:)", "enforceRetention(rows:)",
            "forgetRemoval(of:)", "isKnownToNodes(_:)",
        ]),
    Room(
        folder: "Changes",
        uses: [
            "Devices", "Membership", "Announcements", "Conversations", "Messages", "Retention",
        ],
        doors: [
            "carryOut(_:in:by:)", "change(by:)", "mutate(_:)", "mutateAll(_:_:)",
            "refusedForNow(_:)",
        ]),
    Room(
        folder: "Sessions",
        uses: ["Wakes", "Entries", "Devices", "Receipts", "Campaigns", "Pushes", "Changes"],
        doors: [
            "abandonSession(_:)", "acknowledge(_:)", "changeAppState(_:)", "endSession(_:)",
            "lockedNames(of:)", "openSession(_:)", "reauthenticate(_:)", "resumeApp(_:)",
            "resumeUser(_:_:)", "revokeSessions(_:_:reauthenticate:)", "suspendApp(_:)",
            "suspendUser(_:_:)", "sync(_:)",
        ]),
    Room(
        folder: "Nodes",
        uses: ["Wakes", "Devices", "Webhooks", "Pushes"],
        doors: [
            "beat(_:)", "keepProviderToken(_:)", "keepTicketKeys(_:)", "nodesKnown()", "order(_:)",
            "standing(in:for:)",
        ]),
    Room(
        folder: "Operators",
        uses: [
            "Wakes", "Pages", "Devices", "Campaigns", "Webhooks", "Pushes", "Queries", "Sessions",
            "Nodes", "Retention",
        ],
        doors: [
            "administer(_:)", "read(_:_:)", "restore(epochHalf:)", "start(boot:epochHalf:)",
        ]),
    Room(
        folder: "ReadPlan",
        uses: ["Wakes", "Entries", "Announcements", "FanOut", "Changes", "Sessions"],
        doors: ["ReadHints", "ReadPlan"]),
    Room(
        folder: ".",
        uses: [
            "Unread", "Wakes", "Pages", "Receipts", "FanOut", "Schedule", "Campaigns", "Webhooks",
            "Pushes", "History", "Queries", "Retention", "Changes", "Sessions", "Nodes",
            "Operators", "ReadPlan",
        ]),
]

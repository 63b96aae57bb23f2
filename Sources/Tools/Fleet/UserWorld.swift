import DeviceModel
import Model
import SyncServer
import Wake

/// One user with all devices under one policy, from the start to the end of the simulated time.
///
/// Nothing passes between users but what is in their lives already, so there is no queue of
/// events for all: a user's few timers are looked through for the next one.
struct UserWorld {
    /// An entry of the user's feed.
    struct Entry {
        let publishedAt: Timestamp
        /// `nil`: a read mark.
        let conversation: ConversationID?
        let isAsleep: Bool
        var isTold = false
    }

    /// What a server hears, or no longer hears.
    enum Word {
        case message(conversation: UInt64)
        /// - Parameter wake: the handle of the push that it names.
        case hello(device: Int, wake: UInt64?)
        /// Everything up to the head is applied, and read by a person who has the app in front.
        case acknowledged(device: Int, isRead: Bool)
        /// The app says that it goes to sleep.
        case slept(device: Int)
        /// The socket is closed, and nothing was said.
        case closed(device: Int)
        /// The device's network is lost: nothing comes through any more, and the server does not
        /// know it.
        case networkLost(device: Int)
    }

    static let limits = SessionLimits()
    static let boot = BootID(high: 1, low: 1)
    /// What the notification of a badge push is called; those of messages are called as their
    /// `seq`.
    static let badgeIdentifier: UInt64 = 1 << 62

    let model: FleetModel
    let policy: WakePolicy
    let life: UserLife
    var tally = Tally()
    var devices: [FleetDevice] = []
    var now = fleetStart
    /// By `seq`, from 1 on.
    var entries: [Entry] = []
    var newestMessage: UInt64 = 0
    /// The user has read up to here.
    var readSeq: UInt64 = 0
    var unread: UInt64 = 0
    /// The place of the first of them, or of those that were read last.
    var oldestUnread: UInt64 = 0
    /// Everything before it is told.
    var toldBelow = 0
    var wakes: UInt64 = 0
    /// What all devices of the app have learned; `nil`: the app has this user alone.
    private let sharedGrace: SharedGrace?
    private var latencies = AppLatencies()
    /// Wakes that brought the app, where that is to be found out.
    private(set) var arrivals: [SharedGrace.Arrival] = []
    var events: [PhoneEvent] = []
    /// What the gateway sent, and when; kept if there is an array.
    var sent: [(at: Timestamp, device: Int, push: PhonePush)]?
    /// What reached the server, and when; kept if there is an array.
    var heard: [(at: Timestamp, word: Word)]?

    init(
        life: UserLife, policy: WakePolicy, model: FleetModel, sharedGrace: SharedGrace? = nil
    ) {
        self.life = life
        self.policy = policy
        self.model = model
        self.sharedGrace = sharedGrace
        for (number, traits) in life.devices.enumerated() {
            devices.append(FleetDevice(traits, policy: policy, number: number))
        }
    }

    var head: UInt64 { UInt64(entries.count) }
    private var isDenied: Bool { life.devices.allSatisfy(\.areAlertsDenied) }

    /// The result is `tally`.
    mutating func run(until end: Timestamp) {
        tally.users = 1
        tally.devices = UInt64(devices.count)
        var nextEvent = 0
        while true {
            var time = nextEvent < life.events.count ? life.events[nextEvent].at : .never
            var device: Int?
            for index in devices.indices where devices[index].next < time {
                time = devices[index].next
                device = index
            }
            guard time < end else { break }
            now = time
            if let device {
                serve(device)
            } else {
                happen(life.events[nextEvent])
                nextEvent += 1
            }
        }
        finish()
    }

    // MARK: What devices learn together

    /// Before the device is told anything, as the rules of the feed read its app's row.
    private mutating func recallGrace(_ index: Int) {
        guard policy.adaptive.graceQuantile > 0 else { return }
        devices[index].machine.appGrace =
            sharedGrace.map { $0.grace(at: now) } ?? latencies.grace(policy)
    }

    /// A wake brought the app of one of them.
    mutating func learn(_ wake: WakeID, after latency: Milliseconds) {
        guard sharedGrace == nil else { return }
        // As random as the ids of a server are.
        let named = WakeID(high: 0, low: Draws.mixed(life.seed ^ wake.low))
        arrivals.append(SharedGrace.Arrival(at: now, wake: named, latency: latency))
        latencies.came(after: latency, now: now)
    }

    /// What is due on one device, in a fixed order.
    private mutating func serve(_ index: Int) {
        recallGrace(index)
        arrivals(index)
        if let at = devices[index].phone.nextDeadline, at <= now {
            devices[index].phone.expire(
                rules: life.devices[index].rules, now: now, into: &events)
            react(index)
        }
        if devices[index].helloAt <= now { hello(index) }
        if devices[index].ackAt <= now { acknowledge(index) }
        if devices[index].sessionEndsAt <= now { sessionExpired(index) }
        if devices[index].suspectAt <= now {
            devices[index].suspectAt = .never
            devices[index].machine.isSessionCounted = false
        }
        if let deadline = devices[index].machine.row.deadline, deadline <= now {
            let isBehind = isBehind(index)
            perform(devices[index].machine.graceEnded(isBehind: isBehind, now: now), on: index)
            devices[index].machine.urgentTurnCame(now: now)
        }
        settle(index)
    }

    private mutating func happen(_ event: LifeEvent) {
        let index = event.device
        let rules = life.devices[index].rules
        switch event.kind {
        case .message(let conversation):
            return publish(ConversationID(high: 0, low: conversation))
        case .open:
            guard devices[index].phone.state != .foreground else { return }
            devices[index].wasUnderWay = devices.contains { $0.isUnderWay }
            devices[index].openedAt = now
            devices[index].phone.open(rules: rules, now: now, into: &events)
        case .leave:
            devices[index].phone.background(
                now: now, runTime: rules.leaveTime, into: &events)
        case .forceQuit: devices[index].phone.forceQuit(into: &events)
        case .kill: devices[index].phone.kill(into: &events)
        case .reboot: devices[index].phone.reboot(into: &events)
        case .coverage(let isOn):
            devices[index].phone.setCoverage(isOn, rules: rules, now: now, into: &events)
        case .lowPower(let isOn):
            devices[index].phone.setLowPower(isOn, rules: rules, now: now, into: &events)
        }
        recallGrace(index)
        react(index)
        settle(index)
    }

    // MARK: Messages

    /// A message is published: for each device as the rules of the feed have it.
    private mutating func publish(_ conversation: ConversationID) {
        let isAsleep = !devices.contains { $0.phone.state == .foreground }
        let isDenied = isDenied
        entries.append(
            Entry(
                publishedAt: now, conversation: conversation, isAsleep: isAsleep,
                isTold: isDenied))
        tally.messages += 1
        if isDenied { tally.denied += 1 }
        if isAsleep {
            if !isDenied { tally.asleep += 1 }
            tally.awaited += UInt64(devices.count)
        }
        newestMessage = head
        if unread == 0 { oldestUnread = head }
        unread += 1
        heard?.append((now, .message(conversation: conversation.low)))
        for index in devices.indices {
            recallGrace(index)
            switch devices[index].session {
            case .live: devices[index].ackAt = min(devices[index].ackAt, now + syncTime(index))
            case .broken where devices[index].machine.isSessionCounted:
                // Told, and no sign of life: the server finds out.
                let suspect = min(devices[index].suspectAt, now + Self.limits.suspectAfter)
                devices[index].suspectAt = suspect
                devices[index].sessionEndsAt = min(
                    devices[index].sessionEndsAt, suspect + Self.limits.suspectPing)
            case .expected: break
            case .none, .broken:
                let change = change(head)
                perform(
                    devices[index].machine.changed(change, now: now), on: index, entry: head)
            }
            settle(index)
        }
    }

    func change(_ seq: UInt64) -> VisibleChange {
        VisibleChange(
            seq: seq,
            conversation: entries[Int(seq) - 1].conversation ?? ConversationID(high: 0, low: 0),
            message: MessageID(high: 0, low: seq))
    }

    /// A visible entry is neither applied nor read.
    func isBehind(_ index: Int) -> Bool {
        newestMessage > max(devices[index].machine.applied, readSeq)
    }

    /// How the person came to know a message.
    enum Way {
        case live, local, alerted, opened, cameUpon
    }

    mutating func tell(_ seq: UInt64, _ way: Way) {
        let place = Int(seq) - 1
        guard !entries[place].isTold, entries[place].conversation != nil else { return }
        entries[place].isTold = true
        switch way {
        case .live: tally.live += 1
        case .local: tally.local += 1
        case .alerted: tally.alerted += 1
        case .opened: tally.opened += 1
        case .cameUpon: tally.cameUpon += 1
        }
        if entries[place].isAsleep {
            tally.told.add(now.since(entries[place].publishedAt))
        }
    }

    private mutating func finish() {
        let isUnderWay = devices.contains { $0.isUnderWay }
        for entry in entries[min(toldBelow, entries.count)...]
        where !entry.isTold && entry.conversation != nil {
            if isUnderWay { tally.pending += 1 } else { tally.untold += 1 }
        }
        for device in devices where device.phone.held != nil { tally.count(.stillHeld) }
    }

    // MARK: Reading

    /// The app is in front and has everything: the person sees it all, and has read it.
    mutating func see(_ index: Int) {
        let device = devices[index]
        for place in min(toldBelow, entries.count)..<entries.count
        where !entries[place].isTold && entries[place].conversation != nil {
            let isOlder = entries[place].publishedAt < device.openedAt
            tell(
                UInt64(place) + 1,
                isOlder ? (device.wasUnderWay ? .opened : .cameUpon) : .live)
        }
        toldBelow = entries.count
        guard unread > 0 else { return }
        unread = 0
        readSeq = newestMessage
        entries.append(
            Entry(publishedAt: now, conversation: nil, isAsleep: false, isTold: true))
        toldBelow = entries.count
        devices[index].machine.applied = head
        _ = devices[index].phone.setBadge(0, into: &events)
        for other in devices.indices where other != index { readElsewhere(other) }
    }

    /// As the rules of the feed do when a read mark moves.
    private mutating func readElsewhere(_ index: Int) {
        recallGrace(index)
        if devices[index].hasRow {
            for place in devices[index].alerts.alerts.indices {
                let alert = devices[index].alerts[place]
                guard alert.seq <= readSeq, alert.phase.isOpen else { continue }
                devices[index].machine.alertsChanged(
                    queued: alert.phase == .queued ? -1 : 0, open: -1, now: now)
                devices[index].alerts[place].phase = .cancelled
            }
            devices[index].machine.badgeMayBeWrong(unread: 0, now: now)
        }
        if !devices[index].machine.isSessionCounted,
            devices[index].machine.applied >= oldestUnread,
            devices[index].machine.row.badgeDue == nil
        {
            devices[index].machine.usefulCame(
                VisibleChange(
                    seq: head, conversation: ConversationID(high: 0, low: 0),
                    message: MessageID(high: 0, low: 0)), now: now)
        }
        if devices[index].session == .live {
            devices[index].ackAt = min(devices[index].ackAt, now + syncTime(index))
        }
        settle(index)
    }
}

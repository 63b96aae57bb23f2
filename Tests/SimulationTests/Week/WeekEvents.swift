import AppLife
import DeviceModel
import Feed
import Model
import RouseClient
import SyncClient
import Wire

// What happens in the person's life, one thing at a time.
extension Week {
    func something() async throws {
        let device = chance.once(in: 3) ? devices[1] : devices[0]
        let conversation = chance.one(of: conversations)!
        switch Int.random(in: 0..<100, using: &chance) {
        case 0..<24: publish(in: conversation, hasText: !chance.once(in: 12))
        case 24..<27: for _ in 0..<3 { publish(in: conversation) }
        case 27..<32: try edit()
        case 32..<36: try withdraw()
        case 36..<47: try await device.openSomewhere()
        case 47..<56: try await device.leave(for: 5_000)
        case 56..<58: try await device.leave(for: 60_000 + chance.upTo(120_000))
        case 58..<66: try await device.read()
        case 66..<70: try await device.tap()
        case 70..<74: try await device.write(in: conversation)
        case 74..<77: try await device.mute(conversation)
        case 77..<79: try takePart(in: conversation)
        case 79..<82: try await device.happens("is swiped away") { $0.forceQuit(into: &$1) }
        case 82..<85: try await device.happens("loses the app to others") { $0.kill(into: &$1) }
        case 85: try await device.reboot()
        case 86: try await device.unlockLater()
        case 87..<89: try await device.fly()
        case 89..<93: device.killInTheMiddle()
        case 93: try await device.toggleLowPower()
        case 94: try await device.refresh()
        case 95: try await device.update()
        case 96: try await device.changeToken()
        case 97: device.jump()
        case 98: restartServer()
        default: try await device.look(at: .nothing)
        }
    }

    private func edit() throws {
        guard let message = try anyMessage() else { return }
        if (message.pushTitle + message.pushBody).isEmpty { raised = clock.now }
        let text = nextText()
        reached.count("an edit")
        ask(
            "\(message.message) is edited: \(text)",
            .editMessage(
                app: app,
                EditMessage(
                    message: message.message, parts: [Part(text)],
                    push: PushText(title: message.sender, body: text)), idempotency: nil))
    }

    private func withdraw() throws {
        guard let message = try anyMessage() else { return }
        reached.count("a message withdrawn")
        ask(
            "\(message.message) is withdrawn",
            .deleteMessage(app: app, message.message, idempotency: nil))
    }

    private func takePart(in conversation: ConversationID) throws {
        let own = try rows(ParticipantRecord.self).first {
            $0.user.name == user && $0.conversation == conversation
        }
        hasChanged(conversation)
        if own?.leftRevision == nil {
            reached.count("a conversation left")
            ask(
                "anna leaves \(conversation)",
                .removeParticipants(
                    app: app,
                    RemoveParticipants(conversation: conversation, users: [user]),
                    idempotency: nil))
        } else {
            ask(
                "anna comes back to \(conversation)",
                .addParticipants(
                    app: app, AddParticipants(conversation: conversation, users: [user]),
                    idempotency: nil))
        }
    }

    private func restartServer() {
        guard server.isUp else { return }
        note("the server is killed")
        server.kill()
        clock.after(500 + chance.upTo(30_000)) { [unowned self] in
            if !self.server.isUp { try self.server.start() }
        }
    }
}

extension WeekDevice {
    private var rules: DeviceRules { phone.rules }
    private var isInFront: Bool { phone.appState == .foreground }

    func happens(
        _ words: String, _ body: (inout Phone, inout [PhoneEvent]) -> Void
    ) async throws {
        week.note("\(name) \(words)")
        week.reached.count("a device \(words)")
        try await happen(phone.does(body))
    }

    func open() async throws {
        guard !isInFront else { return }
        let (rules, now) = (rules, week.clock.wall)
        try await happens("is opened") { $0.open(rules: rules, now: now, into: &$1) }
    }

    func openSomewhere() async throws {
        if let place = week.chance.one(of: week.conversations), !week.chance.once(in: 3) {
            try await look(at: .conversation(place))
        } else {
            try await look(at: week.chance.once(in: 3) ? .everything : .nothing)
        }
        week.note("\(name) shows \(onScreen)")
        try await open()
    }

    func leave(for time: Milliseconds) async throws {
        guard isInFront else { return }
        let now = week.clock.wall
        try await happens("is left") { $0.background(now: now, runTime: time, into: &$1) }
    }

    func read() async throws {
        guard isInFront, let process, let place = week.chance.one(of: week.conversations) else {
            return
        }
        week.reached.count("something read on a device")
        if week.chance.once(in: 3) {
            let rows = try await process.rouse.unreadRows(of: place)
            guard let row = week.chance.one(of: rows) else { return }
            week.note("\(name): \(row.id) is read alone")
            try await process.rouse.read(row)
        } else {
            week.note("\(name): \(place) is read")
            try await process.rouse.markRead(place)
        }
        isDirty = true
    }

    func tap() async throws {
        let all = phone.use { $0.model.screen.map(\.handle) }
        guard let handle = week.chance.one(of: all), let shown = phone.content(of: handle),
            let conversation = shown.conversation, let object = shown.object
        else { return }
        let (rules, now) = (rules, week.clock.wall)
        oracle.tapped(object)
        try await look(at: .conversation(conversation))
        try await happens("is tapped") {
            _ = $0.tap(handle: handle, rules: rules, now: now, into: &$1)
        }
        week.clock.after(2_000) { [unowned self] in
            self.week.call { [unowned self] in
                guard self.isInFront, let process = self.process else { return }
                self.isDirty = true
                try await process.rouse.markRead(conversation)
            }
        }
    }

    func write(in conversation: ConversationID) async throws {
        guard phone.appState.isRunning, let process, !isLocked, !process.lifeline.isDead else {
            return
        }
        week.note("\(name) writes in \(conversation)")
        isDirty = true
        let text = PushText(title: week.user, body: "hello")
        try await mayFail(process) {
            _ = try await process.rouse.send(
                .sendMessage(
                    SendMessage(
                        conversation: conversation, message: self.week.fresh(),
                        parts: [Part("hello")], push: text)))
        }
    }

    func mute(_ conversation: ConversationID) async throws {
        guard phone.appState.isRunning, let process, !isLocked, !process.lifeline.isDead else {
            return
        }
        let isMuted = week.chance.once(in: 2)
        let time: Milliseconds = week.chance.once(in: 2) ? 0 : 3_600_000
        week.note("\(name) mutes \(conversation): \(isMuted) for \(time)")
        week.reached.count("a conversation muted or not")
        week.hasChanged(conversation)
        if !isMuted { week.raised = week.clock.now }
        isDirty = true
        try await mayFail(process) {
            _ = try await process.rouse.send(
                .muteConversation(
                    MuteConversation(conversation: conversation, muted: isMuted, forMs: time)))
        }
    }

    /// What a process says while it is killed.
    private func mayFail(
        _ process: WeekProcess, _ body: () async throws -> Void
    ) async throws {
        do { try await body() } catch { if !process.lifeline.isDead { throw error } }
    }

    func reboot() async throws {
        week.note("\(name) restarts")
        week.reached.count("a device restarted")
        try await restart()
    }

    func unlockLater() async throws {
        week.note("\(name) is unlocked")
        try await unlock()
    }

    func fly() async throws {
        guard isOnline else { return }
        try await setCoverage(false)
        week.clock.after(60_000 + week.chance.upTo(3 * 3_600_000)) { [unowned self] in
            self.week.touch()
            self.week.call { [unowned self] in try await self.setCoverage(true) }
        }
    }

    private func setCoverage(_ isOn: Bool) async throws {
        let (rules, now) = (rules, week.clock.wall)
        try await happens(isOn ? "has a network again" : "flies") {
            $0.setCoverage(isOn, rules: rules, now: now, into: &$1)
        }
    }

    func killInTheMiddle() {
        let calls = Int.random(in: 1...40, using: &week.chance)
        week.note("\(name) will lose the app at call \(calls)")
        kill(after: calls)
    }

    func toggleLowPower() async throws {
        let isOn = phone.use { !$0.model.isLowPower }
        let (rules, now) = (rules, week.clock.wall)
        try await happens("saves power or not") {
            $0.setLowPower(isOn, rules: rules, now: now, into: &$1)
        }
    }

    func refresh() async throws {
        let (rules, now) = (rules, week.clock.wall)
        try await happens("refreshes the app") {
            $0.refresh(rules: rules, now: now, into: &$1)
        }
    }

    /// The store of apps replaces it; the next process is the new one.
    func update() async throws {
        version += 1
        try await happens("gets a new version") { phone, events in
            if phone.state == .foreground { phone.forceQuit(into: &events) }
            phone.kill(into: &events)
        }
    }

    /// APNs gives another token, which the app hears of when it is opened.
    func changeToken() async throws {
        token = token.map { $0 &+ 1 }
        week.note("\(name) has another token")
        week.reached.count("another token")
        let push = PushRegistration(
            token: token, environment: .development, topic: "org.example")
        await process?.rouse.setPush(push)
        // Once APNs has said that the old one is dead, the server knows no more of what it was
        // sent; the phone does.
        oracle.lostSome(nil)
    }

    func jump() {
        skew = Int64.random(in: -7_200_000...7_200_000, using: &week.chance)
        week.note("\(name): the calendar is wrong by \(skew)")
    }

    func comeBack() async throws {
        if !isOnline { try await setCoverage(true) }
        try await open()
    }
}

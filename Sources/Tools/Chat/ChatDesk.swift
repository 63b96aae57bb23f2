import AppLife
import Client
import EventLoop
import FoundationEssentials
import Model
import RouseClient
import SQLiteStore
import SyncClient
import Wire

/// One process of the app.
private struct ChatProcess {
    let rouse: Rouse
    let transport: SocketTransport
    var tasks: [Task<Void, Never>]
    /// Follows the open conversation.
    var following: Task<Void, Never>?
}

/// Joins the library, the phone and the terminal.
actor ChatDesk {
    private let options: ChatOptions
    private let device: DeviceID
    private let terminal: ChatTerminal
    private let events: AsyncStream<ChatEvent>.Continuation
    private let phone: ChatPhone
    private let pushes: ChatPushes?
    private let hasColour: Bool
    private var model: ChatModel
    private var process: ChatProcess?
    private var life = 0
    private var running: Task<Void, Never>?
    /// What was said to be read and is shown as unread still.
    private var lastRead: ChatReading?
    /// Messages of the open conversation that are looked at.
    private var newest = ChatDesk.newestFirst

    /// Messages of a conversation that are looked at first, and that come with each step back.
    private static let newestFirst = 200
    private static let olderStep = 50

    /// Milliseconds that iOS gives an app after it left the screen, and to one that it wakes.
    private static let runTime: Milliseconds = 30_000

    init(
        _ options: ChatOptions, device: DeviceID, terminal: ChatTerminal, pushes: ChatPushes?,
        events: AsyncStream<ChatEvent>.Continuation
    ) {
        self.options = options
        self.device = device
        self.terminal = terminal
        self.pushes = pushes
        self.events = events
        model = ChatModel(user: options.user)
        hasColour = ProcessInfo.processInfo.environment["NO_COLOR"] == nil
        phone = ChatPhone { events.yield(.screen($0)) }
    }

    func open() async {
        model.remark = "/help shows what there is"
        for notice in pushes?.shown ?? [] { await phone.show(notice) }
        // A store that is locked or damaged is tried for seconds.
        await draw()
        await start()
        await draw()
    }

    func close() async {
        // As when the person swipes to another app: what was sent still leaves.
        await process?.rouse.scene(.inactive)
        await process?.rouse.scene(.background(remaining: 2_000))
        await process?.rouse.scene(.suspending)
        tell(.kill)
        try? await Task.sleep(for: .milliseconds(200))
        endProcess()
    }

    /// - Returns: whether the chat goes on.
    func take(_ event: ChatEvent) async -> Bool {
        var goesOn = true
        switch event {
        case .keys(let keys): goesOn = await take(keys)
        case .resized: break
        case .suspended: terminal.suspend()
        case .ended: goesOn = false
        case .push(let arrival): await take(arrival)
        case .screen(let screen): (model.notices, model.icon) = (screen.notices, screen.icon)
        case .app(let life, let event): if life == self.life { await take(event) }
        }
        await draw()
        return goesOn
    }

    /// The same once the person wants to leave: what was typed before counts still.
    func finish(_ event: ChatEvent) async -> Bool {
        guard case .keys(let keys) = event else { return true }
        return await take(keys)
    }

    // MARK: Pushes

    private func take(_ arrival: ChatPushes.Arrival) async {
        switch arrival {
        case .notice(let notice): await phone.show(notice)
        case .icon(let count): phone.alerted(icon: count)
        case .wake(let wake):
            guard model.phase != .front else {
                if let process { receive(wake, process.rouse) }
                return
            }
            model.remark = "a push woke the app"
            await runBehind(wake)
        case .gone(let words): model.remark = words
        }
    }

    /// The phone at the simulator does as this one.
    private func tell(_ move: ChatPushes.Move) {
        do throws(ChatRefusal) {
            try pushes?.tell(move)
        } catch {
            model.remark = error.description
        }
    }

    private func draw() async {
        let (columns, rows) = terminal.size
        let drawing = ChatDrawing(model, columns: columns, rows: rows, hasColour: hasColour)
        terminal.draw(drawing)
        await markRead(drawing.seen)
    }

    // MARK: The keyboard

    private func take(_ keys: [ChatKey]) async -> Bool {
        let before = model.editor.text
        for key in keys {
            guard await take(key) else { return false }
        }
        let isText = model.editor.text.first.map { $0 != "/" } ?? false
        if model.editor.text != before, let conversation = model.opened, model.phase == .front {
            await process?.rouse.typing(isText, in: conversation)
        }
        return true
    }

    private func take(_ key: ChatKey) async -> Bool {
        switch key {
        case .interrupt: return false
        case .suspend:
            terminal.suspend(wholeJob: true)
            return true
        case .endOfInput where model.editor.text.isEmpty: return false
        case .pageUp, .pageDown:
            let (columns, rows) = terminal.size
            if model.turn(up: key == .pageUp, columns: columns, rows: rows) { await older() }
            return true
        default: break
        }
        guard let line = model.editor.take(key) else { return true }
        model.remark = ""
        if model.showsHelp { (model.showsHelp, model.top) = (false, 0) }
        return await carryOut(ChatCommand(line))
    }

    private func carryOut(_ command: ChatCommand) async -> Bool {
        switch command {
        case .quit: return false
        case .help: (model.showsHelp, model.top) = (true, 0)
        case .mistake(let words): model.remark = words
        case .start: await start()
        case .lock: await lock()
        case .sleep: await sleep()
        case .kill: kill()
        case .wake: await wake()
        case .tap(let number): await tap(number)
        case .say, .list, .open, .new, .edit, .delete, .older:
            guard let process, model.phase == .front else {
                model.remark = "the app is \(model.phase.words): /start opens it"
                break
            }
            do throws(LocalStoreError) {
                try await use(command, process.rouse)
            } catch {
                model.remark = "\(error)"
            }
        }
        return true
    }

    private func use(_ command: ChatCommand, _ rouse: Rouse) async throws(LocalStoreError) {
        switch command {
        case .list: await show(nil)
        case .open(let word):
            guard let row = model.conversation(named: word) else {
                model.remark = "there is no conversation \(word); /list shows all"
                return
            }
            await show(row.id)
        case .new(let users, let title):
            await show(try await rouse.createConversation(with: users, title: title))
        case .say(let text):
            guard let conversation = model.opened else {
                model.remark = "open a conversation first: /open N, or /new USER"
                return
            }
            try await rouse.send(text, to: conversation, title: model.user)
            model.place = nil
            await rouse.typing(false, in: conversation)
        case .edit(let text):
            switch model.lastOwn {
            case .none: model.remark = "there is no message of yours"
            case .waits: model.remark = "it is not sent yet"
            case .refused: model.remark = "it was refused: /delete discards it, then write it anew"
            case .sent(let row): try await rouse.edit(row, text: text)
            }
        case .delete:
            switch model.lastOwn {
            case .none: model.remark = "there is no message of yours"
            case .waits: model.remark = "it is not sent yet"
            case .refused(let row): try await rouse.discard(row.reference)
            case .sent(let row): try await rouse.delete(row.id, forEveryone: true)
            }
        case .older:
            if await !older() { model.remark = "there is nothing older" }
        default: break
        }
    }

    /// Opens a conversation, or the list.
    private func show(_ conversation: ConversationID?) async {
        guard var process else { return }
        if let opened = model.opened { await process.rouse.looking(false, at: opened) }
        model.opened = conversation
        model.window = MessageWindow()
        (model.place, model.top) = (nil, 0)
        model.typing = []
        (newest, lastRead) = (Self.newestFirst, nil)
        process.following?.cancel()
        process.following = nil
        if let conversation {
            process.following = await following(conversation, process.rouse)
            await process.rouse.looking(at: conversation)
        }
        self.process = process
        await process.rouse.onScreen(conversation.map { .conversation($0) } ?? .nothing)
    }

    private func following(
        _ conversation: ConversationID, _ rouse: Rouse
    ) async -> Task<Void, Never> {
        let (events, life) = (events, life)
        let windows = await rouse.messages(in: conversation, newest: newest)
        return Task {
            for await window in windows {
                events.yield(.app(life: life, .window(conversation, window)))
            }
        }
    }

    /// Looks at more messages of this device, and has the server asked where these end.
    ///
    /// - Returns: whether there is anything older.
    @discardableResult
    private func older() async -> Bool {
        guard let conversation = model.opened, let process,
            model.window.hasOlder || model.window.mayFetchOlder
        else { return false }
        newest = max(newest, model.window.rows.count) + Self.olderStep
        do throws(LocalStoreError) {
            if !model.window.hasOlder { try await process.rouse.fetchOlder(in: conversation) }
        } catch {
            model.remark = "\(error)"
        }
        process.following?.cancel()
        self.process?.following = await following(conversation, process.rouse)
        return true
    }

    // MARK: The app

    private func take(_ event: ChatEvent.AppEvent) async {
        switch event {
        case .conversations(let rows): (model.conversations, model.hasList) = (rows, true)
        case .connection(let state):
            model.connection = state
            if state == .inSync { model.hasSynced = true }
        case .record(let record): model.trouble = model.trouble.after(record) ?? model.trouble
        case .window(let conversation, let window):
            guard conversation == model.opened else { return }
            (model.window, lastRead) = (window, nil)
        case .woken(let result):
            guard model.phase != .front else { return }
            model.remark = "the app told the system: \(result.rawValue)"
            if model.phase == .background { await suspend() }
        case .timeOver: if model.phase == .background { await suspend() }
        case .change(let change): take(change)
        }
    }

    private func take(_ change: RouseChange) {
        switch change {
        case .signal(let kind, let conversation, let user):
            guard conversation == model.opened else { return }
            model.heard(kind, of: user)
        case .results(let results):
            let refused = results.first { $0.code != 0 }
            if let refused { model.remark = "\(Refusal(code: refused.code))" }
        case .loggedOut: model.remark = "logged out: everything of this user is erased here"
        // Of troubles the records tell, and when they are over.
        case .refused(let why): model.remark = "\(why)"
        case .entries, .unread, .inSync, .pushTokenRefused, .trouble, .storeFailed, .olderFetched,
            .olderRefused:
            break
        }
    }

    /// What was drawn to its end is read.
    private func markRead(_ seen: Range<Int>) async {
        guard let conversation = model.opened, let reading = model.reading(of: seen),
            reading != lastRead
        else { return }
        lastRead = reading
        do throws(LocalStoreError) {
            switch reading {
            case .through(let position):
                try await process?.rouse.markRead(conversation, through: position)
            case .between(let first, let last):
                try await process?.rouse.read(conversation, from: first, through: last)
            }
        } catch {
            model.remark = "\(error)"
        }
    }

    // MARK: The system

    private func begin() throws -> ChatProcess {
        life += 1
        let path = options.folder + "/phone.db"
        let transport = try SocketTransport(
            options.endpoint, trustedCertificates: options.trusted)
        let configuration = ClientConfiguration(
            app: options.app, device: device, user: options.user, clientName: "rouse chat",
            clientVersion: "1", wantsSignals: true, wantsSnapshots: true, push: pushes?.registration
        )
        let rouse = Rouse(
            configuration: configuration, transport: transport, phone: phone,
            clock: DeviceClock(), seed: .random(in: 0 ... .max),
            journal: { [events, life] record in
                guard ChatTrouble().after(record) != nil else { return }
                events.yield(.app(life: life, .record(record)))
            },
            openStore: { try Self.openStore(path) }, identity: options.identity)
        return ChatProcess(rouse: rouse, transport: transport, tasks: [])
    }

    /// The process before may hold the file still, for a moment.
    private static func openStore(_ path: String) throws -> TableLocalStore {
        var tries = 0
        while true {
            do {
                let file = try SQLiteStore(path: path, tables: LocalSchema.tables)
                return TableLocalStore(store: file, keepsOwed: true)
            } catch {
                tries += 1
                guard tries < 20 else { throw error }
                WorkThread.sleep(milliseconds: 100)
            }
        }
    }

    /// There is a process from here on.
    private func launch() async -> Rouse? {
        if let process { return process.rouse }
        do {
            var process = try begin()
            let (events, life, rouse) = (events, life, process.rouse)
            func follow<Element: Sendable>(
                _ stream: AsyncStream<Element>,
                _ event: @escaping @Sendable (Element) -> ChatEvent.AppEvent
            ) {
                process.tasks.append(
                    Task {
                        for await element in stream {
                            events.yield(.app(life: life, event(element)))
                        }
                    })
            }
            follow(await rouse.changes()) { .change($0) }
            follow(await rouse.connectionStates()) { .connection($0) }
            follow(await rouse.conversations()) { .conversations($0) }
            self.process = process
            return rouse
        } catch {
            model.remark = "the app does not start: \(error)"
            return nil
        }
    }

    private func start() async {
        guard model.phase != .front, let rouse = await launch() else { return }
        running?.cancel()
        model.phase = .front
        tell(.open)
        await rouse.scene(.active)
        await show(model.opened)
    }

    private func lock() async {
        guard model.phase == .front, let process else {
            model.remark = "the app is \(model.phase.words)"
            return
        }
        model.phase = .background
        tell(.lock(Self.runTime))
        await process.rouse.scene(.inactive)
        await process.rouse.scene(.background(remaining: Self.runTime))
        let (events, life) = (events, life)
        running = Task {
            do { try await Task.sleep(for: .milliseconds(Self.runTime)) } catch { return }
            events.yield(.app(life: life, .timeOver))
        }
    }

    private func sleep() async {
        guard process != nil else {
            model.remark = "the app is not running"
            return
        }
        if model.phase == .front { await lock() }
        await suspend()
    }

    private func suspend() async {
        running?.cancel()
        model.phase = .suspended
        await process?.rouse.scene(.suspending)
        tell(.suspend)
    }

    private func kill() {
        endProcess()
        tell(.kill)
        model.phase = .killed
        (model.connection, model.conversations, model.opened) = (.offline, [], nil)
        (model.window, model.typing, model.place) = (MessageWindow(), [], nil)
        (model.hasList, model.hasSynced, model.trouble) = (false, false, ChatTrouble())
    }

    private func endProcess() {
        running?.cancel()
        guard let process else { return }
        for task in process.tasks { task.cancel() }
        process.following?.cancel()
        process.transport.drop()
        // Ends what waits in it, so that it lets go of its store.
        Task { [rouse = process.rouse] in await rouse.scene(.suspending) }
        self.process = nil
        life += 1
    }

    private func wake() async {
        guard model.phase != .front else {
            model.remark = "the app is in front: nothing wakes it"
            return
        }
        tell(.refresh)
        await runBehind(nil)
    }

    /// The system runs the app for a push.
    private func runBehind(_ wake: WakeID?) async {
        guard let rouse = await launch() else { return }
        running?.cancel()
        model.phase = .background
        receive(wake, rouse)
    }

    private func receive(_ wake: WakeID?, _ rouse: Rouse) {
        let (events, life) = (events, life)
        process?.tasks.append(
            Task {
                let result = await rouse.woken(by: wake, within: Self.runTime)
                events.yield(.app(life: life, .woken(result)))
            })
    }

    private func tap(_ number: Int) async {
        guard let notice = phone.notice(number) else {
            model.remark = "there is no notification \(number)"
            return
        }
        phone.take(notice.identifier)
        if let conversation = notice.conversation { model.opened = conversation }
        if model.phase == .front {
            await show(model.opened)
        } else {
            await start()
        }
    }
}

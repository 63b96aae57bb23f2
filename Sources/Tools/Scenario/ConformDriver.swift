import APNsSimulator
import AppLife
import Client
import Crypto
import EventLoop
public import FoundationEssentials
import Glibc
import Model
import RouseClient
import SQLiteStore
import SyncClient
import Wire

/// Our client as `rouse conform client` wants one: told by lines on standard input, answering
/// each with a line of JSON (Protocol/conformance.md).
public struct ConformDriver {
    /// Who connects, and to what.
    public struct Options {
        public var host: String
        public var port: UInt16
        /// The name in the server's certificate.
        public var serverName: String
        /// PEM of the authorities to trust.
        public var authorityPEM: String
        public var app: String
        public var user: String
        /// Signs identity tokens; PEM.
        public var issuerKeyPEM: String
        public var keyID: String
        /// Where the device keeps everything; it is there.
        public var folder: URL

        public init(
            host: String, port: UInt16, serverName: String, authorityPEM: String, app: String,
            user: String, issuerKeyPEM: String, keyID: String, folder: URL
        ) {
            self.host = host
            self.port = port
            self.serverName = serverName
            self.authorityPEM = authorityPEM
            self.app = app
            self.user = user
            self.issuerKeyPEM = issuerKeyPEM
            self.keyID = keyID
            self.folder = folder
        }
    }

    /// Runs until standard input ends.
    ///
    /// - Throws: when keys cannot be read or the store cannot be opened.
    public static func run(_ options: Options) throws {
        let loop = try Loop()
        let driver = try DrivenDevice(options, loop: loop)
        let input = try LineInput(
            loop: loop, received: { print(driver.answer(to: $0)) }, ended: { loop.stop() })
        loop.run()
        driver.stop()
        withExtendedLifetime(input) { loop.close() }
    }

    private static func print(_ line: String) {
        Swift.print(line)
        fflush(nil)
    }
}

/// Lines of standard input. Loop-confined.
private final class LineInput {
    /// A line beyond it ends the input.
    private static let bytesMax = 1 << 20
    private var watch: DescriptorWatch?
    private var buffer: [UInt8] = []

    init(
        loop: Loop, received: @escaping (String) -> Void, ended: @escaping () -> Void
    ) throws {
        watch = try DescriptorWatch(
            loop: loop, descriptor: 0,
            onReady: { [unowned self] _ in
                var bytes = [UInt8](repeating: 0, count: 4_096)
                let count = read(0, &bytes, bytes.count)
                guard count > 0, self.buffer.count < Self.bytesMax else {
                    self.watch?.stop()
                    return ended()
                }
                self.buffer += bytes[..<count]
                while let end = self.buffer.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = String(decoding: self.buffer[..<end], as: UTF8.self)
                    self.buffer.removeSubrange(...end)
                    received(line)
                }
            }, onFailure: { _ in ended() })
        watch?.start(.readable)
    }
}

extension DrivenDevice.Answer.Notice {
    fileprivate init(_ notice: AppNotice) {
        func present(_ text: String) -> String? { text.isEmpty ? nil : text }
        title = present(notice.title)
        subtitle = present(notice.hints.subtitle)
        body = present(notice.body)
        sound =
            switch notice.sound {
            case nil: nil
            case .standard: "default"
            case .named(let name), .critical(let name, _): name
            }
        thread = notice.thread
        category = present(notice.hints.category)
        event = present(notice.hints.event)
        object = present(notice.hints.object)
        data = present(notice.hints.data)
    }
}

/// The device a driver stands for: the client, its store, and what it has told. Loop-confined.
private final class DrivenDevice {
    private struct Problem: Error { let text: String }

    fileprivate struct Answer: Encodable {
        struct Place: Encodable {
            var epoch: String
            var seq: UInt64
        }

        struct Message: Encodable {
            var id: String
            var position: UInt64
            var text: String
            var deleted: Bool
            var notice: Notice?
        }

        struct Notice: Encodable {
            var title: String?
            var subtitle: String?
            var body: String?
            var sound: String?
            var thread: String?
            var category: String?
            var event: String?
            var object: String?
            var data: String?
        }

        struct Conversation: Encodable {
            var id: String
            var known: Bool
            var messages: [Message]
        }

        struct Signal: Encodable, Equatable {
            var conversation: String
            var user: String
            var kind: String
        }

        struct Result: Encodable {
            var number: UInt64
            var code: UInt32
        }

        var error: String?
        var number: UInt64?
        var connected: Bool?
        var user: String?
        var cursor: Place?
        var pending: [UInt64]?
        var results: [Result]?
        var conversations: [Conversation]?
        var signals: [Signal]?
    }

    private static let rowsMax = 10_000
    private let store: TableLocalStore
    private let file: SQLiteStore
    private var client: SyncClient?
    private var hasStarted = false
    private var signals: [Answer.Signal] = []

    init(_ options: ConformDriver.Options, loop: Loop) throws {
        file = try SQLiteStore(
            path: options.folder.appendingPathComponent("device.sqlite").path,
            tables: LocalSchema.tables)
        store = TableLocalStore(store: file)
        let (app, user) = (options.app, options.user)
        let issuer = IdentityIssuer(
            issuer: app, keyID: options.keyID,
            key: try PrivateKey(pem: Array(options.issuerKeyPEM.utf8)), app: app)
        var events = SyncClientEvents { nonce, answer in
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(issuer.token(for: user, nonce: nonce, now: now))
        }
        events.reported = { [unowned self] in self.reported($0) }
        var configuration = ClientConfiguration(
            app: app, device: try Self.device(in: options.folder), clientName: "rouse-driver",
            clientVersion: "1")
        configuration.wantsSnapshots = true
        configuration.wantsSignals = true
        configuration.peeksOnWake = true
        let seed = Random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        client = try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: options.host, port: options.port, serverName: options.serverName),
            tls: try TLSContext.client(
                trustedCertificates: Array(options.authorityPEM.utf8), protocols: ["rouse/1"],
                keepsSessions: true),
            store: store, configuration: configuration, seed: seed, events: events)
    }

    /// Made once per installation.
    private static func device(in folder: URL) throws -> DeviceID {
        let place = folder.appendingPathComponent("device")
        if let text = try? String(contentsOf: place, encoding: .utf8),
            let id = DeviceID(text: text)
        {
            return id
        }
        let id = DeviceID(Random.bytes(16)) ?? DeviceID(high: 1, low: 1)
        try Data(id.description.utf8).write(to: place, options: .atomic)
        return id
    }

    func stop() {
        client?.terminate()
        file.close()
    }

    private func reported(_ event: ClientEvent) {
        guard case .signalled(let kind, let conversation, let user) = event else { return }
        let isPresence = kind == .present || kind == .away
        let signal = Answer.Signal(
            conversation: conversation.description, user: user,
            kind: isPresence ? "present" : "typing")
        signals.removeAll { $0 == signal }
        if kind == .typing || kind == .present { signals.append(signal) }
    }

    // MARK: Commands

    func answer(to line: String) -> String {
        var answer = Answer()
        do {
            answer = try carryOut(line.split(separator: " ").map(String.init))
        } catch let problem as Problem {
            answer.error = problem.text
        } catch {
            answer.error = "\(error)"
        }
        let encoded = try? JSONEncoder().encode(answer)
        return String(decoding: encoded ?? Data(#"{"error":"no answer"}"#.utf8), as: UTF8.self)
    }

    private func carryOut(_ words: [String]) throws -> Answer {
        guard let client else { throw Problem(text: "it has stopped") }
        func word(_ index: Int) throws -> String {
            guard index < words.count else { throw Problem(text: "a word is missing") }
            return words[index]
        }
        func id<Noun>(_ index: Int) throws -> Identifier<Noun> {
            guard let id = Identifier<Noun>(text: try word(index)) else {
                throw Problem(text: "no id: \(words[index])")
            }
            return id
        }
        func number(_ index: Int) throws -> UInt64 {
            guard let number = UInt64(try word(index)) else { throw Problem(text: "no number") }
            return number
        }
        func background(_ index: Int) throws -> AppState {
            AppState(phase: .background, remainingMs: UInt32(clamping: try number(index)))
        }
        var answer = Answer()
        switch words.first {
        case "foreground":
            let state = AppState(phase: .foreground)
            if client.isOpen { client.appStateChanged(state) } else { client.start(state) }
            hasStarted = true
        case "background": client.appStateChanged(try background(1))
        case "wake":
            let (wake, state): (WakeID, AppState) = (try id(1), try background(2))
            if hasStarted {
                client.pushReceived(wake: wake, state: state)
            } else {
                client.start(state, wake: wake)
                hasStarted = true
            }
        case "sleep": client.sleep()
        case "network": client.networkChanged()
        case "refresh": client.refresh()
        case "send":
            answer.number = try client.mutate(
                .sendMessage(
                    SendMessage(
                        conversation: try id(1), message: try id(2),
                        parts: [
                            Part(
                                mimeType: "text/plain",
                                content: Array(words.dropFirst(3).joined(separator: " ").utf8))
                        ])))
        case "create":
            answer.number = try client.mutate(
                .createConversation(
                    CreateConversation(
                        conversation: try id(1), participants: Array(words.dropFirst(2)))))
        case "logout": answer.number = try client.mutate(.forgetDevice(ForgetDevice()))
        case "read": try client.read(try id(1), through: try number(2))
        case "fetch": _ = client.fetch(Fetch(conversation: try id(1)))
        case "state": answer = try state(of: client)
        default: throw Problem(text: "no command: \(words.first ?? "")")
        }
        return answer
    }

    private func state(of client: SyncClient) throws -> Answer {
        let held = try store.load()
        var answer = Answer()
        answer.connected = client.isOpen
        answer.user = held.user
        answer.cursor = held.cursor.map {
            Answer.Place(epoch: $0.epoch.description, seq: $0.seq)
        }
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        answer.pending = try store.mutations(after: 0, limit: Self.rowsMax, now: now)
            .map(\.number)
        answer.results = []
        for number in 1...max(1, min(held.lastMutation, UInt64(Self.rowsMax))) {
            guard let result = try store.result(of: number) else { continue }
            answer.results?.append(Answer.Result(number: number, code: result.code))
        }
        let known = try store.conversations().compactMap(\.conversation)
        let others = try store.orphans(limit: Self.rowsMax).filter { !known.contains($0) }
        answer.conversations = []
        for conversation in known + others {
            answer.conversations?.append(
                Answer.Conversation(
                    id: conversation.description, known: known.contains(conversation),
                    messages: try messages(of: conversation)))
        }
        answer.signals = signals
        return answer
    }

    private func messages(of conversation: ConversationID) throws -> [Answer.Message] {
        try store.messages(of: conversation, limit: Self.rowsMax).compactMap { entry in
            let id = MessageID(entry.object)?.description ?? ""
            switch entry.body {
            case .message(let message):
                let text = String(decoding: message.parts.first?.content ?? [], as: UTF8.self)
                return Answer.Message(
                    id: id, position: message.position, text: text, deleted: false,
                    notice: AppNotice(entry).map { Answer.Notice($0) })
            case .tombstone(let tombstone):
                return Answer.Message(
                    id: id, position: tombstone.position, text: "", deleted: true)
            default: return nil
            }
        }
    }
}

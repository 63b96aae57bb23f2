import AppLife
public import Client
import EventLoop
import FoundationEssentials
import Model
public import RouseClient
import SQLiteStore
import SyncClient
import Wire

/// Who chats, and where.
public struct ChatOptions: Sendable {
    public var endpoint: SyncEndpoint
    /// Authorities in PEM; `nil`: the system's.
    public var trusted: [UInt8]?
    public var app: String
    public var user: String
    /// Holds the phone's files: the store, and the name of the device.
    public var folder: String
    /// Signs for the app's backend.
    public var identity: Rouse.Identity
    /// The control socket of an APNs simulator, and the app's topic there; `nil`: the phone has no
    /// push token.
    public var pushes: (socket: String, topic: String)?

    public init(
        endpoint: SyncEndpoint, trusted: [UInt8]?, app: String, user: String, folder: String,
        identity: @escaping Rouse.Identity
    ) {
        self.endpoint = endpoint
        self.trusted = trusted
        self.app = app
        self.user = user
        self.folder = folder
        self.identity = identity
    }
}

/// Why a chat did not begin, in words.
public struct ChatRefusal: Error, CustomStringConvertible {
    public let description: String
}

/// What happens to a chat, in one order.
enum ChatEvent: Sendable {
    case keys([ChatKey])
    case resized
    /// The system wants the program to stop for a while.
    case suspended
    case ended
    case screen(ChatPhone.Screen)
    case push(ChatPushes.Arrival)
    /// Of a process of the app; of an older one it is not heard.
    case app(life: Int, AppEvent)

    enum AppEvent: Sendable {
        case conversations([ConversationRow])
        case window(ConversationID, MessageWindow)
        case connection(ConnectionState)
        case change(RouseChange)
        /// Of a trouble, or of its end.
        case record(RouseRecord)
        /// The wake is over.
        case woken(FetchResult)
        /// The time that the locked phone gave is over.
        case timeOver
    }
}

/// `rouse chat`: an app on the client library, and a phone around it.
public enum Chat {
    /// Runs until the person leaves.
    ///
    /// - Throws: `ChatRefusal`.
    public static func run(_ options: ChatOptions) async throws {
        let device = try Self.device(options)
        let pushes = try options.pushes.map {
            try ChatPushes(
                path: $0.socket, topic: $0.topic, user: options.user, device: device)
        }
        defer { pushes?.stop() }
        let terminal: ChatTerminal
        do throws(ChatTerminal.Unfit) {
            terminal = try ChatTerminal()
        } catch {
            throw ChatRefusal(description: error.description)
        }
        let (events, continuation) = AsyncStream.makeStream(of: ChatEvent.self)
        let input = ChatInput(terminal, continuation)
        defer { input.stop() }
        let desk = ChatDesk(
            options, device: device, terminal: terminal, pushes: pushes, events: continuation)
        await desk.open()
        pushes?.follow { continuation.yield(.push($0)) }
        for await event in events {
            // Who wants to leave does not wait for drawings of what was typed before.
            let goesOn =
                input.isInterrupted ? await desk.finish(event) : await desk.take(event)
            guard goesOn else { break }
        }
        await desk.close()
        terminal.close()
    }

    /// The device of the folder, which is made with the first chat.
    private static func device(_ options: ChatOptions) throws -> DeviceID {
        let files = FileManager.default
        do {
            try files.createDirectory(
                atPath: options.folder, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw ChatRefusal(
                description: "the folder \(options.folder) cannot be made: choose another one")
        }
        let path = options.folder + "/device"
        if let data = files.contents(atPath: path) {
            guard
                let device = DeviceID(
                    text: String(String(decoding: data, as: UTF8.self).prefix { !$0.isNewline }))
            else { throw ChatRefusal(description: "\(path) holds no device: remove the folder") }
            return device
        }
        var random = SystemRandomNumberGenerator()
        let device = DeviceID(high: random.next(), low: random.next())
        guard files.createFile(atPath: path, contents: Data("\(device)\n".utf8)) else {
            throw ChatRefusal(description: "\(path) cannot be written: choose another folder")
        }
        return device
    }
}

/// Reads the keyboard on a thread of its own, and notices the terminal's size, and what the system
/// says of the program's job.
private final class ChatInput: @unchecked Sendable {
    // @unchecked: the variables are guarded by `lock`.
    private let lock = Lock()
    private var isStopped = false
    private var hasInterrupt = false

    /// The key that ends the chat is among those that wait.
    var isInterrupted: Bool { lock.withLock { hasInterrupt } }

    init(_ terminal: ChatTerminal, _ events: AsyncStream<ChatEvent>.Continuation) {
        WorkThread.start("keyboard") { [self] in
            var reader = ChatKeyReader()
            var size = terminal.size
            while !lock.withLock({ isStopped }) {
                guard let bytes = terminal.read() else {
                    events.yield(.ended)
                    return
                }
                let keys = reader.read(bytes)
                if keys.contains(.interrupt) { lock.withLock { hasInterrupt = true } }
                if !keys.isEmpty { events.yield(.keys(keys)) }
                if terminal.wasToldToStop { events.yield(.suspended) }
                guard terminal.wasContinued || terminal.size != size else { continue }
                size = terminal.size
                events.yield(.resized)
            }
        }
    }

    func stop() { lock.withLock { isStopped = true } }
}

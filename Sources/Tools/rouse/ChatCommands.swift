import Chat
import Client
import Crypto
import EventLoop
import FoundationEssentials

/// `rouse chat`: an app on the client library, in a terminal.
extension Rouse {
    static let chatCommands: [Command] = [
        Command(
            description: CommandDescription(
                name: "chat", summary: "chat in a terminal, with a phone beside it",
                options: [
                    CommandOption("app", "APP", "the app"),
                    CommandOption("user", "USER", "who chats"),
                    CommandOption("key", "FILE", "key that signs identity tokens, PEM"),
                    CommandOption("kid", "KID", "its name at the server (default dev)"),
                    CommandOption("issuer", "NAME", "`iss` (default rouse-dev)"),
                    CommandOption("host", "HOST", "the server (default 127.0.0.1)"),
                    CommandOption("port", "PORT", "its port for devices (default 7443)"),
                    CommandOption("name", "NAME", "in its certificate (default: the host)"),
                    CommandOption("ca", "FILE", "authority in PEM (default: the system's)"),
                    CommandOption(
                        "folder", "DIR", "the phone's files (default chat-USER, made if missing)"),
                    CommandOption(
                        "apns", "SOCKET", "control socket of an APNs simulator: it brings pushes"),
                    CommandOption("topic", "TOPIC", "the app's topic there"),
                ],
                examples: [
                    "rouse chat --app demo --user anna --key keys/issuer.pem --ca tls/ca.pem",
                    "rouse chat --app demo --user ben --key keys/issuer.pem --ca tls/ca.pem "
                        + "--apns apns.sock --topic org.example.demo",
                ],
                notes: """
                    An app made with the client library, and the phone it runs on: notifications
                    and the icon stand at the right. Open two terminals for two users, and let one
                    of the phones sleep: /lock, /sleep and /kill do to the app what the system
                    does, /wake wakes it as a silent push does, /tap taps a notification. /help
                    shows all, Ctrl-C leaves, Ctrl-Z stops the chat until the shell's `fg`.

                    With --apns the phone is a device of that APNs simulator, chat-USER, and has a
                    push token: what the server pushes wakes its app, or stands on its screen.
                    Without, the server's pushes are not seen. The chat signs its own identity
                    tokens, as a backend does, with a development key (`rouse dev key`).
                    """),
            run: { try chat($0) })
    ]

    private static func chat(_ arguments: Arguments) throws -> Int32 {
        let user = try arguments.required("user")
        let host = arguments.string("host") ?? "127.0.0.1"
        let signer = try TokenSigner(arguments)
        guard arguments.has("apns") == arguments.has("topic") else {
            throw UsageError("--apns and --topic go together")
        }
        var options = ChatOptions(
            endpoint: SyncEndpoint(
                host: host, port: try arguments.number("port", in: UInt16(1)...65_535) ?? 7443,
                serverName: arguments.string("name") ?? host),
            trusted: try file("ca", arguments).map { Array($0.utf8) },
            app: try arguments.required("app"), user: user,
            folder: arguments.string("folder") ?? "chat-\(user)",
            identity: { nonce in try? signer.token(nonce: Base64URL.encode(nonce)) })
        if let socket = arguments.string("apns"), let topic = arguments.string("topic") {
            options.pushes = (socket, topic)
        }
        let outcome = Outcome()
        Task {
            do {
                try await Chat.run(options)
            } catch {
                outcome.refusal = "\(error)"
            }
            outcome.ended.arrive()
        }
        outcome.ended.wait()
        guard let refusal = outcome.refusal else { return ExitStatus.success }
        Terminal.complain("rouse chat: \(refusal)")
        return ExitStatus.unavailable
    }

    private final class Outcome: @unchecked Sendable {
        // @unchecked: written before the latch opens, read after it.
        let ended = Latch()
        var refusal: String?
    }
}

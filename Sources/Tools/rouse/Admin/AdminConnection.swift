import APNsSimulator
import FoundationEssentials
import JSONTree
import RouseServer

/// Why a command was refused, in words for people: the admin API's, or its own.
struct AdminRefusal: Error, CustomStringConvertible {
    let description: String
    /// The command's exit status.
    var status = ExitStatus.failure
    /// Whether it was printed as JSON, as the server told it.
    var isPrinted = false
}

/// The way to a store's admin API: the socket of the running server, or the file itself.
final class AdminConnection {
    private enum Way {
        case server(socket: String)
        case file(OfflineAdministration)
    }

    private let way: Way
    private let isJSON: Bool

    static let options = [
        CommandOption("socket", "PATH", "admin socket of the running server"),
        CommandOption("store", "PATH", "the store's file (default rouse.db)"),
        CommandOption("config", "FILE", "the server's configuration, which names both"),
        CommandOption("json", nil, "print the answer as JSON"),
    ]

    /// - Parameters:
    ///   - makesStore: whether a store that does not exist is made, with its tables.
    ///   - reads: nothing is asked for that changes anything: a file of an older schema is refused.
    init(_ arguments: Arguments, makesStore: Bool = false, reads: Bool = false) throws {
        isJSON = arguments.has("json")
        if let socket = arguments.string("socket") {
            way = .server(socket: socket)
            return
        }
        var configuration = try Rouse.servedConfiguration(arguments)
        if let store = arguments.string("store") {
            configuration.storePath = store
            configuration.postgres = ""
            configuration.adminSocket = ""
        }
        let (place, socket) = (configuration.storePlace, configuration.adminSocketPath)
        if UnixSocketHTTP.isAnswered(socket) {
            if arguments.has("store") {
                Terminal.complain("a server has \(place.name) open: asking it at \(socket)")
            }
            way = .server(socket: socket)
            return
        }
        if case .file(let path) = place, !makesStore,
            !FileManager.default.fileExists(atPath: path)
        {
            throw AdminRefusal(
                description: "there is no store at \(path) and no server at \(socket); "
                    + "name yours with --config, --store or --socket. A new store begins with "
                    + "`rouse serve`, or with `rouse app create APP --new-store`",
                status: ExitStatus.unavailable)
        }
        let upgrades = StoreUpgrades(refuses: reads) { Terminal.complain("rouse: \($0)") }
        do {
            way = .file(
                try OfflineAdministration(place, makesStore: makesStore, upgrades: upgrades))
        } catch {
            if upgrades.hasRefused {
                throw AdminRefusal(description: ErrorWords.of(error), status: ExitStatus.badData)
            }
            throw AdminRefusal(
                description: "\(ErrorWords.of(error)); "
                    + "if that is a server with another admin socket, give --socket PATH",
                status: ExitStatus.unavailable)
        }
    }

    deinit {
        if case .file(let administration) = way { administration.close() }
    }

    /// Whether a server answers, and not its file.
    var isServed: Bool {
        if case .server = way { true } else { false }
    }

    /// Asks, prints the answer if it was to be JSON, and gives it back.
    ///
    /// - Parameter loss: What is lost if the answer, which holds a secret that is told this once,
    ///   cannot be printed, and what to do then.
    /// - Throws: what the API refused, in its words.
    @discardableResult
    func ask(
        _ method: String, _ path: [String], _ body: JSONValue? = nil, limit: Int? = nil,
        loss: ((JSONValue) -> String)? = nil
    ) throws -> JSONValue {
        let bytes = try body?.bytes ?? []
        let (status, answer) = try send(
            method, path, query: limit.map { [("limit", String($0))] } ?? [], bytes)
        let value = answer.isEmpty ? JSONValue.object([:]) : try JSONValue(bytes: answer)
        if let loss, (200..<300).contains(status) { Terminal.expectLoss(loss(value)) }
        if isJSON { Terminal.print(String(decoding: try value.bytes, as: UTF8.self)) }
        guard (200..<300).contains(status) else {
            let detail = value["detail"].words
            throw AdminRefusal(
                description: detail.isEmpty ? "status \(status)" : detail, isPrinted: isJSON)
        }
        return value
    }

    private func send(
        _ method: String, _ path: [String], query: [(name: String, value: String)],
        _ body: [UInt8]
    ) throws -> (status: Int, body: [UInt8]) {
        switch way {
        case .file(let administration):
            return administration.answer(
                method: method, path: path, query: query, body: body)
        case .server(let socket):
            do {
                return try UnixSocketHTTP.send(method, path, query: query, body: body, to: socket)
            } catch {
                throw AdminRefusal(
                    description: "\(error); is `rouse serve` running? The file of a stopped "
                        + "server is changed with --store PATH",
                    status: ExitStatus.unavailable)
            }
        }
    }

    /// Prints for people; nothing when JSON was asked for.
    func say(_ text: @autoclosure () -> String) {
        guard !isJSON else { return }
        let text = text()
        Terminal.print(Terminal.isTerminal ? Terminal.harmless(text) : text)
    }

    /// Remarks that no script should read.
    func remark(_ text: String) {
        if !isJSON { Terminal.complain(text) }
    }
}

import Client
import Glibc
import RouseClient
import Testing

/// The end of a transport, seen by who waits for what happens on its connections.
@Suite(.timeLimit(.minutes(60))) struct SocketTransportTests {
    /// Takes connections and says nothing.
    private final class Mute {
        let socket: Int32
        let port: UInt16

        init() throws {
            (socket, port) = try listenOnLoopback()
        }

        deinit { close(socket) }
    }

    private func transport(_ server: Mute) throws -> SocketTransport {
        try SocketTransport(
            SyncEndpoint(host: "127.0.0.1", port: server.port, serverName: "localhost"),
            trustedCertificates: nil)
    }

    /// What is told, as words.
    private func heard(_ connection: any RouseConnection) async -> [String] {
        var words: [String] = []
        for await event in connection.events {
            switch event {
            case .connected: words.append("connected")
            case .received: words.append("received")
            case .closed(let why): words.append("closed: \(why)")
            }
        }
        return words
    }

    @Test("who waits on a connection of a transport that is dropped is told that it is closed")
    func dropped() async throws {
        let server = try Mute()
        let transport = try transport(server)
        let connection = transport.connect()
        let listener = Task { await heard(connection) }
        // It has dialled.
        let accepted = accept(server.socket, nil, nil)
        #expect(accepted >= 0)
        transport.drop()
        #expect(await listener.value == ["closed: the transport has ended"])
        close(accepted)
        // Of what is asked for afterwards nothing waits for ever.
        connection.send([1])
        connection.close()
        let late = transport.connect()
        #expect(await heard(late) == ["closed: the transport has ended"])
        late.send([1])
    }

    @Test("so is who waits on one that nobody holds any more")
    func released() async throws {
        let server = try Mute()
        var transport: SocketTransport? = try transport(server)
        let connection = try #require(transport?.connect())
        let listener = Task { await heard(connection) }
        let accepted = accept(server.socket, nil, nil)
        #expect(accepted >= 0)
        transport = nil
        #expect(await listener.value == ["closed: the transport has ended"])
        close(accepted)
    }
}

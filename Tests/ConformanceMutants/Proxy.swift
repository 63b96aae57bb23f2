import Crypto
import Foundation
import Glibc
import Synchronization
import Wire

/// A server with one defect: everything goes on to the real one, but for what the defect does.
final class Proxy: Sendable {
    /// What every connection's thread needs.
    struct Place: Sendable {
        let serverPort: UInt16
        let serverAuthorityPEM: String
        let certificatePEM: String
        let privateKeyPEM: String
    }

    let port: UInt16
    private let listener: Int32
    private let isStopped = Atomic(false)

    /// Listens on a free port of 127.0.0.1.
    ///
    /// - Parameter make: the defect of one connection.
    init(_ place: Place, shared: Shared, make: @escaping @Sendable (Shared) -> Defect) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard bind(listener, address, size) == 0, listen(listener, 256) == 0 else {
                    return Int32(-1)
                }
                return getsockname(listener, address, &size)
            }
        }
        guard status == 0 else { throw MutantError("cannot listen: \(errno)") }
        port = UInt16(bigEndian: address.sin_port)
        let thread = Thread { [self] in
            // Here and nowhere else: the number of a closed socket is the next one's, and a loop
            // that still asked it would take a connection of the next proxy's away.
            defer { close(listener) }
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                if isStopped.load(ordering: .acquiring) {
                    close(descriptor)
                    return
                }
                let pump = Thread { Self.serve(descriptor, place, make(shared)) }
                pump.stackSize = 512 << 10
                pump.start()
            }
        }
        thread.start()
    }

    func stop() {
        isStopped.store(true, ordering: .releasing)
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func dial(_ port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(port)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard status == 0 else {
            close(descriptor)
            return -1
        }
        return descriptor
    }

    private static func noDelay(_ descriptor: Int32) {
        var on: Int32 = 1
        setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// One connection, until either side ends.
    private static func serve(_ descriptor: Int32, _ place: Place, _ defect: Defect) {
        guard
            let front = try? TLSContext.server(
                certificateChain: Array(place.certificatePEM.utf8),
                privateKey: Array(place.privateKeyPEM.utf8), protocols: ["rouse/1"]),
            let back = try? TLSContext.client(
                trustedCertificates: Array(place.serverAuthorityPEM.utf8),
                protocols: ["rouse/1"], minimumVersion: .tls13),
            let engine = try? back.makeEngine(serverName: "localhost")
        else {
            close(descriptor)
            return
        }
        let dialled = dial(place.serverPort)
        guard dialled >= 0 else {
            close(descriptor)
            return
        }
        noDelay(descriptor)
        noDelay(dialled)
        let client = TLSPipe(descriptor: descriptor, engine: front.makeEngine())
        let server = TLSPipe(descriptor: dialled, engine: engine)
        guard (try? server.begin()) != nil else { return }
        pump(client, server, defect)
        client.finish()
        server.finish()
    }

    private static func pump(_ client: TLSPipe, _ server: TLSPipe, _ defect: Defect) {
        var fromClient = FrameSplitter()
        var fromServer = FrameSplitter()
        fromServer.bodyBytesMax = 1 << 24
        var relay = Relay()
        var waiting: [UInt8] = []
        while !client.hasEnded, !server.hasEnded || relay.outlivesServer {
            var entries = [
                pollfd(fd: client.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(
                    fd: server.hasEnded ? -1 : server.descriptor, events: Int16(POLLIN),
                    revents: 0),
            ]
            guard poll(&entries, 2, 120_000) > 0 else { return }
            if entries[1].revents != 0 {
                for piece in fromServer.take(server.read()) {
                    guard case .frame(let bytes) = piece else { continue }
                    let frame = Defect.decoded(bytes)
                    if case .welcome = frame?.body { fromClient.bodyBytesMax = 262_144 }
                    defect.fromServer(bytes, frame, &relay)
                }
            }
            if entries[0].revents != 0 {
                for piece in fromClient.take(client.read()) {
                    switch piece {
                    case .frame(let bytes):
                        defect.fromClient(bytes, Defect.decoded(bytes), &relay)
                    case .faulty(let bytes): defect.faulty(bytes, &relay)
                    }
                }
            }
            waiting += relay.toServer
            relay.toServer = []
            if server.isReady {
                if server.hasEnded {
                    answerAlone(waiting, &relay)
                } else {
                    server.write(waiting)
                }
                waiting = []
            }
            client.write(relay.toClient)
            relay.toClient = []
        }
    }

    /// The server has gone and the mutant does as if it had not: PING gets its PONG.
    private static func answerAlone(_ bytes: [UInt8], _ relay: inout Relay) {
        var splitter = FrameSplitter()
        splitter.bodyBytesMax = 1 << 24
        for piece in splitter.take(bytes) {
            guard case .frame(let bytes) = piece, let frame = Defect.decoded(bytes),
                case .ping = frame.body
            else { continue }
            relay.client(Frame(.pong(Pong(nextMs: 60_000)), request: frame.request))
        }
    }
}

struct MutantError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

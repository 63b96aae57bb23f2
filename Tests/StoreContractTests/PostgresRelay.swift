import Foundation
import Glibc
import PostgresPeer
import Synchronization

/// Stands between a store and the server, and cuts a connection when the answer to COMMIT is on
/// its way back, or brings no answers.
final class PostgresRelay: Sendable {
    private struct State {
        /// The next answer to COMMIT does not arrive, and this is done before the cut.
        var swallows: (@Sendable () -> Void)?
        var isMute = false
        var isHeld = false
        var cuts = 0
        var connections = 0
    }

    private let folder: String
    private let server: String
    private let listener: Int32
    private let state = Mutex(State())

    /// As libpq takes it.
    var address: String { address(of: "rouse") }

    func address(of role: String) -> String { "host=\(folder) user=\(role) dbname=postgres" }

    /// The number of connections that were cut.
    var cuts: Int { state.withLock { $0.cuts } }

    /// The number of connections that were made.
    var connections: Int { state.withLock { $0.connections } }

    init(to peer: PostgresPeer) throws {
        folder =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-relay-\(UUID().uuidString.prefix(8))").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        server = "\(peer.folder)/.s.PGSQL.5432"
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.socketAddress("\(folder)/.s.PGSQL.5432")
        let isListening = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard isListening == 0, listen(listener, 8) == 0 else {
            throw POSIXError(.init(rawValue: errno) ?? .EIO)
        }
        Thread.detachNewThread { [self] in accept() }
    }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// While set, nothing that the server says arrives; the connections stand.
    /// What the server says is kept until this ends.
    var isHeld: Bool {
        get { state.withLock { $0.isHeld } }
        set { state.withLock { $0.isHeld = newValue } }
    }

    var isMute: Bool {
        get { state.withLock { $0.isMute } }
        set { state.withLock { $0.isMute = newValue } }
    }

    /// - Parameter before: is done when the server has answered, before the connection is cut.
    func swallowsNextAnswer(before: @escaping @Sendable () -> Void = {}) {
        state.withLock { $0.swallows = before }
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            state.withLock { $0.connections += 1 }
            Thread.detachNewThread { [self] in
                relay(client)
                close(client)
            }
        }
    }

    private func relay(_ client: Int32) {
        let upstream = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(upstream) }
        var address = Self.socketAddress(server)
        let isConnected = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(upstream, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard isConnected == 0 else { return }
        var both = [
            pollfd(fd: client, events: Int16(POLLIN), revents: 0),
            pollfd(fd: upstream, events: Int16(POLLIN), revents: 0),
        ]
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while poll(&both, 2, -1) > 0 {
            for (from, to) in [(0, upstream), (1, client)] where both[from].revents != 0 {
                let count = read(both[from].fd, &buffer, buffer.count)
                guard count > 0 else { return }
                if from == 1, isSwallowed(buffer[..<count]) { return }
                if from == 1, isMute { continue }
                while from == 1, isHeld { usleep(10_000) }
                // Whoever has closed its end meanwhile must not end the process by SIGPIPE.
                guard send(to, &buffer, count, Int32(MSG_NOSIGNAL)) == count
                else { return }
            }
        }
    }

    private func isSwallowed(_ bytes: ArraySlice<UInt8>) -> Bool {
        let before = state.withLock { state -> (@Sendable () -> Void)? in
            let commit = Data("COMMIT\0".utf8)
            guard let before = state.swallows, Data(bytes).range(of: commit) != nil
            else { return nil }
            state.swallows = nil
            state.cuts += 1
            return before
        }
        before?()
        return before != nil
    }

    private static func socketAddress(_ path: String) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return address
    }
}

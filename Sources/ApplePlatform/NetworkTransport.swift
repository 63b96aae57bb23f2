#if canImport(Network)
    import Foundation
    import Network
    public import RouseClient
    import Security

    /// TLS 1.3 connections of Network.framework.
    public struct NetworkTransport: RouseTransport {
        private let host: String
        private let port: UInt16

        public init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }

        public func connect() -> any RouseConnection {
            let tls = NWProtocolTLS.Options()
            sec_protocol_options_add_tls_application_protocol(
                tls.securityProtocolOptions, "rouse/1")
            sec_protocol_options_set_min_tls_protocol_version(
                tls.securityProtocolOptions, .TLSv13)
            let connection = NWConnection(
                host: NWEndpoint.Host(host), port: NWEndpoint.Port(integerLiteral: port),
                using: NWParameters(tls: tls))
            return NetworkConnection(connection)
        }
    }

    private final class NetworkConnection: RouseConnection {
        let events: AsyncStream<TransportEvent>
        private let connection: NWConnection

        init(_ connection: NWConnection) {
            self.connection = connection
            let reader = NetworkReader(connection)
            events = AsyncStream { await reader.next() }
            connection.start(queue: DispatchQueue(label: "rouse"))
        }

        func send(_ bytes: [UInt8]) {
            // What goes wrong is told by the next `receive`.
            connection.send(content: Data(bytes), completion: .contentProcessed { _ in })
        }

        func close() {
            // The last write of the connection: what was sent before it still leaves.
            connection.send(
                content: nil, contentContext: .finalMessage, isComplete: true,
                completion: .contentProcessed { [connection] _ in connection.cancel() })
        }
    }

    /// Reads no more of the socket than the client has dealt with.
    private actor NetworkReader {
        static let readMax = 65_536

        private let connection: NWConnection
        private let states: AsyncStream<NWConnection.State>
        private var isReady = false
        private var isOver = false

        init(_ connection: NWConnection) {
            self.connection = connection
            let (states, telling) = AsyncStream.makeStream(of: NWConnection.State.self)
            self.states = states
            connection.stateUpdateHandler = { telling.yield($0) }
        }

        func next() async -> TransportEvent? {
            if isOver { return nil }
            let event = isReady ? await received() : await opened()
            if case .closed = event {
                isOver = true
                // One that waits for a network would dial by itself when there is one.
                connection.cancel()
            }
            return event
        }

        private func opened() async -> TransportEvent {
            for await state in states {
                switch state {
                case .ready:
                    isReady = true
                    return .connected
                // The client has its own back-off.
                case .waiting(let error), .failed(let error): return .closed(why: "\(error)")
                case .cancelled: return .closed(why: "cancelled")
                default: continue
                }
            }
            return .closed(why: "no state")
        }

        private func received() async -> TransportEvent {
            await withCheckedContinuation { continuation in
                connection.receive(
                    minimumIncompleteLength: 1, maximumLength: Self.readMax
                ) { data, _, _, error in
                    if let data, !data.isEmpty {
                        continuation.resume(returning: .received(Array(data)))
                    } else {
                        let why = error.map { "\($0)" } ?? "the server closed"
                        continuation.resume(returning: .closed(why: why))
                    }
                }
            }
        }
    }
#endif

#if canImport(Network)
    public import Foundation
    public import Network
    public import RouseClient
    import Security

    /// TLS 1.3 connections of Network.framework.
    public struct NetworkTransport: RouseTransport {
        /// Changes what a connection is made with, after the protocol and its version were set.
        public typealias Configure =
            @Sendable (NWProtocolTLS.Options, NWProtocolTCP.Options) -> Void

        private let host: String
        private let port: UInt16
        private let authorities: [Data]
        private let configure: Configure?

        /// - Parameters:
        ///   - authorities: certificates in DER or PEM of those who may have signed the server's,
        ///     and nobody else, as a development server's or to pin one; empty: the system's.
        ///   - configure: for all else that Network knows of TLS and TCP.
        public init(
            host: String, port: UInt16, authorities: [Data] = [], configure: Configure? = nil
        ) {
            self.host = host
            self.port = port
            self.authorities = authorities
            self.configure = configure
        }

        public func connect() -> any RouseConnection {
            let (tls, tcp) = (NWProtocolTLS.Options(), NWProtocolTCP.Options())
            let options = tls.securityProtocolOptions
            sec_protocol_options_add_tls_application_protocol(options, "rouse/1")
            sec_protocol_options_set_min_tls_protocol_version(options, .TLSv13)
            // Frames are small, and somebody waits for each.
            tcp.noDelay = true
            if !authorities.isEmpty { trustOnly(options) }
            configure?(tls, tcp)
            let connection = NWConnection(
                host: NWEndpoint.Host(host), port: NWEndpoint.Port(integerLiteral: port),
                using: NWParameters(tls: tls, tcp: tcp))
            return NetworkConnection(connection)
        }

        private func trustOnly(_ options: sec_protocol_options_t) {
            let (host, authorities) = (host, authorities)
            sec_protocol_options_set_verify_block(
                options,
                { _, presented, complete in
                    let trust = sec_trust_copy_ref(presented).takeRetainedValue()
                    let anchors = authorities.compactMap {
                        SecCertificateCreateWithData(nil, $0.certificate as CFData)
                    }
                    // The name is looked at as ever, and what is no certificate lets nobody in.
                    SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, host as CFString))
                    SecTrustSetAnchorCertificates(trust, anchors as CFArray)
                    SecTrustSetAnchorCertificatesOnly(trust, true)
                    complete(SecTrustEvaluateWithError(trust, nil))
                }, DispatchQueue(label: "rouse.trust"))
        }
    }

    extension Data {
        /// In DER, also of a certificate in PEM.
        fileprivate var certificate: Data {
            guard let text = String(data: self, encoding: .utf8),
                let begin = text.range(of: "-----BEGIN CERTIFICATE-----"),
                let end = text.range(of: "-----END CERTIFICATE-----")
            else { return self }
            let body = String(text[begin.upperBound..<end.lowerBound])
            return Data(base64Encoded: body, options: .ignoreUnknownCharacters) ?? self
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
        /// A dial that hangs must not take all of the run time that a push gives.
        static let dialTime: UInt64 = 10_000_000_000
        /// So long a connection may be without a network that carries it: a moment without Wi-Fi
        /// does not end it.
        static let pathTime: UInt64 = 2_000_000_000

        private let connection: NWConnection
        private let states: AsyncStream<NWConnection.State>
        private var isReady = false
        private var isOver = false

        init(_ connection: NWConnection) {
            self.connection = connection
            let (states, telling) = AsyncStream.makeStream(of: NWConnection.State.self)
            let (paths, tellingPaths) = AsyncStream.makeStream(
                of: Bool.self, bufferingPolicy: .bufferingNewest(1))
            self.states = states
            connection.stateUpdateHandler = { state in
                telling.yield(state)
                switch state {
                case .cancelled, .failed: tellingPaths.finish()
                default: break
                }
            }
            connection.viabilityUpdateHandler = { tellingPaths.yield($0) }
            Task { await Self.endWithoutPath(connection, paths) }
        }

        /// Ends a connection that nothing carries any more. It would say nothing of it: what is
        /// idle is not missed, and what is sent is sent again for minutes.
        private static func endWithoutPath(
            _ connection: NWConnection, _ paths: AsyncStream<Bool>
        ) async {
            var ending: Task<Void, Never>?
            for await isViable in paths {
                ending?.cancel()
                ending = isViable ? nil : Self.cancel(connection, after: Self.pathTime)
            }
            ending?.cancel()
        }

        private static func cancel(
            _ connection: NWConnection, after time: UInt64
        ) -> Task<Void, Never> {
            Task {
                do { try await Task.sleep(nanoseconds: time) } catch { return }
                // Whoever waits for what comes next is told that it is over.
                connection.cancel()
            }
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
            let timer = Self.cancel(connection, after: Self.dialTime)
            defer { timer.cancel() }
            for await state in states {
                switch state {
                case .ready:
                    isReady = true
                    return .connected
                // The client has its own back-off.
                case .waiting(let error), .failed(let error): return .closed(why: "\(error)")
                case .cancelled: return .closed(why: "left, or not made in time")
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

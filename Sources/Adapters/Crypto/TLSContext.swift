import COpenSSL

/// The certificates, keys and rules that the connections of one loop share.
///
/// A context and its engines belong to one thread: they share buffers (see `TLSBuffers`). Make
/// one context per loop.
public final class TLSContext {
    /// The output that one engine may hold back before `send` refuses more, in bytes.
    public static let defaultMaximumPendingOutput = 4 << 20

    /// When the own certificate ends, in milliseconds since 1970; nil without a certificate.
    public let notAfter: Int64?

    let context: OpaquePointer
    let buffers = TLSBuffers()
    let limits: TLSLimits
    private let isServer: Bool
    /// Read by OpenSSL's callback through a raw pointer, so they live as long as the context.
    let ticketKeys = TicketKeys()
    /// Read by OpenSSL's callbacks through a raw pointer, so it lives as long as the context.
    private let protocols: ProtocolList

    private init(
        isServer: Bool, identity: Identity?, protocols: [String], requireProtocol: Bool,
        limits: TLSLimits
    ) throws(TLSError) {
        ErrorQueue.clear()
        guard let context = SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method())
        else { throw .libraryFailure(ErrorQueue.takeText()) }
        self.context = context
        self.isServer = isServer
        self.limits = limits
        self.protocols = ProtocolList(protocols, isRequired: requireProtocol)
        self.notAfter = identity?.notAfter
        try Self.install(identity, on: context)
        setUpDefaults()
        setUpProtocols()
    }

    deinit {
        SSL_CTX_free(context)
    }

    /// A context for accepted connections.
    ///
    /// - Parameters:
    ///   - certificateChain: the leaf first, then its intermediates, as PEM.
    ///   - privateKey: the leaf's key as unencrypted PEM.
    ///   - protocols: application protocols in order of preference (RFC 7301). A client that
    ///     offers others only is refused with the alert `no_application_protocol`.
    ///   - requireProtocol: refuse a client that offers none in the same way.
    ///   - minimumVersion: the oldest protocol version spoken.
    ///   - tickets: session tickets sent after a handshake, 0 or 1, under a key of this context
    ///     alone. For keys that several contexts share, see `use(ticketKeys:lifetime:)`.
    ///   - clientAuthorities: PEM of the authorities whose client certificates are asked for; a
    ///     client may still come without one, then `peerCertificateSubject` is nil.
    ///   - takesAnyClientCertificate: ask for a client certificate and take any, or none: the
    ///     owner judges `peerCertificateDigest` after the handshake, which proves that the peer
    ///     has the key. Not together with `clientAuthorities`.
    /// - Throws: a configuration error of `TLSError`; an expired certificate is one.
    public static func server(
        certificateChain: [UInt8], privateKey: [UInt8], protocols: [String],
        requireProtocol: Bool = true, minimumVersion: TLSVersion = .tls13, tickets: Int = 0,
        clientAuthorities: [UInt8]? = nil, takesAnyClientCertificate: Bool = false,
        limits: TLSLimits = TLSLimits()
    ) throws(TLSError) -> TLSContext {
        precondition(
            clientAuthorities == nil || !takesAnyClientCertificate,
            "either certain client certificates or any")
        precondition((0...1).contains(tickets), "0 or 1 tickets, not \(tickets)")
        let identity = try Identity(
            certificateChain: certificateChain, privateKey: privateKey, checkTime: limits.checkTime)
        let made = try TLSContext(
            isServer: true, identity: identity, protocols: protocols,
            requireProtocol: requireProtocol, limits: limits)
        try made.setMinimumVersion(minimumVersion)
        SSL_CTX_set_num_tickets(made.context, tickets)
        if tickets == 0 { SSL_CTX_set_options(made.context, rouse_SSL_OP_NO_TICKET()) }
        if let clientAuthorities {
            try made.trust(clientAuthorities)
            SSL_CTX_set_verify(made.context, SSL_VERIFY_PEER, nil)
            let name: [UInt8] = Array("rouse".utf8)
            SSL_CTX_set_session_id_context(made.context, name, UInt32(name.count))
        }
        if takesAnyClientCertificate {
            SSL_CTX_set_verify(made.context, SSL_VERIFY_PEER) { _, _ in 1 }
        }
        return made
    }

    /// The SHA-256 of a certificate (its DER), the first of `pem`.
    ///
    /// - Throws: `invalidCertificate`.
    public static func certificateDigest(pem: [UInt8]) throws(TLSError) -> [UInt8] {
        let certificates = PEM.certificates(pem)
        defer { PEM.free(certificates) }
        guard let first = certificates.first, let digest = sha256(ofCertificate: first) else {
            throw .invalidCertificate("no readable PEM certificate")
        }
        return digest
    }

    /// A context for outgoing connections. The server's chain is always verified.
    ///
    /// - Parameters:
    ///   - trustedCertificates: PEM of the trusted authorities; nil means those of the system.
    ///   - protocols: application protocols offered. If there are any, a server that picks none
    ///     of them is refused.
    ///   - certificateChain: a client certificate, for servers that ask for one.
    ///   - privateKey: its key.
    ///   - keepsSessions: whether engines hand out what a server offers to go on with.
    /// - Throws: a configuration error of `TLSError`.
    public static func client(
        trustedCertificates: [UInt8]?, protocols: [String], minimumVersion: TLSVersion = .tls12,
        certificateChain: [UInt8]? = nil, privateKey: [UInt8]? = nil, keepsSessions: Bool = false,
        limits: TLSLimits = TLSLimits()
    ) throws(TLSError) -> TLSContext {
        precondition(
            (certificateChain == nil) == (privateKey == nil),
            "a client certificate and its key come together")
        var identity: Identity?
        if let certificateChain, let privateKey {
            identity = try Identity(
                certificateChain: certificateChain, privateKey: privateKey,
                checkTime: limits.checkTime)
        }
        let made = try TLSContext(
            isServer: false, identity: identity, protocols: protocols,
            requireProtocol: !protocols.isEmpty, limits: limits)
        try made.setMinimumVersion(minimumVersion)
        if let trustedCertificates {
            try made.trust(trustedCertificates)
        } else if SSL_CTX_set_default_verify_paths(made.context) != 1 {
            throw .configurationRefused(ErrorQueue.takeText())
        }
        SSL_CTX_set_verify(made.context, SSL_VERIFY_PEER, nil)
        if keepsSessions { made.keepSessions() }
        if let time = limits.checkTime {
            X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(made.context), Int(time / 1000))
        }
        return made
    }

    /// An engine for one accepted connection; only for a server's context.
    public func makeEngine() -> TLSEngine {
        precondition(isServer, "a client's engine needs the name of its server")
        let ssl = newConnection()
        SSL_set_accept_state(ssl)
        return TLSEngine(ssl: ssl, context: self, isServer: true)
    }

    /// An engine for one outgoing connection; only for a client's context.
    ///
    /// - Parameters:
    ///   - serverName: a host name, or an IP address as text. Names are sent to the server (RFC
    ///     6066 section 3 forbids that for addresses).
    ///   - verifyHost: whether the certificate must name `serverName`; false for tools only.
    ///   - session: one that a server of this name offered. It is offered back, once, for a second
    ///     use would let others tell that both connections are of one client (RFC 8446 appendix
    ///     C.4).
    /// - Throws: `configurationRefused` if the name cannot be a host name.
    public func makeEngine(
        serverName: String, verifyHost: Bool = true, resuming session: TLSSession? = nil
    ) throws(TLSError) -> TLSEngine {
        precondition(!isServer, "a server's engine has no server name")
        guard !serverName.isEmpty, serverName.utf8.count <= 255,
            serverName.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .configurationRefused("not a host name: \(serverName)") }
        let ssl = newConnection()
        SSL_set_connect_state(ssl)
        // What cannot be offered is left out: the handshake is a whole one then.
        if let session { SSL_set_session(ssl, session.session) }
        let engine = TLSEngine(ssl: ssl, context: self, isServer: false)
        let parameters = SSL_get0_param(ssl)
        ErrorQueue.clear()
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) == 1 {
            if !verifyHost { X509_VERIFY_PARAM_set1_ip(parameters, nil, 0) }
            return engine
        }
        ErrorQueue.clear()
        let accepted = serverName.withCString { name in
            SSL_ctrl(
                ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name),
                UnsafeMutableRawPointer(mutating: name))
        }
        guard accepted == 1 else {
            throw .configurationRefused("not a host name: \(serverName)")
        }
        if verifyHost {
            X509_VERIFY_PARAM_set_hostflags(
                parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            X509_VERIFY_PARAM_set1_host(parameters, serverName, serverName.utf8.count)
        }
        return engine
    }

    private func newConnection() -> OpaquePointer {
        guard let ssl = SSL_new(context) else { preconditionFailure("out of memory: SSL_new") }
        buffers.attach(to: ssl)
        return ssl
    }

    private static func install(
        _ identity: Identity?, on context: OpaquePointer
    ) throws(TLSError) {
        // Level 2: at least 112 bits of security, so no RSA key under 2048 bits and no SHA-1.
        SSL_CTX_set_security_level(context, 2)
        guard let identity else { return }
        var accepted =
            SSL_CTX_use_certificate(context, identity.chain[0]) == 1
            && SSL_CTX_use_PrivateKey(context, identity.key) == 1
        for intermediate in identity.chain.dropFirst() where accepted {
            // SSL_CTX_add1_chain_cert()
            accepted =
                SSL_CTX_ctrl(
                    context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(intermediate)) == 1
        }
        guard accepted else { throw .configurationRefused(ErrorQueue.takeText()) }
    }

    private func setUpDefaults() {
        // SSL_CTX_clear_mode(): without AUTO_RETRY SSL_read returns after each record that holds
        // no data, so that the engine can count them.
        SSL_CTX_ctrl(context, SSL_CTRL_CLEAR_MODE, Int(SSL_MODE_AUTO_RETRY), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        SSL_CTX_set_options(
            context,
            rouse_SSL_OP_NO_RENEGOTIATION() | rouse_SSL_OP_NO_COMPRESSION()
                | rouse_SSL_OP_CIPHER_SERVER_PREFERENCE() | rouse_SSL_OP_PRIORITIZE_CHACHA())
        SSL_CTX_set_max_early_data(context, 0)
        SSL_CTX_set_recv_max_early_data(context, 0)
        SSL_CTX_set_ciphersuites(
            context,
            "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256")
        SSL_CTX_set_cipher_list(
            context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK")
        // Only groups that are cheap for a server (SSL_CTX_set1_groups_list()).
        "X25519:P-256:P-384".withCString { list in
            _ = SSL_CTX_ctrl(
                context, SSL_CTRL_SET_GROUPS_LIST, 0, UnsafeMutableRawPointer(mutating: list))
        }
        SSL_CTX_ctrl(
            context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(limits.maximumVersion.number), nil)
        SSL_CTX_set_msg_callback(context, countRecord)
        SSL_CTX_ctrl(
            context, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, Unmanaged.passUnretained(buffers).toOpaque())
    }

    private func setUpProtocols() {
        guard !protocols.wire.isEmpty else { return }
        let argument = Unmanaged.passUnretained(protocols).toOpaque()
        if isServer {
            SSL_CTX_set_alpn_select_cb(context, selectProtocol, argument)
            if protocols.isRequired {
                SSL_CTX_set_client_hello_cb(context, requireProtocolExtension, nil)
            }
        } else {
            SSL_CTX_set_alpn_protos(
                context, protocols.wire.baseAddress, UInt32(protocols.wire.count))
        }
    }

    private func setMinimumVersion(_ version: TLSVersion) throws(TLSError) {
        let set = SSL_CTX_ctrl(
            context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(version.number), nil)
        guard set == 1 else { throw .configurationRefused(ErrorQueue.takeText()) }
    }

    private func trust(_ authorities: [UInt8]) throws(TLSError) {
        let certificates = PEM.certificates(authorities)
        guard !certificates.isEmpty else {
            throw .invalidCertificate("trusted certificates: no readable PEM certificate")
        }
        defer { PEM.free(certificates) }
        let store = SSL_CTX_get_cert_store(context)
        for certificate in certificates where X509_STORE_add_cert(store, certificate) != 1 {
            throw .invalidCertificate("trusted certificates: \(ErrorQueue.takeText())")
        }
    }

    /// Whether an application protocol must have been agreed when the handshake ends.
    var requiresProtocol: Bool { protocols.isRequired && !protocols.wire.isEmpty }
}

/// OpenSSL calls this for every message; the headers of records read are counted.
private func countRecord(
    _ isWrite: Int32, _ version: Int32, _ type: Int32, _ bytes: UnsafeRawPointer?, _ count: Int,
    _ ssl: OpaquePointer?, _ argument: UnsafeMutableRawPointer?
) {
    guard isWrite == 0, type == SSL3_RT_HEADER, let argument else { return }
    Unmanaged<TLSBuffers>.fromOpaque(argument).takeUnretainedValue().recordsRead += 1
}

/// The SHA-256 of a certificate's DER.
func sha256(ofCertificate certificate: OpaquePointer) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    guard X509_digest(certificate, EVP_sha256(), &bytes, &count) == 1, count == 32 else {
        return nil
    }
    return bytes
}

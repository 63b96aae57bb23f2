import COpenSSL

/// A protocol version that a connection may speak.
public enum TLSVersion: Sendable, Equatable {
    /// RFC 5246.
    case tls12
    /// RFC 8446.
    case tls13

    var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}

/// Why a certificate was not believed.
public enum CertificateProblem: Sendable, Equatable {
    /// `notAfter` lies in the past.
    case expired
    /// `notBefore` lies in the future: often a wrong clock on this side.
    case notYetValid
    /// No chain to a trusted authority.
    case untrusted
    /// The certificate does not name the host that was asked for.
    case wrongHost
    /// Anything else, in the words of the library.
    case other(String)

    init(verifyResult: Int) {
        switch Int32(truncatingIfNeeded: verifyResult) {
        case X509_V_ERR_CERT_HAS_EXPIRED: self = .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: self = .notYetValid
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED,
            X509_V_ERR_CERT_SIGNATURE_FAILURE:
            self = .untrusted
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: self = .wrongHost
        default:
            self = .other(String(cString: X509_verify_cert_error_string(verifyResult)))
        }
    }
}

/// What a TLS context or a TLS connection can fail with.
///
/// The first group is an error of the configuration, found when a context is made. The second
/// ends one connection: call `takeOutput` (an alert may be waiting), then close the socket.
public enum TLSError: Error, Sendable, Equatable {
    /// The bytes hold no readable PEM certificate; the text says which input and why.
    case invalidCertificate(String)
    /// The bytes hold no readable, unencrypted PEM private key.
    case invalidPrivateKey(String)
    /// The private key belongs to another certificate.
    case keyMismatch
    /// The own certificate ended at this time, in milliseconds since 1970.
    case certificateExpired(notAfter: Int64)
    /// The own certificate starts at this time, in milliseconds since 1970.
    case certificateNotYetValid(notBefore: Int64)
    /// The library refused the certificate or key, for example because the key is too short.
    case configurationRefused(String)

    /// The peer's certificate was refused.
    case peerCertificate(CertificateProblem)
    /// No application protocol in common, or the peer named none where one is required.
    case noCommonProtocol
    /// No protocol version in common.
    case unsupportedVersion
    /// No cipher suite, group or signature algorithm in common.
    case noCommonParameters
    /// The first bytes are not TLS at all: plain HTTP, a port scanner, a PROXY header. The
    /// library sends such a peer no alert, which it could not read.
    case notTLS
    /// A record did not authenticate or is malformed; the text is the library's reason.
    case malformed(String)
    /// The peer sent a fatal alert with this description (RFC 8446 section 6).
    case alertReceived(UInt8)
    /// Too many records without application data (key updates, handshake fragments).
    case tooManySilentRecords
    /// `send` was called before the handshake was complete.
    case handshakeIncomplete
    /// More output waits for `takeOutput` than the context allows; nothing was sent.
    case outputFull
    /// `send` was called after `close`.
    case closed
    /// The library failed for a reason of its own, for example lack of memory.
    case libraryFailure(String)
}

extension TLSError {
    /// A certificate of one's own is good at another time than the host's clock shows: that may be
    /// over with nobody doing anything.
    public var isOfTime: Bool {
        switch self {
        case .certificateExpired, .certificateNotYetValid: true
        default: false
        }
    }
}

extension CertificateProblem: CustomStringConvertible {
    public var description: String {
        switch self {
        case .expired: "it has expired, or this machine's clock is wrong"
        case .notYetValid: "it is not valid yet: is this machine's clock right?"
        case .untrusted: "it does not lead to a trusted authority"
        case .wrongHost: "it names another host"
        case .other(let reason): reason
        }
    }
}

extension TLSError: CustomStringConvertible {
    /// For people.
    public var description: String {
        switch self {
        case .invalidCertificate(let reason): "no certificate in PEM (\(reason))"
        case .invalidPrivateKey(let reason): "no unencrypted private key in PEM (\(reason))"
        case .keyMismatch: "the private key is not the certificate's"
        case .certificateExpired: "the certificate has expired"
        case .certificateNotYetValid: "the certificate is not valid yet"
        case .configurationRefused(let reason): "certificate or key is refused (\(reason))"
        case .peerCertificate(let problem): "the peer's certificate is refused: \(problem)"
        case .noCommonProtocol: "no protocol in common (ALPN)"
        case .unsupportedVersion: "no version of TLS in common"
        case .noCommonParameters: "no cipher, group or signature in common"
        case .notTLS: "the peer does not speak TLS"
        case .malformed(let reason): "a TLS record that cannot be read (\(reason))"
        case .alertReceived(let alert): "the peer refused with TLS alert \(alert)"
        case .tooManySilentRecords: "too many TLS records without data"
        case .handshakeIncomplete: "the TLS handshake is not complete"
        case .outputFull: "more waits to be sent than may"
        case .closed: "the connection is closed"
        case .libraryFailure(let reason): "OpenSSL failed (\(reason))"
        }
    }
}

/// The thread's OpenSSL error queue. It must be empty before each call whose failure is read from
/// it, or an older error of another connection would be blamed (SSL_get_error(3)).
enum ErrorQueue {
    static func clear() {
        ERR_clear_error()
    }

    /// The oldest error, which is the cause; later ones are only its callers. Empties the queue.
    static func take() -> (library: Int32, reason: Int32, text: String) {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return (0, 0, "no reason given") }
        let reason = ERR_GET_REASON(code)
        let text = ERR_reason_error_string(code).map { String(cString: $0) }
        return (ERR_GET_LIB(code), reason, text ?? "reason \(reason)")
    }

    static func takeText() -> String {
        take().text
    }

    /// The failure of the last call on a connection.
    static func takeTLSError(verifyResult: Int) -> TLSError {
        let (library, reason, text) = take()
        guard library == ERR_LIB_SSL else {
            return library == 0 ? .libraryFailure(text) : .malformed(text)
        }
        // A received alert is reported as SSL_AD_REASON_OFFSET + its description.
        if reason > SSL_AD_REASON_OFFSET, reason <= SSL_AD_REASON_OFFSET + 255 {
            return .alertReceived(UInt8(truncatingIfNeeded: reason - SSL_AD_REASON_OFFSET))
        }
        switch reason {
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            return .peerCertificate(CertificateProblem(verifyResult: verifyResult))
        case SSL_R_NO_APPLICATION_PROTOCOL, SSL_R_CALLBACK_FAILED:
            // The one callback that can fail like this is the one that requires a protocol.
            return .noCommonProtocol
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_UNKNOWN_PROTOCOL,
            SSL_R_NO_PROTOCOLS_AVAILABLE:
            return .unsupportedVersion
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SUITABLE_KEY_SHARE, SSL_R_NO_SHARED_GROUPS,
            SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
            return .noCommonParameters
        case SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_WRONG_VERSION_NUMBER:
            return .notTLS
        default:
            return .malformed(text)
        }
    }
}

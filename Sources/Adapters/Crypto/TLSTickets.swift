import COpenSSL
import Glibc

/// A key that seals and opens the tickets by which a client goes on with its session (RFC 8446
/// section 4.6.1, sealed as RFC 5077 section 4 recommends).
public struct TLSTicketKey: Equatable, Sendable {
    let name: [UInt8]
    let cipherKey: [UInt8]
    let authenticationKey: [UInt8]

    /// - Parameters:
    ///   - name: 16 bytes that stand in each ticket.
    ///   - secret: 32 bytes for AES-256, then 32 for HMAC-SHA-256.
    public init(name: [UInt8], secret: [UInt8]) {
        precondition(
            name.count == 16 && secret.count == 64, "a key of \(name.count), \(secret.count) bytes")
        self.name = name
        cipherKey = Array(secret[..<32])
        authenticationKey = Array(secret[32...])
    }
}

/// The keys that OpenSSL's callback reads.
final class TicketKeys {
    /// The first one seals, all open.
    var keys: [TLSTicketKey] = []
    /// Seconds since 1970.
    var clock: () -> Int = { time(nil) }

    /// Seconds after a whole handshake for which tickets that follow from it are taken.
    static let chainLifetime = 604_800
}

/// What a client keeps of a connection, to go on with its session on the next one. Of one thread,
/// as its context is.
public final class TLSSession {
    let session: OpaquePointer

    /// Takes over a reference that OpenSSL counted.
    init(owning session: OpaquePointer) { self.session = session }

    deinit { SSL_SESSION_free(session) }
}

extension TLSContext {
    /// Sends tickets after handshakes and takes those of clients that come back. A server's; from
    /// the next handshake on.
    ///
    /// - Parameters:
    ///   - keys: the first one seals tickets, all open them; none: no tickets are sent or taken.
    ///   - lifetime: for how many seconds a ticket is good, at most 7 days (RFC 8446 section
    ///     4.6.1). 7 days after a whole handshake no ticket that follows from it is taken any more,
    ///     however many lie between: the client looks at the certificate again.
    public func use(ticketKeys keys: [TLSTicketKey], lifetime: Int) {
        precondition((0...604_800).contains(lifetime), "tickets for \(lifetime) s")
        ticketKeys.keys = keys
        guard !keys.isEmpty else {
            SSL_CTX_set_num_tickets(context, 0)
            SSL_CTX_set_options(context, rouse_SSL_OP_NO_TICKET())
            return
        }
        // A session is good for servers of this kind only.
        let purpose: [UInt8] = Array("rouse".utf8)
        SSL_CTX_set_session_id_context(context, purpose, UInt32(purpose.count))
        SSL_CTX_set_timeout(context, lifetime)
        SSL_CTX_set_ex_data(context, 0, Unmanaged.passUnretained(ticketKeys).toOpaque())
        SSL_CTX_set_tlsext_ticket_key_evp_cb(context, sealOrOpenTicket)
        SSL_CTX_set_session_ticket_cb(
            context, markTicket, judgeTicket, Unmanaged.passUnretained(ticketKeys).toOpaque())
        SSL_CTX_set_num_tickets(context, 1)
        SSL_CTX_clear_options(context, rouse_SSL_OP_NO_TICKET())
    }

    /// Keeps the sessions that servers offer, for `TLSEngine.takeSession`. A client's.
    func keepSessions() {
        // SSL_CTX_set_session_cache_mode(): the owner keeps them, not OpenSSL.
        SSL_CTX_ctrl(
            context, SSL_CTRL_SET_SESS_CACHE_MODE,
            Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL), nil)
        SSL_CTX_sess_set_new_cb(context) { ssl, session in
            guard let ssl, let session, let engine = SSL_get_ex_data(ssl, 0),
                // OpenSSL spoils its own one where a connection ends without a good-bye, as those
                // of phones do.
                let copy = SSL_SESSION_dup(session)
            else { return 0 }
            Unmanaged<TLSEngine>.fromOpaque(engine).takeUnretainedValue()
                .offered(TLSSession(owning: copy))
            return 0
        }
    }
}

/// OpenSSL's callback for each ticket it makes or is shown.
///
/// - Returns: 1: the contexts are ready; 2: so they are, and the client gets a new ticket; 0:
///   nobody has the key, and the handshake is a whole one; -1: the handshake fails.
private func sealOrOpenTicket(
    _ ssl: OpaquePointer?, _ name: UnsafeMutablePointer<UInt8>?, _ iv: UnsafeMutablePointer<UInt8>?,
    _ cipher: OpaquePointer?, _ authentication: OpaquePointer?, _ isSealing: Int32
) -> Int32 {
    guard let ssl, let name, let iv, let held = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0) else {
        return -1
    }
    let keys = Unmanaged<TicketKeys>.fromOpaque(held).takeUnretainedValue().keys
    if isSealing == 1 {
        guard let key = keys.first, RAND_bytes(iv, 16) == 1 else { return -1 }
        name.update(from: key.name, count: 16)
        let isReady =
            EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipherKey, iv) == 1
            && rouse_use_hmac_sha256(authentication, key.authenticationKey, 32) == 1
        return isReady ? 1 : -1
    }
    let told = Array(UnsafeBufferPointer(start: name, count: 16))
    guard let key = keys.first(where: { $0.name == told }) else { return 0 }
    let isReady =
        EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.cipherKey, iv) == 1
        && rouse_use_hmac_sha256(authentication, key.authenticationKey, 32) == 1
    // Each ticket is used once: another one follows.
    return isReady ? 2 : -1
}

/// When the whole handshake was that a session goes back to, in seconds since 1970; `nil`: nobody
/// wrote it down.
private func beginning(of session: OpaquePointer?) -> Int? {
    var data: UnsafeMutableRawPointer?
    var count = 0
    guard let session, SSL_SESSION_get0_ticket_appdata(session, &data, &count) == 1, count == 8,
        let data
    else { return nil }
    return Int(Int64(littleEndian: data.loadUnaligned(as: Int64.self)))
}

/// OpenSSL calls this for each ticket it makes: one that follows from another keeps its beginning.
private func markTicket(_ ssl: OpaquePointer?, _ held: UnsafeMutableRawPointer?) -> Int32 {
    guard let ssl, let held, let session = SSL_get_session(ssl) else { return 0 }
    if beginning(of: session) != nil { return 1 }
    let keys = Unmanaged<TicketKeys>.fromOpaque(held).takeUnretainedValue()
    var now = Int64(keys.clock()).littleEndian
    return SSL_SESSION_set1_ticket_appdata(session, &now, 8)
}

/// OpenSSL calls this for each ticket it is shown, with what came of opening it.
private func judgeTicket(
    _ ssl: OpaquePointer?, _ session: OpaquePointer?, _ name: UnsafePointer<UInt8>?,
    _ nameBytes: Int, _ status: SSL_TICKET_STATUS, _ held: UnsafeMutableRawPointer?
) -> SSL_TICKET_RETURN {
    guard status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW, let held else {
        return SSL_TICKET_RETURN_IGNORE_RENEW
    }
    let keys = Unmanaged<TicketKeys>.fromOpaque(held).takeUnretainedValue()
    guard let began = beginning(of: session),
        (0..<TicketKeys.chainLifetime).contains(keys.clock() - began)
    else { return SSL_TICKET_RETURN_IGNORE_RENEW }
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW
}

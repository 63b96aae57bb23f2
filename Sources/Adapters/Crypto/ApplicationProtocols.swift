import COpenSSL

/// Application protocols in the form of RFC 7301 section 3.1: each name after its length.
final class ProtocolList {
    let wire: UnsafeMutableBufferPointer<UInt8>
    let isRequired: Bool

    init(_ names: [String], isRequired: Bool) {
        var bytes: [UInt8] = []
        for name in names {
            let utf8 = Array(name.utf8)
            precondition((1...255).contains(utf8.count), "a protocol name of 1 to 255 bytes")
            bytes.append(UInt8(utf8.count))
            bytes += utf8
        }
        precondition(bytes.count <= 65_535, "too many application protocols")
        wire = .allocate(capacity: bytes.count)
        _ = wire.initialize(from: bytes)
        self.isRequired = isRequired
    }

    deinit {
        wire.deallocate()
    }
}

/// OpenSSL's callback for a ClientHello with protocols.
func selectProtocol(
    _ ssl: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?,
    _ offeredCount: UInt32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let argument, let chosen else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    let list = Unmanaged<ProtocolList>.fromOpaque(argument).takeUnretainedValue()
    var found: UnsafeMutablePointer<UInt8>?
    let result = SSL_select_next_proto(
        &found, chosenCount, list.wire.baseAddress, UInt32(list.wire.count), offered, offeredCount)
    guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    chosen.pointee = UnsafePointer(found)
    return SSL_TLSEXT_ERR_OK
}

/// The selection callback is not called for a client that offers no protocol at all.
func requireProtocolExtension(
    _ ssl: OpaquePointer?, _ alert: UnsafeMutablePointer<Int32>?,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    var bytes: UnsafePointer<UInt8>?
    var count = 0
    let type = UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)
    if SSL_client_hello_get0_ext(ssl, type, &bytes, &count) == 1 {
        return SSL_CLIENT_HELLO_SUCCESS
    }
    alert?.pointee = SSL_AD_NO_APPLICATION_PROTOCOL
    return SSL_CLIENT_HELLO_ERROR
}

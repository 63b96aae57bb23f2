// Of Apple's Security, what Sources/ApplePlatform names, with the signatures that Apple documents.
// swift-format-ignore-file

public final class sec_protocol_options_t: Sendable {}

public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
}

public func sec_protocol_options_add_tls_application_protocol(
    _ options: sec_protocol_options_t, _ application_protocol: UnsafePointer<CChar>
) { fatalError() }

public func sec_protocol_options_set_min_tls_protocol_version(
    _ options: sec_protocol_options_t, _ version: tls_protocol_version_t
) { fatalError() }

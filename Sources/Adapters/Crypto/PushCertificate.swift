import COpenSSL

/// What Apple writes into a client certificate for its push service.
public struct PushCertificate: Sendable, Equatable {
    /// Topics it may push to: bundle ids, also with the suffixes of some push types. From the
    /// extension 1.2.840.113635.100.6.3.6, or the subject's user id where there is none.
    public let topics: [String]
    /// Whether it says that it is for this environment. Older ones say neither.
    public let isForDevelopment: Bool
    public let isForProduction: Bool
    /// When it ends, in milliseconds since 1970.
    public let notAfter: Int64

    static let topicsOID = "1.2.840.113635.100.6.3.6"
    static let developmentOID = "1.2.840.113635.100.6.3.1"
    static let productionOID = "1.2.840.113635.100.6.3.2"

    /// Reads a certificate, and checks that the key is its own and that it is valid now.
    ///
    /// - Parameters:
    ///   - chain: the certificate first, then its intermediates, as PEM.
    ///   - privateKey: its key as unencrypted PEM.
    /// - Throws: a configuration error of `TLSError`.
    public init(chain: [UInt8], privateKey: [UInt8]) throws(TLSError) {
        let identity = try Identity(
            certificateChain: chain, privateKey: privateKey, checkTime: nil)
        self.init(reading: identity.chain[0])
    }

    /// Reads a certificate without its key, valid or not.
    ///
    /// - Parameter pem: the certificate first.
    /// - Throws: `.invalidCertificate` if there is none.
    public init(pem: [UInt8]) throws(TLSError) {
        let chain = PEM.certificates(pem)
        defer { PEM.free(chain) }
        guard let leaf = chain.first else {
            throw .invalidCertificate("no readable PEM certificate")
        }
        self.init(reading: leaf)
    }

    private init(reading leaf: OpaquePointer) {
        notAfter = milliseconds(of: X509_get0_notAfter(leaf)) ?? 0
        isForDevelopment = Self.value(of: Self.developmentOID, in: leaf) != nil
        isForProduction = Self.value(of: Self.productionOID, in: leaf) != nil
        let listed = Self.value(of: Self.topicsOID, in: leaf).map { Self.topics(der: $0) } ?? []
        topics = listed.isEmpty ? [Self.userID(leaf)].compactMap { $0 } : listed
    }

    private static func value(of oid: String, in certificate: OpaquePointer) -> [UInt8]? {
        guard let object = OBJ_txt2obj(oid, 1) else { return nil }
        defer { ASN1_OBJECT_free(object) }
        let index = X509_get_ext_by_OBJ(certificate, object, -1)
        guard index >= 0, let found = X509_get_ext(certificate, index),
            let data = X509_EXTENSION_get_data(found), let bytes = ASN1_STRING_get0_data(data)
        else { return nil }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(data))))
    }

    private static func userID(_ certificate: OpaquePointer) -> String? {
        var text = [CChar](repeating: 0, count: 256)
        let count = X509_NAME_get_text_by_NID(
            X509_get_subject_name(certificate), NID_userId, &text, Int32(text.count))
        guard count > 0 else { return nil }
        return String(
            decoding: text.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// A SEQUENCE of pairs: a topic, and a SEQUENCE of what it is for. Empty if it is malformed.
    static func topics(der: [UInt8]) -> [String] {
        guard let (tag, content, _) = element(der[...]), tag == 0x30 else { return [] }
        var topics: [String] = []
        var rest = content
        while !rest.isEmpty {
            guard let (tag, content, next) = element(rest) else { return [] }
            if tag == 0x0C, let topic = String(validating: content, as: UTF8.self) {
                topics.append(topic)
            }
            rest = next
        }
        return topics
    }

    /// The first element of DER, and what follows it.
    private static func element(
        _ bytes: ArraySlice<UInt8>
    ) -> (tag: UInt8, content: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)? {
        guard bytes.count >= 2 else { return nil }
        let tag = bytes[bytes.startIndex]
        var length = Int(bytes[bytes.startIndex + 1])
        var rest = bytes.dropFirst(2)
        if length >= 0x80 {
            let count = length & 0x7F
            guard (1...2).contains(count), rest.count >= count else { return nil }
            length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(count)
        }
        guard rest.count >= length else { return nil }
        return (tag, rest.prefix(length), rest.dropFirst(length))
    }

    /// The extension's value for these topics: each for what its suffix says.
    static func der(topics: [String]) -> [UInt8] {
        wrap(
            0x30,
            topics.flatMap { topic in
                let use =
                    topic.hasSuffix(".voip")
                    ? "voip" : topic.hasSuffix(".complication") ? "complication" : "app"
                return wrap(0x0C, Array(topic.utf8))
                    + wrap(0x30, wrap(0x0C, Array(use.utf8)))
            })
    }

    private static func wrap(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        precondition(count <= 0xFFFF, "too long for an extension: \(count) bytes")
        if count < 0x80 { return [tag, UInt8(count)] + content }
        if count <= 0xFF { return [tag, 0x81, UInt8(count)] + content }
        return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + content
    }
}

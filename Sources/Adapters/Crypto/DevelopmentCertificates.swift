import COpenSSL
import Glibc

/// Why a development certificate was not made.
public enum CertificateError: Error, Sendable, Equatable {
    /// Neither a DNS name nor an IP address.
    case invalidName(String)
    /// The library refused; the text is its reason.
    case refused(String)
}

extension CertificateError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidName(let name): "\(name) is neither a DNS name nor an address"
        case .refused(let reason): "no certificate can be made (\(reason))"
        }
    }
}

/// A certificate and its private key.
public struct IssuedCertificate: Sendable {
    /// The certificate as PEM.
    public let certificatePEM: String
    /// Its private key as unencrypted PEM.
    public let privateKeyPEM: String
}

/// An authority of its own (P-256) for tests, the demo and the quickstart. Never for production:
/// its key lies beside the leaf's.
public struct DevelopmentCertificates: Sendable {
    /// What clients must trust, as PEM.
    public let authorityPEM: String
    /// The server's certificate and key.
    public let server: IssuedCertificate

    private let authority: KeyHandle
    private let validityDays: Int
    /// Moves the validity of new certificates, in seconds; tests make expired ones with it.
    var validityShift: Int

    /// Makes an authority and a server's leaf.
    ///
    /// - Parameters:
    ///   - names: what the leaf is valid for: DNS names and IP addresses as text.
    ///   - validityDays: from an hour ago on, for both certificates.
    public init(names: [String], validityDays: Int = 30) throws(CertificateError) {
        try self.init(names: names, validityDays: validityDays, validityShift: 0)
    }

    init(names: [String], validityDays: Int, validityShift: Int) throws(CertificateError) {
        precondition((1...3650).contains(validityDays), "a validity of 1 to 3650 days")
        let key = PrivateKey.generate(.p256)
        let builder = CertificateBuilder(
            subject: "Rouse development authority", key: key.handle, issuer: nil,
            validityDays: validityDays, validityShift: 0,
            extensions: [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                (NID_key_usage, "critical,keyCertSign,cRLSign"),
                (NID_subject_key_identifier, "hash"),
            ])
        authorityPEM = try builder.build(signedBy: key.handle)
        authority = key.handle
        self.validityDays = validityDays
        self.validityShift = validityShift
        server = try Self.issue(
            subject: names.first ?? "", names: names, usage: "serverAuth",
            authority: authority, authorityPEM: authorityPEM, validityDays: validityDays,
            validityShift: validityShift)
    }

    /// Another server's leaf under the same authority.
    public func issueServer(names: [String]) throws(CertificateError) -> IssuedCertificate {
        try Self.issue(
            subject: names.first ?? "", names: names, usage: "serverAuth",
            authority: authority, authorityPEM: authorityPEM, validityDays: validityDays,
            validityShift: validityShift)
    }

    /// A client's certificate under the same authority; `name` becomes its common name.
    public func issueClient(name: String) throws(CertificateError) -> IssuedCertificate {
        try Self.issue(
            subject: name, names: [], usage: "clientAuth", authority: authority,
            authorityPEM: authorityPEM, validityDays: validityDays, validityShift: validityShift)
    }

    /// A client's certificate as Apple makes them for its push service.
    ///
    /// - Parameters:
    ///   - topics: the first is also the subject's user id.
    ///   - isForDevelopment: whether it says so; also for production.
    public func issuePushClient(
        topics: [String], isForDevelopment: Bool = true, isForProduction: Bool = true
    ) throws(CertificateError) -> IssuedCertificate {
        var extensions: [(String, [UInt8])] = [
            (PushCertificate.topicsOID, PushCertificate.der(topics: topics))
        ]
        // ASN.1 NULL: the extension itself is what it says.
        if isForDevelopment { extensions.append((PushCertificate.developmentOID, [5, 0])) }
        if isForProduction { extensions.append((PushCertificate.productionOID, [5, 0])) }
        return try Self.issue(
            subject: "Apple Push Services: \(topics.first ?? "")", names: [],
            usage: "clientAuth", authority: authority, authorityPEM: authorityPEM,
            validityDays: validityDays, validityShift: validityShift, userID: topics.first,
            ownExtensions: extensions)
    }

    private static func issue(
        subject: String, names: [String], usage: String, authority: KeyHandle,
        authorityPEM: String, validityDays: Int, validityShift: Int, userID: String? = nil,
        ownExtensions: [(String, [UInt8])] = []
    ) throws(CertificateError) -> IssuedCertificate {
        let key = PrivateKey.generate(.p256)
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, "critical,CA:FALSE"),
            (NID_key_usage, "critical,digitalSignature"),
            (NID_ext_key_usage, usage),
            (NID_subject_key_identifier, "hash"),
            (NID_authority_key_identifier, "keyid"),
        ]
        if usage == "serverAuth" || !names.isEmpty {
            extensions.append((NID_subject_alt_name, try alternativeNames(names)))
        }
        let certificates = PEM.certificates(Array(authorityPEM.utf8))
        guard let issuer = certificates.first else {
            throw .refused("the authority's certificate cannot be read")
        }
        defer { PEM.free(certificates) }
        let builder = CertificateBuilder(
            subject: subject, key: key.handle, issuer: issuer, validityDays: validityDays,
            validityShift: validityShift, extensions: extensions, userID: userID,
            ownExtensions: ownExtensions)
        return IssuedCertificate(
            certificatePEM: try builder.build(signedBy: authority), privateKeyPEM: key.pem)
    }

    /// The library reads names from a comma-separated text, so nothing else may be in them.
    private static func alternativeNames(_ names: [String]) throws(CertificateError) -> String {
        guard !names.isEmpty else { throw .invalidName("") }
        var entries: [String] = []
        for name in names {
            ErrorQueue.clear()
            if let address = a2i_IPADDRESS(name) {
                ASN1_OCTET_STRING_free(address)
                entries.append("IP:\(name)")
                continue
            }
            ErrorQueue.clear()
            let isName = name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                    UInt8(ascii: "*"):
                    true
                default: false
                }
            }
            guard isName, !name.isEmpty, name.utf8.count <= 253 else { throw .invalidName(name) }
            entries.append("DNS:\(name)")
        }
        return entries.joined(separator: ",")
    }
}

/// One X.509 version 3 certificate in the making.
private struct CertificateBuilder {
    let subject: String
    let key: KeyHandle
    /// nil for a certificate that is its own issuer.
    let issuer: OpaquePointer?
    let validityDays: Int
    let validityShift: Int
    let extensions: [(Int32, String)]
    /// Of the subject.
    var userID: String?
    /// By object identifier, as DER.
    var ownExtensions: [(String, [UInt8])] = []

    func build(signedBy signer: KeyHandle) throws(CertificateError) -> String {
        ErrorQueue.clear()
        guard let certificate = X509_new() else { preconditionFailure("out of memory: X509_new") }
        defer { X509_free(certificate) }
        let start = -3600 + validityShift
        guard X509_set_version(certificate, 2) == 1, setSerial(certificate),
            X509_gmtime_adj(X509_getm_notBefore(certificate), start) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), start + validityDays * 86_400) != nil,
            setNames(certificate), X509_set_pubkey(certificate, key.pointer) == 1,
            setExtensions(certificate),
            X509_sign(certificate, signer.pointer, EVP_sha256()) > 0
        else { throw .refused(ErrorQueue.takeText()) }
        guard let text = PEM.writing({ PEM_write_bio_X509($0, certificate) == 1 }) else {
            throw .refused(ErrorQueue.takeText())
        }
        return text
    }

    /// RFC 5280 section 4.1.2.2: positive and unique; 16 random bytes with the top bit clear.
    private func setSerial(_ certificate: OpaquePointer) -> Bool {
        var bytes = Random.bytes(16)
        bytes[0] = bytes[0] & 0x7F | 0x40
        guard let number = BN_bin2bn(bytes, Int32(bytes.count), nil) else { return false }
        defer { BN_free(number) }
        return BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil
    }

    private func setNames(_ certificate: OpaquePointer) -> Bool {
        // A common name holds at most 64 characters (RFC 5280 appendix A.1).
        let bytes = Array(subject.utf8.prefix(64))
        let name = X509_get_subject_name(certificate)
        var named =
            X509_NAME_add_entry_by_txt(
                name, "CN", MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0) == 1
        if let userID {
            let bytes = Array(userID.utf8)
            named =
                named
                && X509_NAME_add_entry_by_NID(
                    name, NID_userId, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0) == 1
        }
        let issuerName = issuer.map { X509_get_subject_name($0) } ?? name
        return named && X509_set_issuer_name(certificate, issuerName) == 1
    }

    private func setExtensions(_ certificate: OpaquePointer) -> Bool {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer ?? certificate, certificate, nil, nil, 0)
        for (identifier, value) in extensions {
            guard let made = X509V3_EXT_conf_nid(nil, &context, identifier, value) else {
                return false
            }
            defer { X509_EXTENSION_free(made) }
            guard X509_add_ext(certificate, made, -1) == 1 else { return false }
        }
        for (identifier, value) in ownExtensions {
            guard add(identifier, value, to: certificate) else { return false }
        }
        return true
    }

    private func add(
        _ identifier: String, _ value: [UInt8], to certificate: OpaquePointer
    ) -> Bool {
        guard let object = OBJ_txt2obj(identifier, 1), let data = ASN1_OCTET_STRING_new() else {
            return false
        }
        defer {
            ASN1_OBJECT_free(object)
            ASN1_OCTET_STRING_free(data)
        }
        guard ASN1_OCTET_STRING_set(data, value, Int32(value.count)) == 1,
            let made = X509_EXTENSION_create_by_OBJ(nil, object, 0, data)
        else { return false }
        defer { X509_EXTENSION_free(made) }
        return X509_add_ext(certificate, made, -1) == 1
    }
}

import COpenSSL
import Glibc

/// Reading and writing PEM through memory BIOs. Callers own what the functions return.
enum PEM {
    /// Runs the body with a read-only BIO over the bytes; nil for inputs too long to be PEM.
    static func reading<T>(_ bytes: [UInt8], _ body: (OpaquePointer) -> T?) -> T? {
        guard !bytes.isEmpty, bytes.count <= 1 << 20 else { return nil }
        ErrorQueue.clear()
        return bytes.withUnsafeBytes { raw in
            guard let bio = BIO_new_mem_buf(raw.baseAddress, Int32(raw.count)) else {
                preconditionFailure("out of memory: BIO_new_mem_buf")
            }
            defer { BIO_free(bio) }
            return body(bio)
        }
    }

    /// Collects what the body writes; nil if it reports failure.
    static func writing(_ body: (OpaquePointer) -> Bool) -> String? {
        guard let bio = BIO_new(BIO_s_mem()) else {
            preconditionFailure("out of memory: BIO_new")
        }
        defer { BIO_free(bio) }
        guard body(bio) else { return nil }
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = chunk.withUnsafeMutableBytes { BIO_read(bio, $0.baseAddress, 4096) }
            guard count > 0 else { break }
            text += chunk[..<Int(count)]
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Every certificate in the bytes, in order; empty if there is none or one is damaged.
    static func certificates(_ bytes: [UInt8]) -> [OpaquePointer] {
        reading(bytes) { bio in
            var found: [OpaquePointer] = []
            while let certificate = PEM_read_bio_X509(bio, nil, refusePassword, nil) {
                found.append(certificate)
            }
            // The regular end is "no start line"; anything else is damage inside a certificate.
            let (library, reason, _) = ErrorQueue.take()
            if library == ERR_LIB_PEM, reason == PEM_R_NO_START_LINE { return found }
            PEM.free(found)
            return []
        } ?? []
    }

    static func free(_ certificates: [OpaquePointer]) {
        for certificate in certificates { X509_free(certificate) }
    }

    static func privateKey(_ bytes: [UInt8]) -> OpaquePointer? {
        reading(bytes) { PEM_read_bio_PrivateKey($0, nil, refusePassword, nil) }
    }

    static func publicKey(_ bytes: [UInt8]) -> OpaquePointer? {
        reading(bytes) { PEM_read_bio_PUBKEY($0, nil, refusePassword, nil) }
    }
}

/// The library's own callback would ask on the terminal and block the process.
private func refusePassword(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ writing: Int32,
    _ data: UnsafeMutableRawPointer?
) -> Int32 {
    -1
}

/// Milliseconds since 1970 of a certificate's time; nil if it is malformed.
func milliseconds(of time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var parts = tm()
    guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
    return Int64(timegm(&parts)) * 1000
}

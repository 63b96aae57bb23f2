import COpenSSL

/// A certificate chain and its private key, checked against each other and against the time.
final class Identity {
    let chain: [OpaquePointer]
    let key: OpaquePointer
    let notAfter: Int64

    init(certificateChain: [UInt8], privateKey: [UInt8], checkTime: Int64?) throws(TLSError) {
        let chain = PEM.certificates(certificateChain)
        guard let leaf = chain.first else {
            throw .invalidCertificate("certificate chain: no readable PEM certificate")
        }
        guard let key = PEM.privateKey(privateKey) else {
            let reason = ErrorQueue.takeText()
            PEM.free(chain)
            throw .invalidPrivateKey(reason)
        }
        self.chain = chain
        self.key = key
        self.notAfter = milliseconds(of: X509_get0_notAfter(leaf)) ?? 0
        guard X509_check_private_key(leaf, key) == 1 else {
            ErrorQueue.clear()
            throw .keyMismatch
        }
        var moment = Int(truncatingIfNeeded: (checkTime ?? 0) / 1000)
        func relation(_ time: UnsafePointer<ASN1_TIME>?) -> Int32 {
            checkTime == nil ? X509_cmp_time(time, nil) : X509_cmp_time(time, &moment)
        }
        guard relation(X509_get0_notAfter(leaf)) > 0 else {
            throw .certificateExpired(notAfter: notAfter)
        }
        guard relation(X509_get0_notBefore(leaf)) < 0 else {
            let start = milliseconds(of: X509_get0_notBefore(leaf)) ?? 0
            throw .certificateNotYetValid(notBefore: start)
        }
    }

    deinit {
        PEM.free(chain)
        EVP_PKEY_free(key)
    }
}

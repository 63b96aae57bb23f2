import Crypto
import Feed
import Model

/// The TLS contexts of the credentials: those that trust the same authorities and show the same
/// certificate share one.
struct TLSContexts {
    private var known: [Parts: TLSContext] = [:]

    /// What contexts are told apart by.
    private struct Parts: Hashable {
        /// `nil`: the system's.
        let authorities: ExactText?
        let certificate: ExactText?
        let key: ExactText?

        init(_ credential: PushCredentialRecord) {
            authorities = credential.trustedCertificatesPEM.map { ExactText($0) }
            certificate = credential.certificatePEM.map { ExactText($0) }
            key = credential.certificatePEM.map { _ in ExactText(credential.privateKeyPEM) }
        }
    }

    /// Forgets what no credential uses any more.
    mutating func keep(_ credentials: [PushCredentialRecord]) {
        let parts = Set(credentials.map { Parts($0) })
        known = known.filter { parts.contains($0.key) }
    }

    /// An engine that trusts what the credential says, with its certificate if it has one.
    mutating func makeEngine(
        _ credential: PushCredentialRecord
    ) throws(TLSError) -> TLSEngine {
        let parts = Parts(credential)
        let context: TLSContext
        if let found = known[parts] {
            context = found
        } else {
            context = try TLSContext.client(
                trustedCertificates: parts.authorities.map { Array($0.text.utf8) },
                protocols: ["h2"], certificateChain: parts.certificate.map { Array($0.text.utf8) },
                privateKey: parts.key.map { Array($0.text.utf8) })
            known[parts] = context
        }
        return try context.makeEngine(serverName: credential.host)
    }
}

import Crypto
import EventLoop
public import Feed
import Model
import PushPool
import Telemetry
import Wake

/// Finds out whether a push credential would work: reads it, connects, and sends a push for each
/// of its topics to a token that cannot exist. APNs looks at the token last, so that being
/// refused for the token means that all else is right.
public enum CredentialDoctor {
    /// Waits for what APNs says, half a minute at most. A few refusals do no harm; it should not
    /// run in a loop.
    ///
    /// - Parameter kept: provider tokens that the store keeps: that of the key is sent, so that a
    ///   server beside it is not punished for a second one.
    /// - Returns: at least one finding; the credential is good if all of them are.
    /// - Throws: a `StreamError` when the process has no thread or descriptor left.
    public static func examine(
        _ credential: PushCredentialRecord, kept: [ProviderTokenRecord] = []
    ) throws -> [CredentialFinding] {
        try examine(credential, kept: kept, wall: SystemClock.wallMilliseconds())
    }

    /// Asks the store for the provider token of a credential's key, with one signed now in case it
    /// keeps none; `nil`: the credential is a certificate, or its key cannot sign.
    public static func tokenRequest(for credential: PushCredentialRecord) -> KeepProviderToken? {
        guard credential.certificatePEM == nil else { return nil }
        let key = ProviderKey(
            team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
        guard let token = try? ProviderSigner(key).sign(wall: SystemClock.wallMilliseconds())
        else { return nil }
        return KeepProviderToken(
            team: key.team, keyID: key.keyID, fingerprint: key.fingerprint, token: token)
    }

    static func examine(
        _ credential: PushCredentialRecord, kept: [ProviderTokenRecord] = [], wall: UInt64,
        configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws -> [CredentialFinding] {
        let read = CredentialReading(credential: credential, wall: wall).findings
        // With a key that does not sign there is nothing to connect with.
        guard read.allSatisfy({ $0.isGood || $0.check == "endpoint" }) else { return read }
        let result = Result()
        let thread = try LoopThread.start(name: "doctor") { loop in
            result.visit = DoctorVisit(
                credential, kept: kept, wall: wall, loop: loop, configuration: configuration
            ) { findings in
                result.findings = findings
                result.ended.arrive()
            }
        }
        _ = result.ended.wait(seconds: 30)
        thread.stop()
        thread.join()
        let told = result.findings
        return read
            + (told.isEmpty
                ? [CredentialFinding("connection", false, "no answer in half a minute")] : told)
    }

    private final class Result: @unchecked Sendable {
        // @unchecked: `visit` is the loop's, `findings` is written before the latch opens.
        let ended = Latch()
        var visit: DoctorVisit?
        var findings: [CredentialFinding] = []
    }
}

import Feed
import Model
import PushGateway

/// What is right and wrong about one push credential, for people and scripts.
public struct CredentialCheck: Codable, Equatable, Sendable {
    /// One thing that was looked at.
    public struct Finding: Codable, Equatable, Sendable {
        public var check: String
        public var isGood: Bool
        public var text: String
    }

    public var app: String
    public var environment: String
    public var name: String
    public var isGood: Bool
    public var findings: [Finding]

    /// Examines the credentials in a store, whether or not a server has it open. Each is tried
    /// with pushes to a token that cannot exist.
    ///
    /// - Parameters:
    ///   - app: `nil`: those of every app.
    ///   - environment: `production` or `development`; `nil`: both.
    ///   - name: `nil`: all.
    ///   - upgrades: What is done about a file of an older schema, which stays as it is.
    /// - Throws: a `StoreError` of the file; a `StreamError` without threads or descriptors.
    public static func run(
        place: StorePlace, app: String?, environment: String?, name: String?,
        upgrades: StoreUpgrades = StoreUpgrades(refuses: true)
    ) throws -> [CredentialCheck] {
        var records: [PushCredentialRecord] = []
        try place.read(upgrades: upgrades) {
            snapshot throws(StoreError) in
            records = try snapshot.records(PushCredentialRecord.self, Scan(limit: 10_000))
        }
        let wanted = records.filter {
            (app.map(AppID.init) ?? $0.app) == $0.app
                && (environment ?? "\($0.environment)") == "\($0.environment)"
                && (name ?? $0.name).isExactly($0.name)
        }
        keepTokens(of: wanted, in: place)
        var kept: [ProviderTokenRecord] = []
        try place.read {
            snapshot throws(StoreError) in
            kept = try snapshot.records(ProviderTokenRecord.self, Scan(limit: 10_000))
        }
        return try wanted.map { record in
            let findings = try CredentialDoctor.examine(record, kept: kept)
            return CredentialCheck(
                app: record.app.name, environment: "\(record.environment)", name: record.name,
                isGood: findings.allSatisfy(\.isGood),
                findings: findings.map {
                    Finding(check: $0.check, isGood: $0.isGood, text: $0.text)
                })
        }
    }

    /// APNs punishes a second provider token of a key within twenty minutes: the one sent here is
    /// the one that a server sends that is started soon. A server that runs keeps one itself, and
    /// the store then cannot be written; nor can one that is not ours to write.
    private static func keepTokens(of credentials: [PushCredentialRecord], in place: StorePlace) {
        let requests = credentials.compactMap { CredentialDoctor.tokenRequest(for: $0) }
        guard !requests.isEmpty,
            let store = try? place.open(upgrades: StoreUpgrades(refuses: true))
        else { return }
        _ = try? store.commit(requests.map { .keepProviderToken($0) })
        store.close()
    }
}

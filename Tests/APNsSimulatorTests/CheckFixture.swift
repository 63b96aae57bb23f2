import APNsSimulator
import Crypto
import Model

/// One app, one key, one device token in each environment, and a request that is accepted.
struct CheckFixture {
    static let now = Timestamp(milliseconds: 1_700_000_000_000)
    static let topic = "org.example.chat"
    static let team = "TEAM000001"
    static let keyID = "KEY0000001"
    static let key = PrivateKey.generate(.p256)
    static let otherKey = PrivateKey.generate(.p256)
    static let freshID = PushID(high: 1, low: 2)
    static let token = Hex.encode([UInt8](repeating: 0xAB, count: 32))
    static let developmentToken = Hex.encode([UInt8](repeating: 0xCD, count: 32))
    static let otherTopicToken = Hex.encode([UInt8](repeating: 0xEF, count: 32))

    var state = SimulatorState()
    var connection = ConnectionState(environment: .production)
    var now = Self.now
    var push = Self.goodPush()

    init() throws {
        try state.add(SimulatorState.App(topic: Self.topic, team: Self.team))
        try state.add(SimulatorState.App(topic: "org.example.other", team: Self.team))
        try state.add(SimulatorState.App(topic: "org.example.foreign", team: "TEAM000002"))
        try state.add(
            SimulatorState.SigningKey(team: Self.team, key: Self.key.publicKey), id: Self.keyID)
        try state.add(
            SimulatorState.SigningKey(team: "TEAM000002", key: Self.otherKey.publicKey),
            id: "KEY0000002")
        try state.add(
            SimulatorState.SigningKey(
                team: Self.team, key: Self.otherKey.publicKey, environment: .development),
            id: "KEY0000003")
        // A related pair beside them, and a key for one topic only.
        for id in ["KEY0000004", "KEY0000005"] {
            try state.add(
                SimulatorState.SigningKey(
                    team: Self.team, key: Self.otherKey.publicKey, family: "pair"), id: id)
        }
        try state.add(
            SimulatorState.SigningKey(
                team: Self.team, key: Self.otherKey.publicKey, topics: ["org.example.other"]),
            id: "KEY0000006")
        _ = try state.issue(
            [UInt8](repeating: 0xAB, count: 32),
            SimulatorState.IssuedToken(environment: .production, topic: Self.topic))
        _ = try state.issue(
            [UInt8](repeating: 0xCD, count: 32),
            SimulatorState.IssuedToken(environment: .development, topic: Self.topic))
        _ = try state.issue(
            [UInt8](repeating: 0xEF, count: 32),
            SimulatorState.IssuedToken(environment: .production, topic: "org.example.other"))
    }

    static func goodPush() -> ReceivedPush {
        ReceivedPush(
            method: "POST", path: "/3/device/\(token)",
            headers: [
                ReceivedPush.Header("authorization", "bearer " + providerToken()),
                ReceivedPush.Header("apns-topic", topic),
                ReceivedPush.Header("apns-push-type", "alert"),
                ReceivedPush.Header("apns-priority", "10"),
                ReceivedPush.Header("apns-expiration", "0"),
                ReceivedPush.Header("apns-id", "00000000-0000-0000-0000-0000000000aa"),
            ],
            body: Array(#"{"aps":{"alert":{"title":"Anna","body":"Hi"}}}"#.utf8))
    }

    static func providerToken(
        kid: String = keyID, iss: String = team, iat: String? = nil, with key: PrivateKey = key,
        at now: Timestamp = now
    ) -> String {
        let issuedAt = iat ?? String(now.milliseconds / 1_000)
        let header = Array(#"{"alg":"ES256","kid":"\#(kid)"}"#.utf8)
        let payload = Array(#"{"iss":"\#(iss)","iat":\#(issuedAt)}"#.utf8)
        return (try? CompactToken.sign(headerJSON: header, payloadJSON: payload, with: key)) ?? ""
    }

    mutating func set(_ name: String, _ value: String?) {
        push.headers.removeAll { $0.name == name }
        if let value { push.headers.append(ReceivedPush.Header(name, value)) }
    }

    /// The connection comes with a client certificate for these topics.
    mutating func present(_ topics: [String]) {
        _ = connection.opened(
            certificate: SimulatorState.Certificate(topics: topics), limits: state.limits,
            now: now)
    }

    mutating func authorize(_ token: String) { set("authorization", "bearer " + token) }

    mutating func answer() -> Answer {
        state.check(push, connection: &connection, freshID: Self.freshID, now: now)
    }
}

/// A rule broken by an input: what a fuzzer looks for beside a trap.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func hold(_ condition: Bool, _ what: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(what()) }
}

/// Everything that reads bytes of strangers, as a function of bytes. `Deploy/fuzz` drives them
/// with libFuzzer; the tests replay the kept corpus through the same functions.
enum FuzzTarget: String, CaseIterable {
    /// The stream of a connection, cut anywhere.
    case frames
    /// The body of each frame type.
    case bodies
    /// A server's session over the real rules: frames, answers, faults and time jumps.
    case session
    /// The client half over its local store, against a hostile server.
    case client
    /// Requests of a backend or an operator, without sockets.
    case api
    /// The configuration file.
    case configuration
    /// Identity tokens and their claims.
    case token
    /// APNs' answers.
    case apns

    /// The longest input that is worth trying, in bytes.
    var inputBytesMax: Int {
        switch self {
        case .frames, .bodies, .token, .apns: 2_048
        case .session, .client, .api, .configuration: 4_096
        }
    }

    /// Runs one input. Throws if a rule is broken; a trap is a finding too.
    func run(_ bytes: [UInt8]) throws(Violation) {
        switch self {
        case .frames: try fuzzFrames(bytes)
        case .bodies: try fuzzBodies(bytes)
        case .session:
            var run = try SessionRun(bytes)
            try run.run()
        case .client:
            var run = try ClientRun(bytes)
            try run.run()
        case .api: try fuzzBackendAPI(bytes)
        case .configuration: try fuzzConfiguration(bytes)
        case .token: try fuzzToken(bytes)
        case .apns: try fuzzPushAnswer(bytes)
        }
    }
}

import Crypto
import Foundation
import Testing

@testable import Scenario

extension RealServer {
    static let topic = "org.example.chat"

    /// Gives the app a signing key for an APNs that is not there.
    func addKey(_ pem: String) throws {
        let key = path("push.pem")
        try Data(pem.utf8).write(to: URL(fileURLWithPath: key))
        try rouse([
            "app", "push", "set", Self.app, "--environment", "production", "--key", key,
            "--key-id", "ABC1234567", "--team", "TEAM123456", "--topic", Self.topic,
            "--host", "localhost", "--port", "1",
        ])
    }

    /// Gives the app an APNs credential and the simulator as its APNs.
    ///
    /// - Returns: a push token that the simulator knows, in hex.
    func addPush(
        _ simulator: SimulatorProcess, _ credential: PrivateKey = .generate(.p256)
    ) throws -> String {
        let key = path("push.pem")
        try Data(credential.pem.utf8).write(to: URL(fileURLWithPath: key))
        try simulator.tell(["cmd": "app_add", "topic": Self.topic, "team": "TEAM123456"])
        try simulator.tell([
            "cmd": "key_add", "kid": "ABC1234567", "team": "TEAM123456",
            "publicKey": credential.publicKeyPEM,
        ])
        try rouse([
            "app", "push", "set", Self.app, "--environment", "production", "--key", key,
            "--key-id", "ABC1234567", "--team", "TEAM123456", "--topic", Self.topic, "--host",
            "localhost", "--port", "\(simulator.port)", "--trust", path("ca.pem"),
        ])
        struct Issued: Decodable { let token: String }
        let issued = try simulator.tell(["cmd": "token_issue", "topic": Self.topic])
        return try JSONDecoder().decode(Issued.self, from: Data(issued.utf8)).token
    }
}

extension SimulatorProcess {
    /// One command over the control socket; its answer.
    @discardableResult
    func tell(_ command: [String: String]) throws -> String {
        let line = String(decoding: try JSONEncoder().encode(command), as: UTF8.self)
        let outcome = try Program.run(["apns-simulator", "tell", "--control", control, line])
        guard outcome.status == 0 else {
            throw ProgramFailure("the simulator: \(outcome.output)\(outcome.errors)")
        }
        return outcome.output
    }
}

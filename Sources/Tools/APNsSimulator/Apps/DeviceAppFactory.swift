internal import Client
internal import Crypto
internal import EventLoop
internal import FoundationEssentials
internal import Model
internal import SyncClient
internal import Wire

/// Makes the apps of devices from `device_create`. Loop-confined.
final class DeviceAppFactory {
    typealias Make = (_ token: String, DeviceAppHooks) throws -> any DeviceApp
    typealias Problem = SimulatorState.Problem

    private static let contextsMax = 100
    private let loop: Loop
    private let door: LoopDoor
    private let directory: String?
    /// Contexts and keys by the paths they were read from: many devices share few.
    private var contexts: [String: TLSContext] = [:]
    private var keys: [String: PrivateKey] = [:]

    init(loop: Loop, directory: String?) {
        self.loop = loop
        door = LoopDoor(loop: loop)
        self.directory = directory
    }

    /// `nil`: no user was named, the device has no app with a client.
    func parse(_ request: ControlRequest, id: DeviceID) throws -> Make? {
        guard let user = request.user else { return nil }
        guard let directory else { throw Problem.invalid("the simulator has no --directory") }
        let app = try need(request.app, "app")
        let host = try need(request.host, "host")
        let endpoint = SyncEndpoint(
            host: host, port: try need(request.port, "port"),
            serverName: request.serverName ?? host, sourceAddress: Self.source(for: host, id))
        let tls = try context(try need(request.trust, "trust"))
        let identity = try identity(request, app: app)
        let topic = try need(request.topic, "topic")
        let environment: PushEnvironment =
            request.environment == .development ? .development : .production
        let locale = request.locale ?? ""
        return { [loop, door] token, hooks in
            let push = PushRegistration(
                token: Hex.decode(token) ?? [], environment: environment, topic: topic)
            var client = ClientConfiguration(
                app: app, device: id, user: user, clientName: "rouse-simulator",
                clientVersion: "1", push: push)
            client.place.locale = locale
            return SyncDeviceApp(
                loop: loop, door: door,
                configuration: SyncDeviceApp.Configuration(
                    user: user, client: client, endpoint: endpoint, tls: tls, identity: identity,
                    path: "\(directory)/\(id).sqlite"),
                hooks: hooks)
        }
    }

    private func need<Value>(_ value: Value?, _ name: String) throws -> Value {
        guard let value else { throw Problem.invalid("`\(name)` is missing") }
        return value
    }

    private func identity(_ request: ControlRequest, app: String) throws -> IdentitySource {
        if let text = request.identityURL {
            guard request.issuerKey == nil else {
                throw Problem.invalid("`identityURL` and `issuerKey` are two ways to a token")
            }
            guard let address = IdentityAddress(text) else {
                throw Problem.invalid("`identityURL` must be like http://127.0.0.1:8700/identity")
            }
            return .address(address)
        }
        return .issuer(
            IdentityIssuer(
                issuer: request.issuer ?? "\(app)-backend",
                keyID: try need(request.issuerKid, "issuerKid"),
                key: try key(try need(request.issuerKey, "issuerKey")), app: app))
    }

    /// A source address has 28,000 ports, and each stays taken for a minute after its connection:
    /// devices that wake and sleep all the time are spread over the loopback network.
    private static func source(for host: String, _ id: DeviceID) -> String? {
        host == "127.0.0.1" ? "127.0.0.\(2 + id.low % 8)" : nil
    }

    private func context(_ path: String) throws -> TLSContext {
        if let context = contexts[path] { return context }
        guard contexts.count < Self.contextsMax else { throw Problem.full("authorities") }
        let context = try TLSContext.client(
            trustedCertificates: try Self.bytes(path), protocols: ["rouse/1"],
            keepsSessions: true)
        contexts[path] = context
        return context
    }

    private func key(_ path: String) throws -> PrivateKey {
        if let key = keys[path] { return key }
        guard keys.count < Self.contextsMax else { throw Problem.full("issuer keys") }
        let key = try PrivateKey(pem: try Self.bytes(path))
        keys[path] = key
        return key
    }

    private static func bytes(_ path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Problem.invalid("cannot read \(path)")
        }
        return Array(data)
    }
}

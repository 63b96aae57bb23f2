import Crypto
import EventLoop
import FoundationEssentials
import PostgresStore
import SyncService

/// Something about settings that can be read but do not work.
public struct SettingProblem: Equatable, Sendable {
    /// The settings it is about.
    public let keys: [String]
    /// With the name of the setting.
    public let text: String
    /// It may be over with nobody doing anything (`ServerError.isOfTime`).
    public var isOfTime = false
}

// What is looked at before a start: files, certificate, limits.
extension Server {
    /// Certificate and key, as the files are now.
    static func certificate(_ configuration: Configuration) throws -> ServerCertificate {
        let material = TLSMaterial(
            certificateChain: try contents(configuration.certificateFile, "tls.certificate_file"),
            privateKey: try contents(configuration.privateKeyFile, "tls.key_file"))
        do {
            let context = try TLSContext.server(
                certificateChain: material.certificateChain, privateKey: material.privateKey,
                protocols: ["rouse/1"])
            return ServerCertificate(
                material: material, end: CertificateEnd(at: context.notAfter ?? 0))
        } catch {
            throw ServerError(
                "tls.certificate_file, tls.key_file: \(error)", isOfTime: error.isOfTime)
        }
    }

    private static func contents(_ path: String, _ key: String) throws -> [UInt8] {
        guard !path.isEmpty else { throw ServerError("\(key) is not set") }
        switch FileReading.read(path) {
        case .success(let bytes): return bytes
        case .failure(let reason): throw ServerError("\(key): cannot read \(path): \(reason)")
        }
    }

    /// Looks at everything that can be wrong before starting, without connecting to anything.
    public static func problems(_ configuration: Configuration) -> [SettingProblem] {
        var problems: [SettingProblem] = []
        func look(_ keys: String..., at check: () throws -> Void) {
            do {
                try check()
            } catch {
                problems.append(
                    SettingProblem(
                        keys: keys, text: "\(error)",
                        isOfTime: (error as? ServerError)?.isOfTime ?? false))
            }
        }
        look("tls.certificate_file") {
            _ = try contents(configuration.certificateFile, "tls.certificate_file")
        }
        look("tls.key_file") { _ = try contents(configuration.privateKeyFile, "tls.key_file") }
        if problems.isEmpty {
            look("tls.certificate_file", "tls.key_file") { _ = try certificate(configuration) }
        }
        look("limits.connections") {
            _ = try connectionsMax(configuration, Descriptors.raiseLimit())
        }
        look("listen.host") { try checkListenHost(configuration) }
        look("api.host") { try checkNamedHost("api.host", configuration.apiHost) }
        look("console.host") {
            if configuration.consolePort != nil {
                try checkNamedHost("console.host", configuration.consoleHost)
            }
        }
        problems += meetingDoors(configuration)
        look("listen.plain_host", "listen.plain_port") { _ = try plainListener(configuration) }
        look("node.agent_host", "node.agent_port") {
            if configuration.agentPort != nil {
                try checkPrivate("node.agent_host", configuration.agentHost)
            }
        }
        look("listen.proxy_networks") { _ = try balancers(configuration) }
        look("webhooks.allow_networks") { _ = try webhookAddresses(configuration) }
        look("webhooks.ca_file") { _ = try webhookAuthorities(configuration) }
        look("store.postgres") { try checkAddress(configuration.postgres) }
        if case .file(let path) = configuration.storePlace {
            look("store.path") { try checkStore(path, configuration.folder) }
        }
        look("admin.socket", "store.path") { try checkSocket(configuration.adminSocketPath) }
        return problems
    }

    private static func checkAddress(_ address: String) throws {
        guard !address.isEmpty, let problem = PostgresOptions.problem(in: address) else { return }
        throw ServerError("store.postgres: \(problem)")
    }

    static func checkPaths(_ configuration: Configuration) throws {
        if case .file(let path) = configuration.storePlace {
            try checkStore(path, configuration.folder)
        }
        try checkSocket(configuration.adminSocketPath)
    }

    private static func checkStore(_ path: String, _ folder: String) throws {
        guard !path.isEmpty, !path.utf8.contains(0) else {
            throw ServerError("store.path: must name a file")
        }
        let files = FileManager.default
        // Relative paths of a file began at the working directory once: the store that is served
        // must not become another, empty one.
        let relative = path.dropFirst(folder.count)
        if !folder.isEmpty, path.hasPrefix(folder), !relative.hasPrefix("/"),
            !files.fileExists(atPath: path), files.fileExists(atPath: String(relative))
        {
            throw ServerError(
                "store.path: there is no store at \(path), but \(relative) is one in the working "
                    + "directory. Relative paths start at the folder of the configuration: move "
                    + "the store there, or name it with its whole path")
        }
        if let type = (try? files.attributesOfItem(atPath: path))?[.type] as? FileAttributeType,
            type != .typeRegular
        {
            throw ServerError("store.path: \(path) is not a plain file")
        }
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        guard files.isWritableFile(atPath: directory.path) else {
            throw ServerError("store.path: cannot write in \(directory.path)")
        }
        if let problem = StorePlace.file(path).accessProblem {
            throw ServerError("store.path: \(problem)")
        }
    }

    /// What the system's addresses of sockets hold, the 0 at their end included.
    private static let socketPathMax = 108

    private static func checkSocket(_ path: String) throws {
        guard !path.utf8.contains(0), path.utf8.count < socketPathMax else {
            throw ServerError(
                "admin.socket: \(path) has \(path.utf8.count) bytes; "
                    + "a socket's path has at most \(socketPathMax - 1)")
        }
        let files = FileManager.default
        if let type = (try? files.attributesOfItem(atPath: path))?[.type] as? FileAttributeType,
            type != .typeSocket
        {
            throw ServerError("admin.socket: \(path) is there, and no socket")
        }
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent()
        guard files.isWritableFile(atPath: directory.path) else {
            throw ServerError("admin.socket: cannot write in \(directory.path)")
        }
    }
}

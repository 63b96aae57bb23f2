import EventLoop
import Telemetry

// Where a server listens, as far as that can be judged without a try.
extension Server {
    /// A port that somebody comes to, and the names of its settings.
    private struct Door {
        let keys: (host: String, port: String)
        let host: String
        let port: UInt16

        /// Whether one of them would find the place taken by the other.
        func meets(_ other: Door) -> Bool {
            guard port != 0, port == other.port,
                let own = Self.bytes(host), let others = Self.bytes(other.host)
            else { return false }
            return own == others || Self.takes(own, others) || Self.takes(others, own)
        }

        private static func bytes(_ host: String) -> [UInt8]? {
            NumericAddress.bytes(host == "localhost" ? "127.0.0.1" : host)
        }

        /// Whether the first is every address of this machine that the second is one of.
        private static func takes(_ all: [UInt8], _ one: [UInt8]) -> Bool {
            // `::` takes IPv4, too.
            guard let every = NumericAddress.bytes("0.0.0.0") else { return false }
            if all.allSatisfy({ $0 == 0 }) { return true }
            return all == every && one[..<12] == every[..<12]
        }
    }

    /// Devices' listeners do not look names up.
    static func checkListenHost(_ configuration: Configuration) throws {
        guard NumericAddress.bytes(configuration.listenHost) != nil else {
            throw ServerError(
                "listen.host: `\(configuration.listenHost.legible)` is not a numeric address, such "
                    + "as 0.0.0.0 (IPv4), :: (both), 127.0.0.1 or ::1")
        }
    }

    /// The listeners of backends and operators may have a name, of which only the resolver knows
    /// whether it is one.
    static func checkNamedHost(_ key: String, _ host: String) throws {
        let isName = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard !host.isEmpty, isName || NumericAddress.bytes(host) != nil else {
            throw ServerError(
                "\(key): `\(host.legible)` is neither a numeric address, such as 127.0.0.1 or ::1, "
                    + "nor a name")
        }
    }

    /// Ports that are set twice for the same address: the second would be told that another program
    /// listens there.
    static func meetingDoors(_ configuration: Configuration) -> [SettingProblem] {
        var doors = [
            Door(
                keys: ("listen.host", "listen.port"), host: configuration.listenHost,
                port: configuration.listenPort)
        ]
        func add(_ name: String, _ host: String, _ port: UInt16?) {
            guard let port else { return }
            doors.append(Door(keys: ("\(name)host", "\(name)port"), host: host, port: port))
        }
        add("listen.plain_", configuration.plainHost, configuration.plainPort)
        add("api.", configuration.apiHost, configuration.apiPort)
        add("console.", configuration.consoleHost, configuration.consolePort)
        add("node.agent_", configuration.agentHost, configuration.agentPort)
        var problems: [SettingProblem] = []
        for (index, door) in doors.enumerated() {
            guard let other = doors[..<index].first(where: { door.meets($0) }) else { continue }
            problems.append(
                SettingProblem(
                    keys: [
                        door.keys.port, other.keys.port, door.keys.host, other.keys.host,
                    ],
                    text: "\(door.keys.port): \(door.port) is \(other.keys.port), too, at the same "
                        + "address (\(door.keys.host) \(door.host), \(other.keys.host) "
                        + "\(other.host)); give each a port of its own"))
        }
        return problems
    }
}

extension String {
    /// What of a setting may be shown to a terminal, and so much that it can be found.
    var legible: String {
        let bytesMax = 200
        var text = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            text.append(Log.isUnseen(scalar) ? "\u{FFFD}" : scalar)
        }
        let whole = String(text)
        guard whole.utf8.count > bytesMax else { return whole }
        var cut = whole.prefix(bytesMax)
        while cut.utf8.count > bytesMax { cut = cut.dropLast() }
        return "\(cut)\u{2026}"
    }

    /// Whether it may name a node: in logs, lists, paths and WELCOME.
    var isNodeName: Bool {
        utf8.count <= Configuration.nodeNameBytesMax
            && !unicodeScalars.contains(where: Log.isUnseen)
    }
}

import FoundationEssentials
import Glibc

/// A PostgreSQL of this tool's own, in its folder and on a port of loopback, which syncs as one
/// does that is trusted. It ends with this tool.
final class PostgresProgram {
    /// Where Debian's package puts its programs, by version.
    private static let versions = "/usr/lib/postgresql"
    private static let user = "rouse"

    private let program: PeerProgram
    private let port: UInt16

    /// The folder of the newest version's programs; `nil`: none is installed.
    static func find() -> URL? {
        let found = (try? FileManager.default.contentsOfDirectory(atPath: versions)) ?? []
        return found.compactMap { Double($0) == nil ? nil : $0 }
            .sorted { (Double($0) ?? 0) > (Double($1) ?? 0) }
            .map { URL(fileURLWithPath: "\(versions)/\($0)/bin") }
            .first {
                FileManager.default.isExecutableFile(
                    atPath: $0.appendingPathComponent("postgres").path)
            }
    }

    init(_ programs: URL, folder: URL) throws {
        port = try PeerProgram.freePort()
        program = try PeerProgram(
            URL(fileURLWithPath: "/bin/sh"),
            arguments: ["-c", Self.script, "sh", folder.path, programs.path, "\(port)"],
            folder: folder, ports: [port])
        // It listens before it serves anybody.
        for _ in 0..<(Self.startTime / 20) {
            if program.lastLogLines().contains("ready to accept connections") { return }
            usleep(20_000)
        }
        program.stop()
        throw ScenarioError("postgres did not start:\n\(program.lastLogLines())")
    }

    /// Milliseconds that it has for its start.
    private static let startTime = 10_000

    /// Settings of a node whose tables are there.
    func settings(schema: String) -> [String: String] {
        [
            "store.postgres": "host=127.0.0.1 port=\(port) user=\(Self.user) dbname=postgres",
            "store.schema": schema,
        ]
    }

    /// Its first process and those it has started, of each connection one; `nil`: it has ended.
    var processes: [Int32]? {
        guard let first = program.process else { return nil }
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return [first]
            + all.compactMap(Int32.init).filter { ProcessUse.parent(of: $0) == first }
    }

    func stop() { program.stop() }

    /// PostgreSQL does not run as root: the package's user does it there. What the kernel is to do
    /// at this tool's end is said anew after the change of user, which takes it back.
    private static let script = """
        set -eu
        folder=$1 programs=$2 port=$3
        mkdir -m 700 "$folder/postgres"
        as=
        if [ "$(id -u)" -eq 0 ]; then
            chmod 711 "$folder"
            chown postgres "$folder/postgres"
            as='setpriv --reuid=postgres --regid=postgres --clear-groups'
        fi
        cd "$folder/postgres"
        $as "$programs/initdb" -D data -U \(user) -A trust -E UTF8 --locale=C --no-sync
        exec $as setpriv --pdeathsig KILL "$programs/postgres" -D data -p "$port" \
            -k "$folder/postgres" -c listen_addresses=127.0.0.1 -c max_connections=200 \
            -c shared_buffers=256MB -c max_wal_size=4GB
        """
}

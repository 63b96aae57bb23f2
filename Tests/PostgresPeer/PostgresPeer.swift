import Foundation

/// A real PostgreSQL server for tests, in a folder of its own, reached by a socket in it. It is
/// started once in a process and ends with it, also where that is killed.
///
/// It does not sync its files: no test pulls the plug.
public final class PostgresPeer: Sendable {
    /// Where Debian's package puts its programs.
    private static let programs = "/usr/lib/postgresql/15/bin"

    public static var isInstalled: Bool {
        FileManager.default.isExecutableFile(atPath: "\(programs)/postgres")
    }

    public struct NotStarted: Error, CustomStringConvertible {
        public let description: String
    }

    /// The process' server.
    public static func shared() throws -> PostgresPeer { try started.get() }

    private static let started = Result { try PostgresPeer() }

    /// Where its socket is.
    public let folder: String
    /// The server ends when this is closed, as it is when the process ends.
    private let life: Pipe

    /// As libpq takes it.
    public var address: String { "host=\(folder) user=rouse dbname=postgres" }

    /// Runs statements as the server's owner; what went wrong, or nothing.
    public func psql(_ sql: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "\(Self.programs)/psql")
        process.arguments = [
            "-h", folder, "-U", "rouse", "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql,
        ]
        let errors = Pipe()
        process.standardError = errors
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        let text = String(
            decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return process.terminationStatus == 0 ? "" : text
    }

    private init() throws {
        folder =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-pg-\(ProcessInfo.processInfo.processIdentifier)").path
        life = Pipe()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", Self.script, "sh", folder, Self.programs]
        process.standardInput = life
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        var told = ""
        while !told.contains("server is ready\n") {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw NotStarted(description: "PostgreSQL: \(told)") }
            told += String(decoding: data, as: UTF8.self)
        }
    }

    /// PostgreSQL does not run as root: the package's user does it there.
    private static let script = """
        set -eu
        folder=$1 programs=$2
        rm -rf "$folder"
        mkdir -m 700 "$folder"
        as=
        if [ "$(id -u)" -eq 0 ]; then
            chown postgres "$folder"
            as='setpriv --reuid=postgres --regid=postgres --clear-groups'
        fi
        cd "$folder"
        trap 'rm -rf "$folder"' EXIT
        $as "$programs/initdb" -D data -U rouse -A trust -E UTF8 --locale=C --no-sync >/dev/null
        $as "$programs/pg_ctl" -D data -l log -w -o "-k $folder -c listen_addresses='' -c fsync=off \
        -c max_connections=200 -c deadlock_timeout=100ms" start >/dev/null ||
            { cat log; exit 1; }
        echo 'server is ready'
        cat >/dev/null
        $as "$programs/pg_ctl" -D data -m immediate stop >/dev/null
        """
}

import Foundation
import Glibc

/// A PostgreSQL server on a port of loopback that a test ends in every way, starts again, and
/// gives a standby. It ends with the process that started it, also where that is killed.
///
/// It does not sync its files: its processes are killed, no test pulls the plug.
public final class PostgresMachine {
    private static let programs = "/usr/lib/postgresql/15/bin"
    /// Milliseconds for anything that it is asked to do.
    private static let patience = 30_000

    public let port: Int
    private let folder: String
    private var server = Process()
    /// Ends the server when its input ends, as it does when this process is killed.
    private var watch = Process()

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// - Parameters:
    ///   - folder: Where its files go; there is none yet.
    ///   - port: One that nobody uses.
    public init(folder: String, port: Int) {
        self.folder = folder
        self.port = port
    }

    /// Makes an empty database.
    public func create() throws {
        try run(
            """
            \(Self.folderMade)
            $as "$programs/initdb" -D "$folder/data" -U rouse -A trust -E UTF8 --locale=C \
                --no-sync
            """)
    }

    /// Makes a standby: a copy of `primary`, as it is now and from then on.
    public func follow(_ primary: PostgresMachine) throws {
        try run(
            """
            \(Self.folderMade)
            $as "$programs/pg_basebackup" -D "$folder/data" -R --no-sync --checkpoint=fast \
                -d "host=127.0.0.1 port=\(primary.port) user=rouse application_name=standby"
            """)
    }

    /// Makes a copy of `primary` that, once started, is as it was at the restore point of this
    /// name, and takes writes from there on: a recovery of the archived journal.
    public func recover(_ primary: PostgresMachine, to point: String) throws {
        try run(
            """
            rm -f "$folder/data/standby.signal"
            cat >>"$folder/data/postgresql.auto.conf" <<SETTINGS
            primary_conninfo = ''
            restore_command = 'cp "\(primary.folder)/data/pg_wal/%f" "%p"'
            recovery_target_name = '\(point)'
            recovery_target_action = 'promote'
            SETTINGS
            touch "$folder/data/recovery.signal"
            """)
    }

    /// Lets this role come with its password and over TLS only. Before `start`.
    ///
    /// - Parameters:
    ///   - certificate: The path of the chain, PEM.
    ///   - key: The path of its private key, PEM.
    public func secure(_ role: String, certificate: String, key: String) throws {
        try run(
            """
            install -m 600 ${as:+-o postgres} "\(certificate)" "$folder/data/server.crt"
            install -m 600 ${as:+-o postgres} "\(key)" "$folder/data/server.key"
            echo 'ssl = on' >>"$folder/data/postgresql.auto.conf"
            cat >"$folder/data/pg_hba.conf" <<RULES
            hostssl all \(role) 127.0.0.1/32 scram-sha-256
            host all \(role) 127.0.0.1/32 reject
            host all all 127.0.0.1/32 trust
            RULES
            """)
    }

    /// Returns when it takes statements.
    public func start() throws {
        server = Self.shell(Self.serving, folder, "\(port)")
        try server.run()
        watch = Self.shell(
            "read -r _ || kill -QUIT \"$4\"", folder, "\(port)",
            "\(server.processIdentifier)")
        watch.standardInput = Pipe()
        try watch.run()
        try wait("PostgreSQL answers") {
            guard server.isRunning else { throw Failure(description: "it ended: \(log)") }
            return (try? query("SELECT 1")) == "1"
        }
    }

    /// Every session is ended, what is committed is written (PostgreSQL 15, 19.5, "fast").
    public func stop() throws {
        guard server.isRunning else { return }
        Glibc.kill(server.processIdentifier, SIGINT)
        try end()
    }

    /// kill -9 of every process.
    public func kill() throws {
        guard server.isRunning else { return }
        let first = server.processIdentifier
        let children = try? String(
            contentsOfFile: "/proc/\(first)/task/\(first)/children", encoding: .utf8)
        let others = (children ?? "").split(separator: " ").compactMap { Int32($0) }
        for process in [first] + others { Glibc.kill(process, SIGKILL) }
        try end()
        // One that is still there holds the memory that they share.
        try wait("its processes are gone") { others.allSatisfy { !Self.isThere($0) } }
    }

    private func end() throws {
        try wait("PostgreSQL ends") { !server.isRunning }
        Glibc.kill(watch.processIdentifier, SIGKILL)
        watch.waitUntilExit()
    }

    /// A standby becomes a primary.
    public func promote() throws {
        try run("$as \"$programs/pg_ctl\" -D \"$folder/data\" -w promote")
    }

    /// Runs statements as the server's owner; what they gave, without a header.
    public func query(_ sql: String) throws -> String {
        try Self.output([
            "\(Self.programs)/psql", "-h", "127.0.0.1", "-p", "\(port)", "-U", "rouse", "-d",
            "postgres", "-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql,
        ])
    }

    /// Its own log.
    public var log: String {
        let text = (try? String(contentsOfFile: "\(folder)/log", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(10).joined(separator: "\n")
    }

    private func wait(_ what: String, until isSo: () throws -> Bool) throws {
        for _ in 0..<(Self.patience / 20) {
            if try isSo() { return }
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw Failure(description: "not in time: \(what)\n\(log)")
    }

    /// One that has ended and waits for its parent's notice is gone.
    private static func isThere(_ process: Int32) -> Bool {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        else { return false }
        return text.split(separator: ")").last.map { !$0.hasPrefix(" Z") } ?? false
    }

    private func run(_ script: String) throws {
        _ = try Self.output(
            ["/bin/sh", "-c", Self.script(script), "sh", folder, Self.programs, "\(port)"])
    }

    private static func shell(_ body: String, _ words: String...) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script(body), "sh", words[0], programs] + words.dropFirst()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        return process
    }

    private static func output(_ words: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let text = String(
            decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(description: "\(words[0]): \(text)")
        }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// PostgreSQL does not run as root: the package's user does it there.
    private static func script(_ body: String) -> String {
        """
        set -eu
        folder=$1 programs=$2 port=$3
        as=
        if [ "$(id -u)" -eq 0 ]; then
            as='setpriv --reuid=postgres --regid=postgres --clear-groups'
        fi
        \(body)
        """
    }

    private static let folderMade = """
        mkdir -m 700 "$folder"
        if [ -n "$as" ]; then chown postgres "$folder"; fi
        cd "$folder"
        """

    /// The shell becomes the server.
    private static let serving = """
        cd "$folder"
        exec $as "$programs/postgres" -D data -p "$port" -k "$folder" \
            -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200 \
            -c deadlock_timeout=100ms -c wal_level=replica -c hot_standby=on \
            -c wal_retrieve_retry_interval=200ms -c wal_receiver_status_interval=1s >>log 2>&1
        """
}

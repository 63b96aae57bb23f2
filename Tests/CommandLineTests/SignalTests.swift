import Foundation
import Glibc
import Testing

/// What a supervisor sends to a server that still starts.
@Suite struct SignalTests {
    /// A database that takes a connection and never says anything, so that a start waits for it.
    private final class SilentDatabase {
        let port: UInt16
        private let descriptor: Int32

        init() throws {
            descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let descriptor = self.descriptor
            let bound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, size) == 0 && listen(descriptor, 4) == 0
                        && getsockname(descriptor, $0, &size) == 0
                }
            }
            try #require(bound)
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { close(descriptor) }

        /// Waits until somebody has connected.
        func isAsked() -> Bool {
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&watched, 1, 60_000) > 0
        }
    }

    /// A start that waits for its database is sent the signals; how the process ended.
    private func end(after signals: [Int32]) throws -> (Process.TerminationReason, Int32) {
        let database = try SilentDatabase()
        let program = try Program()
        _ = try program.rouse("dev", "certificates", "tls")
        try program.write(
            ServedProgram.base + "store.postgres = host=127.0.0.1 port=\(database.port) user=x\n",
            "rouse.conf")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Program.path)
        process.arguments = ["serve", "--config", "rouse.conf"]
        process.currentDirectoryURL = program.folder
        process.standardError = FileHandle.nullDevice
        try process.run()
        try #require(database.isAsked())
        for signal in signals { kill(process.processIdentifier, signal) }
        process.waitUntilExit()
        return (process.terminationReason, process.terminationStatus)
    }

    @Test(
        "SIGHUP, SIGUSR1 and SIGUSR2 do not end a server that waits for its database",
        arguments: [SIGHUP, SIGUSR1, SIGUSR2])
    func survived(_ signal: Int32) throws {
        let (reason, status) = try end(after: [signal])
        // The database never answers: that is what it ends by, in words.
        #expect(reason == .exit && status == 69, "\(reason) \(status)")
    }

    @Test("SIGTERM ends it")
    func terminated() throws {
        let (reason, status) = try end(after: [SIGHUP, SIGTERM])
        #expect(reason == .uncaughtSignal && status == SIGTERM, "\(reason) \(status)")
    }

    @Test("a SIGHUP during the start is heeded when the server serves")
    func held() throws {
        let server = try ServedProgram(begun: { process in
            try #require(ignoresUser1(process), "the program does not come to that")
            kill(process, SIGHUP)
        })
        let end = Date(timeIntervalSinceNow: 60)
        while !server.log.contains(where: { $0.contains("event=settings.reloaded ") }),
            Date() < end
        { usleep(20_000) }
        #expect(server.log.contains { $0.contains("event=settings.reloaded ") }, "\(server.log)")
    }

    /// Waits until the process has begun so far that it ignores SIGUSR1.
    private func ignoresUser1(_ process: Int32) -> Bool {
        let end = Date(timeIntervalSinceNow: 10)
        while Date() < end {
            let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8))
            let ignored = status?.split(separator: "\n").first { $0.hasPrefix("SigIgn:") }
            let mask = ignored.flatMap { UInt64($0.dropFirst(7).filter { $0 != "\t" }, radix: 16) }
            if let mask, mask & (1 << UInt64(SIGUSR1 - 1)) != 0 { return true }
            usleep(1_000)
        }
        return false
    }
}

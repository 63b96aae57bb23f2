import EventLoop
import Foundation
import Glibc
import Testing

/// What a supervisor passes to the process, and hears of it.
@Suite struct SupervisorTests {
    @Test("sockets are taken by their names, and only where they are meant for this process")
    func sockets() {
        func taken(_ variables: [String: String]) -> [String: [Int32]] {
            Supervisor(environment: variables, process: 77).sockets
        }
        #expect(
            taken(["LISTEN_PID": "77", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "devices:other"])
                == ["devices": [3], "other": [4]])
        #expect(taken(["LISTEN_PID": "77", "LISTEN_FDS": "1"]) == ["0": [3]])
        #expect(
            taken([
                "LISTEN_PID": "77", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "devices:api:devices",
            ]) == ["devices": [3, 5], "api": [4]])
        #expect(taken(["LISTEN_PID": "78", "LISTEN_FDS": "1"]) == [:])
        #expect(taken(["LISTEN_FDS": "1"]) == [:])
        for count in ["-1", "x", ""] {
            #expect(taken(["LISTEN_PID": "77", "LISTEN_FDS": count]) == [:])
        }
        #expect(taken(["LISTEN_PID": "77", "LISTEN_FDS": "2147483647"]).count == 16)
    }

    @Test("a sign of life is wanted within the time told, by the process that is meant")
    func watchdog() {
        func wanted(_ variables: [String: String]) -> UInt64? {
            Supervisor(environment: variables, process: 77).watchdog
        }
        #expect(wanted(["WATCHDOG_USEC": "30000000"]) == 30_000)
        #expect(wanted(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "77"]) == 30_000)
        #expect(wanted(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "78"]) == nil)
        for value in ["0", "999", "-5", "x"] { #expect(wanted(["WATCHDOG_USEC": value]) == nil) }
    }

    @Test("notices reach a path and an abstract name; without one nothing is said")
    func notices() throws {
        let path = NSTemporaryDirectory() + "notices-\(UUID().uuidString.prefix(8))"
        defer { unlink(path) }
        for name in [path, "@rouse-notices-\(UUID().uuidString)"] {
            let receiver = try receiver(at: name)
            defer { close(receiver) }
            Supervisor(environment: ["NOTIFY_SOCKET": name]).tell("READY=1")
            var heard = [UInt8](repeating: 0, count: 64)
            let count = recv(receiver, &heard, heard.count, 0)
            #expect(count == 7 && String(decoding: heard.prefix(7), as: UTF8.self) == "READY=1")
        }
        Supervisor(environment: [:]).tell("READY=1")
        Supervisor(environment: ["NOTIFY_SOCKET": path + "gone"]).tell("READY=1")
        Supervisor(
            environment: ["NOTIFY_SOCKET": String(repeating: "x", count: 300)]
        ).tell("READY=1")
    }

    /// A datagram socket of this name; what is said there comes at once.
    private func receiver(at name: String) throws -> Int32 {
        var bytes = Array(name.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(2 + bytes.count))
            }
        }
        try #require(descriptor >= 0 && bound == 0)
        return descriptor
    }

    @Test("a socket that does not listen is no socket to take connections from")
    func noListener() throws {
        let (thread, isRefused) = try LoopThread.startReturning(name: "inherited") { loop in
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            return (try? Listener.listen(loop: loop, inherited: descriptor)) == nil
                && (try? Listener.listen(loop: loop, inherited: 9_999)) == nil
        }
        #expect(isRefused)
        thread.stop()
        thread.join()
    }
}

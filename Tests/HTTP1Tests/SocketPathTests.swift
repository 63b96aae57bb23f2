import Foundation
import HTTP1
import Testing

/// What stands at the path of a socket before a server listens there, and after it has ended.
@Suite struct SocketPathTests {
    private func server(_ path: String) throws -> HTTPServer {
        try HTTPServer(path: path) { $1.respond(HTTPResponse(status: 200)) }
    }

    private func withPath(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-\(UUID().uuidString.prefix(8))").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try body("\(folder)/socket")
    }

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test("a file that is no socket is left as it is, and named")
    func file() throws {
        try withPath { path in
            try "a store".write(toFile: path, atomically: true, encoding: .utf8)
            #expect(throws: HTTPServerError.occupied(path)) { try server(path) }
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "a store")
            #expect("\(HTTPServerError.occupied(path))".contains("left as it is"))
        }
    }

    @Test("what a dead server left is replaced; the socket of a live one is not")
    func socket() throws {
        try withPath { path in
            let first = try server(path)
            #expect(throws: HTTPServerError.system(call: "bind", code: EADDRINUSE)) {
                try server(path)
            }
            #expect(exists(path))
            // As after kill -9: the socket stands there, and nobody listens.
            let left = "\(path).left"
            try FileManager.default.moveItem(atPath: path, toPath: left)
            first.stop()
            #expect(exists(left))
            try FileManager.default.moveItem(atPath: left, toPath: path)
            let second = try server(path)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            second.stop()
            #expect(!exists(path))
        }
    }

    @Test("a server that ends leaves the socket that another has put there")
    func successor() throws {
        try withPath { path in
            let first = try server(path)
            try FileManager.default.removeItem(atPath: path)
            let second = try server(path)
            first.stop()
            #expect(exists(path))
            second.stop()
            #expect(!exists(path))
        }
    }
}

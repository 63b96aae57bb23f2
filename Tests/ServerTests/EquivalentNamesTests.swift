import Testing

/// Names that Unicode takes for one text, over the process with its store and both its doors (P6).
@Suite(.enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
struct EquivalentNamesTests {
    @Test("users whose names are canonically equivalent are two to the whole server")
    func apart() throws {
        let server = try RealServer()
        defer { server.stop() }
        let (output, status) = try server.runPeer("equivalent.py")
        #expect(
            status == 0 && output.hasSuffix(": ok\n"), "\(output)\n\(server.log.suffix(2000))")
    }
}

import Model
import SyncServer
import SyncService
import Testing

/// One stranger or client, over a real loop, that tries to keep the others from being served.
@Suite(.enabled(if: PeerTests.hasPeer, "python3-protobuf or python3-jwt is not installed"))
struct AttackTests {
    private func attack(
        _ kind: String, change: (inout SyncServiceConfiguration) -> Void = { _ in }
    ) throws {
        let service = try Service(change: change)
        defer { service.stop() }
        let (output, status) = try service.runPeer("attacks.py", [kind])
        #expect(status == 0 && output.hasSuffix(": ok\n"), "\(output)")
    }

    @Test("100,000 frames of one client do not put off a PING of another")
    func turns() throws { try attack("turns") }

    @Test("a client of which every frame is refused is closed with 1002")
    func refused() throws { try attack("refused") }

    @Test("PINGs without end are closed with 1002, before WELCOME after a few")
    func pings() throws { try attack("pings") }

    @Test("400 sockets that say nothing leave the handshakes to others")
    func silent() throws { try attack("silent") }

    @Test("400 handshakes begun and left on this machine's own address give way to a new one")
    func handshakes() throws { try attack("handshakes") }

    @Test("one address with all places and no login loses them to newcomers, sessions stay")
    func places() throws { try attack("places") { $0.connectionsMax = 40 } }

    @Test("half frames of few users take no room from others")
    func receiving() throws { try attack("receiving") { $0.receivingBytesMax = 1 << 20 } }
}

import Model
import SyncService
import Telemetry
import Testing

@testable import RouseServer

@Suite struct ListenTests {
    private func plain(_ text: String) throws -> PlainListener? {
        try Server.plainListener(
            try Configuration(text: text, name: "rouse.conf", environment: [:]))
    }

    @Test("without TLS only where it was asked for, and only on private addresses")
    func plainPort() throws {
        #expect(try plain("") == nil)
        #expect(try plain("listen.plain_port = off") == nil)
        #expect(
            try plain("listen.plain_port = 7000") == PlainListener(host: "127.0.0.1", port: 7000))
        #expect(
            try plain("listen.plain_port = 0\nlisten.plain_host = 10.1.2.3")
                == PlainListener(host: "10.1.2.3", port: 0))
        for host in ["0.0.0.0", "::", "8.8.8.8", "example.org"] {
            #expect(throws: ServerError.self) {
                try plain("listen.plain_port = 1\nlisten.plain_host = \(host)")
            }
        }
        #expect(throws: ConfigurationError.self) { try plain("listen.plain_port = on") }
    }

    @Test("rates are those of the configuration; 0 is none")
    func rates() throws {
        let rates = Server.deviceRates(
            try Configuration(
                text: "limits.user_mutations = 7\nlimits.address_connections = 0",
                name: "rouse.conf", environment: [:]))
        #expect(rates.userMutations.perSecond == 7 && rates.userMutations.burst == 70)
        #expect(rates.addressConnections == .none)
        #expect(rates.appRequests == .none)
    }
}

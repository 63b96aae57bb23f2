import Testing

@testable import SyncService

@Suite struct HoldingsTests {
    @Test("age is kept while it grows, and begins anew after a release")
    func age() {
        var holdings = Holdings<String>()
        holdings.hold(10, connection: 1, of: "anna")
        holdings.hold(20, connection: 2, of: "bob")
        holdings.hold(30, connection: 1, of: "anna")
        #expect(holdings.amount == 50 && holdings.amount(of: "anna") == 30)
        #expect(holdings.oldest() == 1)
        holdings.release(1)
        holdings.hold(5, connection: 1, of: "anna")
        #expect(holdings.oldest() == 2 && holdings.oldest(of: "anna") == 1)
        holdings.release(2)
        holdings.release(2)
        #expect(holdings.oldest() == 1 && holdings.count == 1 && holdings.amount == 5)
        #expect(holdings.oldest(of: "bob") == nil)
    }

    @Test("the oldest of the owner with most; among equals of one each the oldest of all")
    func most() {
        var holdings = Holdings<String>()
        for number in 1...3 { holdings.hold(connection: UInt64(number), of: "\(number)") }
        #expect(holdings.oldestOfMost() == 1)
        holdings.hold(connection: 4, of: "3")
        #expect(holdings.oldestOfMost() == 3)
        holdings.release(3)
        #expect(holdings.oldestOfMost() == 1)
        for number in [1, 2, 4] { holdings.release(UInt64(number)) }
        #expect(holdings.oldestOfMost() == nil && holdings.count == 0)
    }

    @Test("it agrees with a list over 20,000 random changes")
    func againstList() {
        var holdings = Holdings<Int>()
        var list: [(connection: UInt64, owner: Int, amount: Int)] = []
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let connection = UInt64.random(in: 0..<40, using: &random)
            let owner = Int.random(in: 0..<6, using: &random)
            if Bool.random(using: &random) {
                let amount = Int.random(in: 1...9, using: &random)
                holdings.hold(amount, connection: connection, of: owner)
                if let index = list.firstIndex(where: { $0.connection == connection }) {
                    list[index].amount = amount
                } else {
                    list.append((connection, owner, amount))
                }
            } else {
                holdings.release(connection)
                list.removeAll { $0.connection == connection }
            }
            let own = list.filter { $0.owner == owner }
            let sum = list.reduce(0) { $0 + $1.amount }
            var good = holdings.oldest() == list.first?.connection
            good = good && holdings.count == list.count && holdings.amount == sum
            good = good && holdings.oldest(of: owner) == own.first?.connection
            good = good && holdings.amount(of: owner) == own.reduce(0) { $0 + $1.amount }
            let counts = Dictionary(grouping: list, by: \.owner).mapValues(\.count)
            let loser = holdings.oldestOfMost()
            let loserOwner = list.first { $0.connection == loser }?.owner
            good = good && loserOwner.flatMap { counts[$0] } == counts.values.max()
            guard good else { return #expect(Bool(false), "\(list)") }
        }
    }
}

@Suite struct AdmissionTests {
    private func origin(_ address: String, exempt: Bool = false) -> PeerOrigin {
        guard let peer = PeerAddress(address) else { preconditionFailure(address) }
        return PeerOrigin(holder: exempt ? nil : peer.holder, network: peer.network)
    }

    private func places(_ connections: Int, _ handshakes: Int = 8) -> Admission {
        Admission(
            connectionsMax: connections, handshakesMax: handshakes, addressHandshakesMax: 4)
    }

    @Test("a full house: the oldest of the address with most goes, sessions stay")
    func places() {
        var admission = places(4)
        #expect(admission.admit(1, from: origin("192.0.2.1"), besides: 0) == nil)
        for number in 2...4 {
            let leaving = admission.admit(
                UInt64(number), from: origin("198.51.100.7"), besides: 0)
            #expect(leaving == nil)
        }
        #expect(admission.admit(5, from: origin("203.0.113.1"), besides: 0) == 2)
        // Number 5 logs in: one place less for those who are not.
        admission.left(5)
        #expect(admission.strangerCount == 3)
        #expect(admission.admit(6, from: origin("203.0.113.2"), besides: 1) == 3)
        // With sessions in all places there is still one for whoever is told so.
        #expect(admission.reserve == 1)
    }

    @Test("addresses of one /48 count together when places run out")
    func network() {
        var admission = places(4)
        _ = admission.admit(1, from: origin("2001:db8:1::1"), besides: 0)
        _ = admission.admit(2, from: origin("2001:db8:2:1::1"), besides: 0)
        _ = admission.admit(3, from: origin("2001:db8:2:2::1"), besides: 0)
        _ = admission.admit(4, from: origin("192.0.2.1"), besides: 0)
        #expect(admission.admit(5, from: origin("192.0.2.2"), besides: 0) == 2)
    }

    @Test("an address with its share of handshakes loses its own oldest, others lose none")
    func share() {
        var admission = places(100)
        #expect(admission.beginHandshake(1, from: origin("192.0.2.9")) == nil)
        for number in 2...5 {
            #expect(admission.beginHandshake(UInt64(number), from: origin("192.0.2.1")) == nil)
        }
        #expect(admission.beginHandshake(6, from: origin("192.0.2.1")) == 2)
        #expect(admission.handshakeCount == 5)
    }

    @Test("a balancer that is exempt from shares cannot keep the handshakes for ever")
    func balancer() {
        var admission = places(100)
        for number in 1...8 {
            let leaving = admission.beginHandshake(
                UInt64(number), from: origin("127.0.0.1", exempt: true))
            #expect(leaving == nil)
        }
        #expect(admission.beginHandshake(9, from: origin("192.0.2.1")) == 1)
        #expect(admission.beginHandshake(10, from: origin("127.0.0.1", exempt: true)) == 2)
    }

    @Test("a ClientHello is whole with its record; what is none is TLS' to refuse")
    func clientHello() {
        func whole(_ bytes: [UInt8]) -> Bool {
            var hello = ClientHello()
            bytes.withUnsafeBytes { hello.append($0) }
            return hello.isWhole
        }
        #expect(!whole([]) && !whole([22, 3, 1, 0]) && !whole([22, 3, 1, 0, 3, 1, 2]))
        #expect(whole([22, 3, 1, 0, 3, 1, 2, 3]) && whole([22, 3, 1, 0xFF, 0xFF]))
        #expect(whole(Array("GET /".utf8)))
    }
}

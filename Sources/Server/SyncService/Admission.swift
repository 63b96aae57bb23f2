import Model

/// The places of one loop: for connections that are not logged in, and for TLS handshakes. When
/// they are all taken whoever has held one for longest, of the network that holds most of them,
/// gives way. So the newcomer always comes in, and who fills the places pays for it.
struct Admission {
    /// Connections of all kinds.
    private(set) var connectionsMax: Int
    /// TLS handshakes from a whole ClientHello on: each costs some 70 KiB.
    private(set) var handshakesMax: Int
    /// Of them of one address.
    private(set) var addressHandshakesMax: Int

    private var strangers = Holdings<PeerNetwork>()
    private var handshakes = Holdings<PeerNetwork>()
    private var handshakesOfHolders = Holdings<[UInt8]>()

    init(connectionsMax: Int, handshakesMax: Int, addressHandshakesMax: Int) {
        (self.connectionsMax, self.handshakesMax, self.addressHandshakesMax) = (1, 1, 1)
        change(
            connectionsMax: connectionsMax, handshakesMax: handshakesMax,
            addressHandshakesMax: addressHandshakesMax)
    }

    /// Whoever holds a place keeps it: fewer come in until they fit.
    mutating func change(connectionsMax: Int, handshakesMax: Int, addressHandshakesMax: Int) {
        self.connectionsMax = max(1, connectionsMax)
        self.handshakesMax = max(1, handshakesMax)
        self.addressHandshakesMax = max(1, addressHandshakesMax)
    }

    /// Places that sessions cannot take: without any nobody could be told that all are taken.
    var reserve: Int { max(1, min(64, connectionsMax / 8)) }

    var strangerCount: Int { strangers.count }
    var handshakeCount: Int { handshakes.count }

    /// A connection was accepted, beside so many sessions.
    ///
    /// - Returns: who has to go for it.
    mutating func admit(
        _ connection: UInt64, from origin: PeerOrigin, besides sessions: Int
    ) -> UInt64? {
        let full = strangers.count >= strangersMax(besides: sessions)
        let leaving = full ? strangers.oldestOfMost() : nil
        if let leaving { left(leaving) }
        strangers.hold(connection: connection, of: origin.network)
        return leaving
    }

    private func strangersMax(besides sessions: Int) -> Int {
        max(connectionsMax - sessions, reserve)
    }

    /// Whether places run short, so that newcomers get less time to use theirs.
    func isCrowded(besides sessions: Int) -> Bool {
        strangers.count > strangersMax(besides: sessions) / 2
    }

    /// A whole ClientHello came.
    ///
    /// - Returns: whose handshake ends for it.
    mutating func beginHandshake(_ connection: UInt64, from origin: PeerOrigin) -> UInt64? {
        var leaving: UInt64?
        if let holder = origin.holder,
            handshakesOfHolders.count(of: holder) >= addressHandshakesMax
        {
            leaving = handshakesOfHolders.oldest(of: holder)
        } else if handshakes.count >= handshakesMax {
            leaving = handshakes.oldestOfMost()
        }
        if let leaving { left(leaving) }
        handshakes.hold(connection: connection, of: origin.network)
        if let holder = origin.holder {
            handshakesOfHolders.hold(connection: connection, of: holder)
        }
        return leaving
    }

    mutating func endHandshake(_ connection: UInt64) {
        handshakes.release(connection)
        handshakesOfHolders.release(connection)
    }

    /// The connection is logged in, or is over.
    mutating func left(_ connection: UInt64) {
        endHandshake(connection)
        strangers.release(connection)
    }
}

import Wire

/// Where a defect puts what it lets through or makes up.
struct Relay {
    var toServer: [UInt8] = []
    var toClient: [UInt8] = []
    /// The client's connection stays when the server's ends.
    var outlivesServer = false

    mutating func server(_ frame: Frame) { toServer += frame.encoded }
    mutating func client(_ frame: Frame) { toClient += frame.encoded }
}

/// What one mutant does on one connection. Passes everything on; mutants override.
class Defect {
    let shared: Shared

    init(_ shared: Shared) { self.shared = shared }

    /// A whole frame from the client; `body` is `nil` if it is none of the protocol's.
    func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        relay.toServer += bytes
    }

    /// A whole frame from the server.
    func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        relay.toClient += bytes
    }

    /// Bytes of the client from a faulty header on.
    func faulty(_ bytes: [UInt8], _ relay: inout Relay) { relay.toServer += bytes }

    static func decoded(_ bytes: [UInt8]) -> Frame? {
        var decoder = FrameDecoder(limits: .afterWelcome)
        decoder.append(bytes)
        return (try? decoder.next()) ?? nil
    }
}

/// Changes the server's frames, one at a time.
final class Rewriting: Defect {
    /// Gives the frames to send instead; `nil`: it goes on as it came.
    private let rewrite: (Frame, Shared) -> [Frame]?

    init(_ shared: Shared, _ rewrite: @escaping (Frame, Shared) -> [Frame]?) {
        self.rewrite = rewrite
        super.init(shared)
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, let frames = rewrite(frame, shared) else {
            relay.toClient += bytes
            return
        }
        for frame in frames { relay.client(frame) }
    }
}

/// Changes the client's frames before the server sees them.
final class Pretending: Defect {
    private let pretend: (Frame, Shared, inout [UInt8]) -> Frame?
    /// Of the newest CHALLENGE.
    private var nonce: [UInt8] = []

    /// - Parameter pretend: the frame, and the nonce of this connection's CHALLENGE.
    init(_ shared: Shared, _ pretend: @escaping (Frame, Shared, inout [UInt8]) -> Frame?) {
        self.pretend = pretend
        super.init(shared)
    }

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, let changed = pretend(frame, shared, &nonce) else {
            relay.toServer += bytes
            return
        }
        relay.server(changed)
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .challenge(let challenge) = frame?.body { nonce = challenge.nonce }
        relay.toClient += bytes
    }
}

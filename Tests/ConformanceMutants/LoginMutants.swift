import Crypto
import Foundation
import Model
import Wire

extension Mutant {
    private static var later: Double { Date().timeIntervalSince1970 + 300 }

    static let loginMutants: [Mutant] = [
        Mutant(name: "no-supersede", what: "the older connection of a device lives on") {
            Immortal($0, code: .superseded)
        },
        close(
            "superseded-as-going-away", "a superseded connection is told 5000", .superseded,
            .goingAway),
        token("expired-accepted", "a token past its time lets in") { _, claims, _, shared in
            guard let expiry = claims["exp"] as? Double, expiry < later - 360 else { return nil }
            var changed = claims
            changed["exp"] = Int(later)
            return changed
        },
        token("audience-ignored", "a token for another app lets in") { token, claims, _, shared in
            guard shared.isSigned(token) else { return nil }
            var changed = claims
            changed["aud"] = "conform"
            return changed
        },
        token("signature-ignored", "a token that nobody signed lets in") {
            token, claims, _, shared in
            shared.isSigned(token) ? nil : claims
        },
        token("nonce-ignored", "a token over another nonce lets in") {
            token, claims, nonce, shared in
            guard shared.isSigned(token) else { return nil }
            var changed = claims
            changed["nonce"] = Base64URL.encode(nonce)
            return changed
        },
        Mutant(name: "same-nonce", what: "every CHALLENGE has the same nonce") {
            SameNonce($0)
        },
        says("challenge-always-first", "CHALLENGE never says that a token was revoked") {
            frame, _ in
            guard case .challenge(var challenge) = frame.body else { return nil }
            challenge.reason = .first
            return [Frame(.challenge(challenge), request: frame.request)]
        },
        Mutant(name: "token-of-any-device", what: "a session token is good on any device") {
            AnyDevice($0)
        },
        Mutant(name: "features-echoed", what: "WELCOME names every feature that was asked for") {
            Echoing($0)
        },
        hears("version-ignored", "any range of versions is taken for version 1") { frame, _, _ in
            guard case .hello(var hello) = frame.body else { return nil }
            hello.versionMin = 1
            hello.versionMax = 1
            return Frame(.hello(hello), request: frame.request)
        },
        Mutant(
            name: "error-instead-of-close",
            what: "a HELLO without what it must carry gets ERROR, and the connection stays"
        ) { Immortal($0, code: .missingField, isError: true) },
        close(
            "wrong-refusal-code", "the third refusal closes with 2003", .tokenInvalid, .nonceExpired
        ),
        close("logout-as-going-away", "a logout closes with 5000", .revoked, .goingAway),
        says("push-refusal-hidden", "nobody is told that a push topic is refused") { frame, _ in
            guard case .error(let error) = frame.body,
                error.code == Code.pushTokenRefused.rawValue
            else { return nil }
            return []
        },
    ]

    // MARK: - Frames

    static let frameMutants: [Mutant] = [
        close("too-large-as-malformed", "too large a body closes with 4000", .tooLarge, .malformed),
        close(
            "unknown-as-violation", "an unknown type closes with 5004", .unknownFrame,
            .protocolViolation),
        close("floods-as-limit", "floods are closed with 4006", .rateLimited, .limit),
        close("limit-as-too-large", "too many elements close with 4001", .limit, .tooLarge),
        says("pong-without-request", "PONG does not carry its PING's number") { frame, _ in
            guard case .pong = frame.body else { return nil }
            return [Frame(frame.body)]
        },
        says("welcome-without-request", "WELCOME does not carry HELLO's number") { frame, _ in
            guard case .welcome = frame.body else { return nil }
            return [Frame(frame.body)]
        },
        says("retry-class-wrong", "every ERROR and CLOSE may be tried again at once") { frame, _ in
            switch frame.body {
            case .error(var error):
                error.retry = .retry
                return [Frame(.error(error), request: frame.request)]
            case .close(var close):
                close.retry = .retry
                return [Frame(.close(close))]
            default: return nil
            }
        },
        says("more-after-close", "a PONG follows CLOSE") { frame, _ in
            guard case .close = frame.body else { return nil }
            return [frame, Frame(.pong(Pong()))]
        },
        Mutant(name: "reserved-byte-set", what: "the reserved byte of a DELTA is 1") {
            Marking($0)
        },
        Mutant(name: "ignorable-refused", what: "an unknown frame with IGNORABLE closes") {
            Strict($0)
        },
        Mutant(name: "header-faults-ignored", what: "a faulty header is waited out") {
            Deaf($0)
        },
    ]
}

/// Hides a CLOSE and keeps the client's connection.
final class Immortal: Defect {
    private let code: Code
    private let isError: Bool

    init(_ shared: Shared, code: Code, isError: Bool = false) {
        self.code = code
        self.isError = isError
        super.init(shared)
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard case .close(let close) = frame?.body, close.code == code.rawValue else {
            relay.toClient += bytes
            return
        }
        relay.outlivesServer = true
        if isError {
            relay.client(
                Frame(.error(ErrorFrame(code: close.code, name: code.name, retry: close.retry))))
        }
    }
}

/// Shows every client the same nonce, and takes tokens over it.
final class SameNonce: Defect {
    private static let shown = [UInt8](repeating: 0x5A, count: 32)
    private var nonce: [UInt8] = []

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, case .challenge(var challenge) = frame.body else {
            relay.toClient += bytes
            return
        }
        nonce = challenge.nonce
        challenge.nonce = Self.shown
        relay.client(Frame(.challenge(challenge), request: frame.request))
    }

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, case .authenticate(let body) = frame.body,
            shared.isSigned(body.identityToken),
            var claims = Shared.claims(of: body.identityToken),
            claims["nonce"] as? String == Base64URL.encode(Self.shown)
        else {
            relay.toServer += bytes
            return
        }
        claims["nonce"] = Base64URL.encode(nonce)
        let token = shared.signed(claims) ?? body.identityToken
        relay.server(
            Frame(.authenticate(Authenticate(identityToken: token)), request: frame.request))
    }
}

/// Lets a session token in under the device it was given to.
final class AnyDevice: Defect {
    private var device: [UInt8] = []

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, case .hello(var hello) = frame.body else {
            relay.toServer += bytes
            return
        }
        let owner = shared.state.withLock { $0.owners[hello.sessionToken] }
        if let owner, let id = DeviceID(owner) { hello.device = id }
        device = hello.device?.bytes ?? []
        relay.server(Frame(.hello(hello), request: frame.request))
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .welcome(let welcome) = frame?.body {
            shared.state.withLock { $0.owners[welcome.sessionToken] = device }
        }
        relay.toClient += bytes
    }
}

/// Agrees on every feature.
final class Echoing: Defect {
    private var features: [String] = []

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .hello(let hello) = frame?.body { features = hello.features }
        relay.toServer += bytes
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard let frame, case .welcome(var welcome) = frame.body else {
            relay.toClient += bytes
            return
        }
        welcome.features = features
        relay.client(Frame(.welcome(welcome), request: frame.request))
    }
}

/// Answers FETCH with what somebody else got.
final class Leaking: Defect {
    private var fetched: [UInt16: [UInt8]] = [:]

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if let frame, case .fetch(let fetch) = frame.body { fetched[frame.request] = fetch.object }
        relay.toServer += bytes
    }

    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .delta(let delta) = frame?.body {
            shared.state.withLock { state in
                for entry in delta.entries {
                    if case .message = entry.body { state.messages[entry.object] = entry }
                }
            }
        }
        guard let frame, case .error(let error) = frame.body,
            error.code == Code.notFound.rawValue, let object = fetched[frame.request],
            var entry = shared.state.withLock({ $0.messages[object] })
        else {
            relay.toClient += bytes
            return
        }
        entry.seq = 0
        relay.client(Frame(.page(PageFrame(entries: [entry])), request: frame.request))
    }
}

/// Has forgotten what it answered.
final class Forgetful: Defect {
    private var device: [UInt8] = []

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        if case .hello(let hello) = frame?.body { device = hello.device?.bytes ?? [] }
        if let frame, case .mutate(let mutation) = frame.body, mutation.number != 0 {
            let isNew = shared.state.withLock { state in
                state.numbers[device, default: []].insert(mutation.number).inserted
            }
            if !isNew {
                let result = MutationResult(
                    number: mutation.number, code: Code.conflict.rawValue)
                relay.client(Frame(.mutationResult(result), request: frame.request))
                return
            }
        }
        relay.toServer += bytes
    }
}

/// Sets the reserved byte of DELTAs.
final class Marking: Defect {
    override func fromServer(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        var bytes = bytes
        if case .delta = frame?.body { bytes[5] = 1 }
        relay.toClient += bytes
    }
}

/// Knows no IGNORABLE.
final class Strict: Defect {
    private var isClosed = false

    override func fromClient(_ bytes: [UInt8], _ frame: Frame?, _ relay: inout Relay) {
        guard !isClosed else { return }
        if frame == nil, FrameType(rawValue: bytes[3]) == nil {
            isClosed = true
            let code = Code.unknownFrame
            relay.client(Frame(.close(Close(code: code.rawValue, retry: code.retryClass))))
            relay.server(Frame(.close(Close(code: Code.goingAway.rawValue))))
            return
        }
        relay.toServer += bytes
    }
}

/// Drops what is no frame.
final class Deaf: Defect {
    override func faulty(_ bytes: [UInt8], _ relay: inout Relay) {}
}

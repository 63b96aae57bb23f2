import Feed
public import Model
public import Wire

// From HELLO to WELCOME (session.md).
extension Session {
    mutating func receivedHello(
        _ hello: Hello, request: UInt16, _ awaited: AwaitedHello, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        guard hello.versionMin <= 1, hello.versionMax >= 1 else {
            return close(.upgradeRequired, now: now, &actions)
        }
        guard !hello.app.isEmpty, hello.device != nil, hello.role != .unspecified else {
            return close(.missingField, now: now, &actions)
        }
        guard AppID(hello.app).isValid else { return close(.malformed, now: now, &actions) }
        guard (hello.sync?.mutations.count ?? 0) <= limits.mutationsUnanswered else {
            return close(.limit, now: now, &actions)
        }
        role = hello.role == .extension ? .extension : .app
        takesSnapshots = hello.features.contains(Self.snapshotFeature) && role == .app
        mayPush = hello.features.contains(Self.liveFeature) && role == .app
        if hello.features.contains(Self.signalFeature), role == .app {
            signals = SignalDesk(limits, now: now)
        }
        if role == .app { takePhase(hello.appState, now: now) }
        let opening = Opening(
            hello: hello, request: request, entropy: awaited.entropy, isChallenged: false)
        if hello.sessionToken.isEmpty {
            challenge(opening, .first, now: now, &actions)
        } else {
            let hash = configuration.sha256(hello.sessionToken)
            open(opening, .sessionToken(hash: hash), now: now, &actions)
        }
    }

    /// The feature by which a client asks to be sent DELTAs unasked (SES-4).
    public static var liveFeature: String { "live" }

    /// The feature by which a client takes part in signals (SES-4).
    public static var signalFeature: String { "signal" }

    private mutating func challenge(
        _ opening: Opening, _ reason: ChallengeReason, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        // Dropped unread: the client sends it again after WELCOME (SES-8).
        var hello = opening.hello
        hello.sync = nil
        hello.sessionToken = []
        phase = .challenged(
            Login(
                hello: hello, request: opening.request, entropy: opening.entropy,
                deadline: now + limits.loginDeadline))
        let body = Challenge(
            nonce: opening.entropy.nonce, lifetimeMs: UInt32(clamping: limits.loginDeadline),
            reason: reason)
        actions.append(.send(Frame(.challenge(body), request: opening.request)))
        actions.append(.log(.challenged(reason)))
    }

    mutating func receivedAuthenticate(
        _ body: Authenticate, now: Instant, _ actions: inout [SessionAction]
    ) {
        if phase == .open { return receivedReauthentication(body, now: now, &actions) }
        guard case .challenged(let login) = phase else {
            return close(.protocolViolation, now: now, &actions)
        }
        guard body.identityToken.utf8.count <= limits.identityTokenBytes else {
            return refuse(login, .tokenInvalid, now: now, &actions)
        }
        let tag = nextTag()
        phase = .verifying(login, tag)
        actions.append(
            .verify(tag, identityToken: body.identityToken, app: AppID(login.hello.app)))
    }

    /// The token's signature is good under one of the app's keys. `wall` is the store's clock.
    public mutating func identityVerified(
        _ tag: RequestTag, _ claims: IdentityClaims, now: Instant, wall: Timestamp
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        if phase == .open, reauthentication?.step == .verifying(tag) {
            reauthenticationVerified(claims, now: now, wall: wall, &actions)
            settle(now: now, &actions)
            return actions
        }
        guard case .verifying(let login, tag) = phase else { return [] }
        let refusal = check(
            claims, app: login.hello.app, nonce: login.entropy.nonce, expiresAt: login.deadline,
            now: now, wall: wall)
        if let refusal {
            refuse(login, refusal, now: now, &actions)
        } else {
            let opening = Opening(
                hello: login.hello, request: login.request, entropy: login.entropy,
                isChallenged: true)
            open(opening, .identity(UserID(claims.subject)), now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The token is not one of this app: 2001, or what the shell found.
    public mutating func identityRefused(
        _ tag: RequestTag, _ code: Code, now: Instant
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        if phase == .open, reauthentication?.step == .verifying(tag) {
            refuseReauthentication(code, now: now, &actions)
            settle(now: now, &actions)
            return actions
        }
        guard case .verifying(let login, tag) = phase else { return [] }
        refuse(login, code, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    /// SES-9 and SES-11; `nil`: good.
    func check(
        _ claims: IdentityClaims, app: String, nonce: [UInt8], expiresAt: Instant, now: Instant,
        wall: Timestamp
    ) -> Code? {
        guard claims.audience.containsExactly(app), !claims.issuer.isEmpty,
            UserID(claims.subject).isValid
        else { return .tokenInvalid }
        guard isEqualInConstantTime(Array(claims.nonce.utf8), base64URL(nonce)),
            now <= expiresAt
        else { return .nonceExpired }
        let seconds = Int64(clamping: wall.milliseconds / 1000)
        let skew = Int64(clamping: limits.clockSkew / 1000)
        // Saturating: the claims are any 64-bit numbers.
        let (expiry, isFar) = claims.expiresAt.addingReportingOverflow(skew)
        guard isFar || expiry > seconds else { return .expired }
        let latest = seconds.addingReportingOverflow(skew).partialValue
        for start in [claims.notBefore, claims.issuedAt] {
            if let start, start > latest { return .tokenInvalid }
        }
        return nil
    }

    private mutating func refuse(
        _ login: Login, _ code: Code, now: Instant, _ actions: inout [SessionAction]
    ) {
        var login = login
        login.refusals += 1
        actions.append(.log(.loginRefused(code)))
        guard login.refusals < limits.loginRefusals else {
            return close(.tokenInvalid, now: now, &actions)
        }
        phase = .challenged(login)
        sendError(code, request: 0, detail: "identity token refused", &actions)
    }

    private mutating func open(
        _ opening: Opening, _ credential: Credential, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        let hello = opening.hello
        guard let device = hello.device else { return close(.missingField, now: now, &actions) }
        phase = .opening(opening)
        let isApp = role == .app
        // One that is refused is answered after WELCOME; the login stands. So is one with more
        // read receipts than one write takes.
        let sync = hello.sync.flatMap {
            refusal(of: $0) == nil && $0.mode != .peek && $0.reads.count <= limits.readsPerWrite
                ? $0 : nil
        }
        let request = OpenSession(
            app: AppID(hello.app), device: device, role: role, credential: credential,
            newTokenHash: configuration.sha256(opening.entropy.sessionToken),
            freshEpochHalf: freshEpochHalf(),
            boot: configuration.boot,
            clientName: String(hello.clientName.prefix(limits.clientNameLength)),
            clientVersion: String(hello.clientVersion.prefix(limits.clientNameLength)),
            appState: isApp ? hello.appState : nil,
            dormantAfter: isApp ? dormantAfter(now: now) : 0,
            push: isApp ? hello.push : nil, wake: isApp ? hello.wake : nil,
            place: isApp
                ? DevicePlace(
                    locale: hello.locale, timeZone: hello.timeZone, utcOffset: hello.utcOffset)
                : nil,
            sync: sync, connectedAt: connectedAt.milliseconds)
        let abandon = AbandonSession(
            app: AppID(hello.app), device: device, role: role, boot: configuration.boot,
            connectedAt: connectedAt.milliseconds, expectedWithin: limits.returnTime)
        ask(.openSession(request), .open(abandon), &actions)
    }

    /// 63 bits: the store keeps epochs in signed columns.
    mutating func freshEpochHalf() -> UInt64 { random.next() >> 1 }

    /// The session row is committed.
    mutating func opened(
        _ answer: OpenedSession, now: Instant, wall: Timestamp, _ actions: inout [SessionAction]
    ) {
        key = answer.session
        guard case .opening(let opening) = phase else {
            // The socket was closed meanwhile.
            let end = EndSession(
                session: answer.session, applied: answer.sync.applied,
                expectedWithin: limits.returnTime)
            phase.closing?.end = end
            return
        }
        let (hello, request) = (opening.hello, opening.request)
        phase = .open
        tokenExpiresAt = now + answer.tokenLifetime
        lastFrameAt = now
        grantPings(now: now)
        mustLearnStanding = true
        actions.append(.enterHub(answer.session))
        actions.append(
            .send(
                Frame(
                    .welcome(
                        welcome(answer, token: opening.entropy.sessionToken, wall: wall)),
                    request: request)))
        actions.append(.raiseLimits(limits.afterWelcome))
        actions.append(
            .log(
                .opened(
                    answer.session,
                    clientName: String(hello.clientName.prefix(limits.clientNameLength)),
                    clientVersion: String(hello.clientVersion.prefix(limits.clientNameLength)),
                    wake: hello.wake)))
        if answer.isPushRefused {
            sendError(
                .pushTokenRefused, request: request, detail: "topic not configured", &actions)
        }
        takePosition(answer.sync)
        guard let sync = hello.sync else { return startLook(&actions) }
        if let refusal = refusal(of: sync) {
            sendError(refusal, request: request, detail: "sync refused", &actions)
            return startLook(&actions)
        }
        if sync.mode == .peek { return startPeek(sync, request: request, &actions) }
        if sync.reads.count > limits.readsPerWrite {
            return receivedSync(sync, request: request, now: now, &actions)
        }
        answerSync(sync, request: request, answer.sync, refused: [], now: now, &actions)
    }

    func welcome(_ answer: OpenedSession, token: [UInt8], wall: Timestamp) -> Welcome {
        Welcome(
            version: 1, sessionToken: token, sessionTokenLifetimeMs: answer.tokenLifetime,
            serverTimeMs: wall.milliseconds, epoch: answer.sync.epoch,
            mutationFloor: answer.sync.mutationFloor, keepaliveMs: UInt32(clamping: keepalive),
            limits: AdvertisedLimits(
                bodyBytes: UInt32(clamping: limits.afterWelcome.bodyBytes),
                windowBytes: UInt32(clamping: limits.windowBytes),
                windowDeltas: UInt32(clamping: limits.windowDeltas),
                mutationsUnanswered: UInt32(clamping: limits.mutationsUnanswered),
                messageBytes: UInt32(clamping: limits.messageBytes),
                participantsPerRequest: UInt32(clamping: limits.participantsPerRequest)),
            features: (mayPush ? [Self.liveFeature] : [])
                + (takesSnapshots ? [Self.snapshotFeature] : [])
                + (signals == nil ? [] : [Self.signalFeature]), node: configuration.node,
            pushTokenHeld: answer.isPushTokenHeld, user: answer.session.user.name)
    }

    /// A refused opening: another credential may do (SES-8), or the connection ends.
    mutating func openRefused(
        _ code: Code, now: Instant, _ actions: inout [SessionAction]
    ) {
        guard case .opening(let opening) = phase else { return }
        guard !opening.isChallenged else { return close(code, now: now, &actions) }
        switch code {
        case .expired: challenge(opening, .expired, now: now, &actions)
        case .tokenInvalid, .revoked, .deviceMismatch, .authRequired, .nonceExpired:
            challenge(opening, .revoked, now: now, &actions)
        default: close(code, now: now, &actions)
        }
    }
}

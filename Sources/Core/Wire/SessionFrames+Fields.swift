extension Hello {
    public static var empty: Hello { Hello() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "version_min", &versionMin)
        try visitor.uint32(2, "version_max", &versionMax)
        try visitor.string(3, "app", &app)
        try visitor.identifier(4, "device", &device)
        try visitor.enumeration(5, "role", &role)
        try visitor.string(6, "client_name", &clientName)
        try visitor.string(7, "client_version", &clientVersion)
        try visitor.strings(8, "features", &features)
        try visitor.bytes(9, "session_token", &sessionToken)
        try visitor.message(10, "app_state", &appState)
        try visitor.message(11, "push", &push)
        try visitor.message(12, "sync", &sync)
        try visitor.identifier(13, "wake", &wake)
        try visitor.string(14, "locale", &locale)
        try visitor.string(15, "time_zone", &timeZone)
        try visitor.uint32(16, "utc_offset", &utcOffset)
    }
}

extension PushRegistration {
    public static var empty: PushRegistration { PushRegistration() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "token", &token)
        try visitor.enumeration(2, "environment", &environment)
        try visitor.string(3, "topic", &topic)
    }
}

extension Challenge {
    public static var empty: Challenge { Challenge() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bytes(1, "nonce", &nonce)
        try visitor.uint32(2, "lifetime_ms", &lifetimeMs)
        try visitor.enumeration(3, "reason", &reason)
    }
}

extension Authenticate {
    public static var empty: Authenticate { Authenticate() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "identity_token", &identityToken)
    }
}

extension Welcome {
    public static var empty: Welcome { Welcome() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "version", &version)
        try visitor.bytes(2, "session_token", &sessionToken)
        try visitor.uint64(3, "session_token_lifetime_ms", &sessionTokenLifetimeMs)
        try visitor.uint64(4, "server_time_ms", &serverTimeMs)
        try visitor.identifier(5, "epoch", &epoch)
        try visitor.uint64(6, "mutation_floor", &mutationFloor)
        try visitor.uint32(7, "keepalive_ms", &keepaliveMs)
        try visitor.message(8, "limits", &limits)
        try visitor.strings(9, "features", &features)
        try visitor.string(10, "node", &node)
        try visitor.bool(11, "push_token_held", &pushTokenHeld)
        try visitor.string(12, "user", &user)
    }
}

extension AdvertisedLimits {
    public static var empty: AdvertisedLimits { AdvertisedLimits() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "body_bytes", &bodyBytes)
        try visitor.uint32(2, "window_bytes", &windowBytes)
        try visitor.uint32(3, "window_deltas", &windowDeltas)
        try visitor.uint32(4, "mutations_unanswered", &mutationsUnanswered)
        try visitor.uint32(5, "message_bytes", &messageBytes)
        try visitor.uint32(6, "participants_per_request", &participantsPerRequest)
    }
}

extension AppState {
    public static var empty: AppState { AppState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "phase", &phase)
        try visitor.uint32(2, "remaining_ms", &remainingMs)
        try visitor.enumeration(3, "notifications", &notifications)
        try visitor.enumeration(4, "background_refresh", &backgroundRefresh)
        try visitor.enumeration(5, "low_power", &lowPower)
    }
}

extension Ping {
    public static var empty: Ping { Ping() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "next_ms", &nextMs)
    }
}

extension Pong {
    public static var empty: Pong { Pong() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "next_ms", &nextMs)
    }
}

extension Drain {
    public static var empty: Drain { Drain() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "deadline_ms", &deadlineMs)
        try visitor.uint32(2, "slot_ms", &slotMs)
        try visitor.enumeration(3, "place", &place)
    }
}

extension ErrorFrame {
    public static var empty: ErrorFrame { ErrorFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "code", &code)
        try visitor.string(2, "name", &name)
        try visitor.enumeration(3, "retry", &retry)
        try visitor.uint32(4, "retry_after_ms", &retryAfterMs)
        try visitor.string(5, "detail", &detail)
    }
}

extension Close {
    public static var empty: Close { Close() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "code", &code)
        try visitor.enumeration(2, "retry", &retry)
        try visitor.uint64(3, "applied", &applied)
        try visitor.uint32(4, "retry_after_ms", &retryAfterMs)
    }
}

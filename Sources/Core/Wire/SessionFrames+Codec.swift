extension Hello {
    public static var empty: Hello { Hello() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &versionMin)
        case 2: try reader.uint32(tag, &versionMax)
        case 3: try reader.string(tag, &app)
        case 4: try reader.identifier(tag, &device)
        case 5: try reader.enumeration(tag, &role)
        case 6: try reader.string(tag, &clientName)
        case 7: try reader.string(tag, &clientVersion)
        case 8: try reader.strings(tag, &features)
        case 9: try reader.bytes(tag, &sessionToken)
        case 10: try reader.message(tag, &appState)
        case 11: try reader.message(tag, &push)
        case 12: try reader.message(tag, &sync)
        case 13: try reader.identifier(tag, &wake)
        case 14: try reader.string(tag, &locale)
        case 15: try reader.string(tag, &timeZone)
        case 16: try reader.uint32(tag, &utcOffset)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, versionMin)
        writer.uint32(2, versionMax)
        writer.string(3, app)
        writer.identifier(4, device)
        writer.enumeration(5, role)
        writer.string(6, clientName)
        writer.string(7, clientVersion)
        writer.strings(8, features)
        writer.bytes(9, sessionToken)
        writer.message(10, appState)
        writer.message(11, push)
        writer.message(12, sync)
        writer.identifier(13, wake)
        writer.string(14, locale)
        writer.string(15, timeZone)
        writer.uint32(16, utcOffset)
    }
}

extension PushRegistration {
    public static var empty: PushRegistration { PushRegistration() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.bytes(tag, &token)
        case 2: try reader.enumeration(tag, &environment)
        case 3: try reader.string(tag, &topic)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.bytes(1, token)
        writer.enumeration(2, environment)
        writer.string(3, topic)
    }
}

extension Challenge {
    public static var empty: Challenge { Challenge() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.bytes(tag, &nonce)
        case 2: try reader.uint32(tag, &lifetimeMs)
        case 3: try reader.enumeration(tag, &reason)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.bytes(1, nonce)
        writer.uint32(2, lifetimeMs)
        writer.enumeration(3, reason)
    }
}

extension Authenticate {
    public static var empty: Authenticate { Authenticate() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &identityToken)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, identityToken)
    }
}

extension Welcome {
    public static var empty: Welcome { Welcome() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &version)
        case 2: try reader.bytes(tag, &sessionToken)
        case 3: try reader.uint64(tag, &sessionTokenLifetimeMs)
        case 4: try reader.uint64(tag, &serverTimeMs)
        case 5: try reader.identifier(tag, &epoch)
        case 6: try reader.uint64(tag, &mutationFloor)
        case 7: try reader.uint32(tag, &keepaliveMs)
        case 8: try reader.message(tag, &limits)
        case 9: try reader.strings(tag, &features)
        case 10: try reader.string(tag, &node)
        case 11: try reader.bool(tag, &pushTokenHeld)
        case 12: try reader.string(tag, &user)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, version)
        writer.bytes(2, sessionToken)
        writer.uint64(3, sessionTokenLifetimeMs)
        writer.uint64(4, serverTimeMs)
        writer.identifier(5, epoch)
        writer.uint64(6, mutationFloor)
        writer.uint32(7, keepaliveMs)
        writer.message(8, limits)
        writer.strings(9, features)
        writer.string(10, node)
        writer.bool(11, pushTokenHeld)
        writer.string(12, user)
    }
}

extension AdvertisedLimits {
    public static var empty: AdvertisedLimits { AdvertisedLimits() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &bodyBytes)
        case 2: try reader.uint32(tag, &windowBytes)
        case 3: try reader.uint32(tag, &windowDeltas)
        case 4: try reader.uint32(tag, &mutationsUnanswered)
        case 5: try reader.uint32(tag, &messageBytes)
        case 6: try reader.uint32(tag, &participantsPerRequest)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, bodyBytes)
        writer.uint32(2, windowBytes)
        writer.uint32(3, windowDeltas)
        writer.uint32(4, mutationsUnanswered)
        writer.uint32(5, messageBytes)
        writer.uint32(6, participantsPerRequest)
    }
}

extension AppState {
    public static var empty: AppState { AppState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.enumeration(tag, &phase)
        case 2: try reader.uint32(tag, &remainingMs)
        case 3: try reader.enumeration(tag, &notifications)
        case 4: try reader.enumeration(tag, &backgroundRefresh)
        case 5: try reader.enumeration(tag, &lowPower)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.enumeration(1, phase)
        writer.uint32(2, remainingMs)
        writer.enumeration(3, notifications)
        writer.enumeration(4, backgroundRefresh)
        writer.enumeration(5, lowPower)
    }
}

extension Ping {
    public static var empty: Ping { Ping() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &nextMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, nextMs)
    }
}

extension Pong {
    public static var empty: Pong { Pong() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &nextMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, nextMs)
    }
}

extension Drain {
    public static var empty: Drain { Drain() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &deadlineMs)
        case 2: try reader.uint32(tag, &slotMs)
        case 3: try reader.enumeration(tag, &place)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, deadlineMs)
        writer.uint32(2, slotMs)
        writer.enumeration(3, place)
    }
}

extension ErrorFrame {
    public static var empty: ErrorFrame { ErrorFrame() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &code)
        case 2: try reader.string(tag, &name)
        case 3: try reader.enumeration(tag, &retry)
        case 4: try reader.uint32(tag, &retryAfterMs)
        case 5: try reader.string(tag, &detail)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, code)
        writer.string(2, name)
        writer.enumeration(3, retry)
        writer.uint32(4, retryAfterMs)
        writer.string(5, detail)
    }
}

extension Close {
    public static var empty: Close { Close() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &code)
        case 2: try reader.enumeration(tag, &retry)
        case 3: try reader.uint64(tag, &applied)
        case 4: try reader.uint32(tag, &retryAfterMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, code)
        writer.enumeration(2, retry)
        writer.uint64(3, applied)
        writer.uint32(4, retryAfterMs)
    }
}

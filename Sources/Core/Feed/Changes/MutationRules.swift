import Model
import Wire

extension Work {
    /// MUTATE outside a SYNC. One that met another's lock fails: whoever asks the store does so
    /// again, or refuses it for the time being.
    func mutate(_ request: Mutate) throws(RuleFailure) -> StoreAnswer {
        let session = request.session
        try require(session.role == .app, .forbidden, "an extension changes nothing")
        let result = try mutate(request.mutation, session, isAlone: true)
        let device = try record(DeviceRecord.self, session.deviceKey)
        return .mutated(result, floor: device?.mutationFloor ?? 0)
    }

    /// In order; ends early when the session was ended by one of them.
    func mutateAll(
        _ mutations: [Mutation], _ session: SessionKey
    ) throws(RuleFailure) -> [MutationResult] {
        var results: [MutationResult] = []
        var isBehind = false
        for mutation in mutations {
            do throws(RuleFailure) {
                let result = try mutate(mutation, session, isBehind: isBehind)
                isBehind = isBehind || result.code == Code.numberTaken.rawValue
                results.append(result)
            } catch {
                guard case .answer(.ended) = error, !results.isEmpty else { throw error }
                return results
            }
        }
        return results
    }

    /// One mutation with its result, in one step (MSG-10). A store that could not carry it out
    /// for the time being is a refusal for the time being; one that cannot go on at all fails
    /// the whole transaction.
    ///
    /// - Parameter isBehind: a number before it in the same request was another operation's: this
    ///   one gets a new number behind that one's, and must not overtake it.
    /// - Parameter isAlone: nothing of its request stands without it.
    private func mutate(
        _ mutation: Mutation, _ session: SessionKey, isBehind: Bool = false, isAlone: Bool = false
    ) throws(RuleFailure) -> MutationResult {
        do throws(RuleFailure) {
            return try step { () throws(RuleFailure) in
                try self.attempt(mutation, session, isBehind: isBehind)
            }
        } catch {
            let code: Code
            switch error {
            case .store(.conflict) where !isAlone: code = .storageBusy
            case .store(.corrupt): code = .internal
            case .store, .answer: throw error
            }
            return try step { () throws(RuleFailure) in
                try self.postpone(mutation, code, session)
            }
        }
    }

    /// SYN-33: not before the device is through its reset. Nothing of it is stored, for the
    /// device may come back with another number.
    func refusedForNow(_ mutation: Mutation) -> MutationResult {
        mutation.result(.unavailable, retryAfter: limits.retryAfter)
    }

    private func attempt(
        _ mutation: Mutation, _ session: SessionKey, isBehind: Bool
    ) throws(RuleFailure) -> MutationResult {
        _ = try current(session)
        guard let device = try record(DeviceRecord.self, session.deviceKey) else {
            throw try ended(session)
        }
        let number = mutation.number
        // Stored as a signed number.
        guard number > 0, number <= .max >> 1 else { return mutation.result(.malformed) }
        if number <= device.mutationFloor { return try earlierResult(mutation, session) }
        if isBehind { return mutation.result(.numberTaken) }
        if device.refusedMutation != 0, number > device.refusedMutation {
            return mutation.result(.unavailable, retryAfter: limits.retryAfter)
        }
        var code: Code?
        var effect = MutationEffect()
        do throws(RuleFailure) {
            effect = try savepoint { () throws(RuleFailure) in
                try self.carryOut(mutation, session)
            }
        } catch {
            guard case .answer(.refused(let refusal, _)) = error else { throw error }
            code = refusal
        }
        if let code, code.isTemporary { return try postpone(mutation, code, session) }
        return try take(mutation, code, effect, session, floor: device.mutationFloor)
    }

    private func carryOut(
        _ mutation: Mutation, _ session: SessionKey
    ) throws(RuleFailure) -> MutationEffect {
        switch mutation.operation?.change(by: session.user) {
        case .shared(let change):
            return MutationEffect(
                try carryOut(change, in: session.app, by: .user(session.user)))
        case .hideMessage(let message): try hideMessage(session.app, message, of: session.user)
        case .clearConversation(let conversation):
            try clearConversation(session.app, conversation, of: session.user)
        case .mute(let request): try mute(request, session, delay: mutation.delayMs)
        case .forgetDevice:
            var device = try lockDevice(session)
            try forget(&device)
        case nil: throw .refused(.missingField, "no operation this server knows")
        }
        return MutationEffect()
    }

    /// Takes the number and stores the result, final from now on.
    private func take(
        _ mutation: Mutation, _ code: Code?, _ effect: MutationEffect, _ session: SessionKey,
        floor: UInt64
    ) throws(RuleFailure) -> MutationResult {
        var device = try lockDevice(session)
        // Another connection of the device took a number since it was looked at.
        guard device.mutationFloor == floor else {
            throw .store(.conflict("mutation floor"))
        }
        // Nor was the session ended meanwhile, but by the operation itself.
        if mutation.operation?.endsSession != true { _ = try current(session) }
        device.mutationFloor = mutation.number
        if device.refusedMutation <= mutation.number { device.refusedMutation = 0 }
        device.mutationsTaken += 1
        try put(device)
        let stored = MutationRecord(
            app: session.app, user: session.user, device: session.device,
            number: mutation.number, code: UInt64(code?.rawValue ?? 0),
            object: effect.object ?? mutation.object, position: effect.position,
            expiresAt: now + limits.mutationLifetime,
            ordinal: device.mutationsTaken, operation: mutation.operationHash)
        try insert(stored)
        try dropOldResults(session, newest: device.mutationsTaken)
        return stored.result
    }

    /// Numbers may have gaps, so results are counted. One is added at a time: two are looked at.
    private func dropOldResults(_ session: SessionKey, newest: UInt64) throws(RuleFailure) {
        guard newest > limits.mutationResults else { return }
        let oldest = try records(MutationRecord.self, Scan(prefix: session.deviceKey, limit: 2))
        for stored in oldest where stored.ordinal <= newest - limits.mutationResults {
            try delete(MutationRecord.self, session.deviceKey + [.unsigned(stored.number)])
        }
    }

    /// The stored result, if the same operation took the number (MSG-10); if it is gone, 3013
    /// with the object's present state.
    private func earlierResult(
        _ mutation: Mutation, _ session: SessionKey
    ) throws(RuleFailure) -> MutationResult {
        let key = session.deviceKey + [.unsigned(mutation.number)]
        if let stored = try record(MutationRecord.self, key) {
            if let taken = stored.operation, taken != mutation.operationHash {
                return mutation.result(.numberTaken)
            }
            if now < stored.expiresAt { return stored.result }
        }
        var result = mutation.result(.resultGone)
        if case .sendMessage(let request) = mutation.operation, let id = request.message,
            let message = try record(MessageRecord.self, [.app(session.app), .identifier(id)]),
            UserID(message.sender) == session.user
        {
            result.position = message.position
        }
        return result
    }

    /// Refuses for the time being: later numbers wait until this one comes again, or the device
    /// opens a session, which sends everything unanswered again in order (MSG-11, MSG-14).
    private func postpone(
        _ mutation: Mutation, _ code: Code, _ session: SessionKey
    ) throws(RuleFailure) -> MutationResult {
        var device = try lockDevice(session)
        if device.refusedMutation == 0 || mutation.number < device.refusedMutation {
            device.refusedMutation = mutation.number
            try put(device)
        }
        return mutation.result(code, retryAfter: limits.retryAfter)
    }
}

/// What a mutation's result tells of what it did.
private struct MutationEffect {
    /// Of the message sent; else 0.
    var position: UInt64 = 0
    /// `nil`: the object that the mutation names.
    var object: [UInt8]?
}

extension MutationEffect {
    /// The conversation made may be another than the mutation names: one with the same members.
    fileprivate init(_ answer: StoreAnswer) {
        if case .conversation(let made) = answer { object = made.conversation.bytes }
        if case .published(let message) = answer { position = message.position }
    }
}

extension Code {
    /// 10xx: the same again may succeed.
    fileprivate var isTemporary: Bool { (1000..<2000).contains(rawValue) }
}

extension Mutation.Operation {
    fileprivate var endsSession: Bool {
        if case .forgetDevice = self { true } else { false }
    }
}

extension Mutation {
    fileprivate func result(_ code: Code, retryAfter: Milliseconds = 0) -> MutationResult {
        MutationResult(
            number: number, code: code.rawValue, retry: code.retryClass,
            retryAfterMs: UInt32(clamping: retryAfter), object: object)
    }
}

extension MutationRecord {
    fileprivate var result: MutationResult {
        let code = UInt32(clamping: code)
        return MutationResult(
            number: number, code: code, retry: Code(rawValue: code)?.retryClass ?? .none,
            object: object, position: position)
    }
}

extension Mutation {
    /// Tells operations apart that came under one number: FNV-1a (64 bits) over the operation as
    /// this server writes it, then the finalizer of SplitMix64, of 63 bits. A device compares
    /// with itself only: nobody gains by a collision.
    fileprivate var operationHash: UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in Mutation(number: 0, operation: operation).encoded {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return (hash ^ (hash >> 31)) & .halfMask
    }
}

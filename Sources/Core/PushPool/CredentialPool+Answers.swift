import Feed
import Model
import Wake

/// What APNs' answers mean for a credential.
extension CredentialPool {
    mutating func answered(
        _ tag: UInt64, _ response: PushResponse, _ lane: Int, _ place: Int,
        _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        let id = lanes[lane].connections[place].id
        guard
            let answered = lanes[lane].connections[place].answered(
                tag, status: response.status, &turn)
        else { return }
        for push in answered.lost { unanswered(push, id, &turn) }
        lanes[lane].cameForward(id)
        lanes[lane].lastFailure = ""
        let age = lanes[lane].connections[place].age(turn.now)
        // It says nothing of the connections of other classes, which may fail meanwhile.
        if lanes[lane].redial.failures > 0, age >= turn.configuration.soundAge {
            lanes[lane].redial.worked()
        }
        var push = answered.push
        let answer = PushAnswer(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            kind: push.job.kind, retryAfter: response.retryAfter)
        turn.tell(
            self.place(push.job.lane),
            .push(push, .answered(response, answer, isLate: answered.isLate)))
        topics.cameBack(push.job.request.topic)
        noteToken(push, response, &turn, &tokens)
        if push.job.lane == .campaign { push.answeredID = response.id }
        settle(push, response, answer, &turn)
        act(on: answer, to: push, response, id, &turn, &tokens)
    }

    /// What an answer says of the provider token and of the time.
    private func noteToken(
        _ push: HeldPush, _ response: PushResponse, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) {
        guard let provider else { return }
        // 403 is about the token, 429 may be.
        if response.status != 403, response.status != 429 {
            tokens.believed(provider, sent: push.providerToken)
        }
        guard let date = response.date,
            let ahead = tokens.heard(provider, seconds: date, turn.moment)
        else { return }
        turn.tell(.clockWrong(minutesAhead: ahead / 60), of: self)
    }

    // MARK: - What is written down

    /// Writes an answer down: that a token is wrong only once it is clear that it is not the
    /// credential.
    private mutating func settle(
        _ push: HeldPush, _ response: PushResponse, _ answer: PushAnswer, _ turn: inout PushTurn
    ) {
        let reply = PushReply.answered(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            retryAfter: response.retryAfter)
        let isProven = push.job.lane != .probe
        // 410 comes with a time, and means the one token.
        let isRefusal = answer == .deadToken(since: nil) && response.status == 400
        let token = push.job.request.token
        if isProven, isRefusal {
            let judgement = breaker.judge(token)
            guard judgement == .none else {
                return turn.finish(push, reply, keepsToken: judgement == .known)
            }
        }
        if isProven, answer == .accepted || isRefusal || response.status == 410,
            breaker.answered(token, isRefusal: isRefusal, now: turn.now)
        {
            turn.tell(.breakerTripped(reason: response.reason), of: self)
        }
        guard isRefusal else {
            turn.finish(push, reply)
            if isProven, answer == .accepted,
                let cleared = verdicts.taken(push.job.request.topic)
            {
                judge([cleared], &turn)
            }
            return
        }
        if breaker.isTripped {
            turn.finish(push, reply, keepsToken: true)
            judge(verdicts.takeAll(), &turn)
            refused(response.reason, &turn)
        } else if isProven, turn.configuration.verdictDelay > 0, !isRetired {
            verdicts.add(push, reply, now: turn.now)
        } else {
            turn.finish(push, reply)
        }
    }

    func judge(_ ready: [Verdicts.Verdict], _ turn: inout PushTurn) {
        for verdict in ready {
            turn.finish(verdict.push, verdict.reply, keepsToken: breaker.isTripped)
        }
    }

    // MARK: - What is done

    private mutating func act(
        on answer: PushAnswer, to push: HeldPush, _ response: PushResponse,
        _ connection: ConnectionID, _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        let reason = response.reason
        switch answer {
        case .accepted:
            trusted()
            takenTopic(push, &turn)
            guard breaker.isTripped else { return }
            turn.tell(.breakerReset, of: self)
            breaker.reset()
        case .deadToken: takenTopic(push, &turn)
        case .ourBug: break
        case .pauseCredential:
            let isOfToken = reason == "InvalidProviderToken"
            refused(reason, token: isOfToken ? push.providerToken : nil, &turn)
        case .pauseTopic: refusedTopic(push.job.request.topic, reason, &turn)
        case .retryLater(let after, let step):
            switch step {
            case .none: break
            case .reconnect:
                // An idle connection that APNs has had enough of takes nothing more.
                replace(
                    connection, reason: reason, works: reason != "IdleTimeout", &turn, &tokens)
            case .reconnectNow:
                replace(connection, reason: reason, isUrgent: true, &turn, &tokens)
            case .keepToken:
                guard let provider else { return refused(reason, &turn) }
                turn.resting.append((provider, after, reason))
            case .renewToken:
                // APNs may go on refusing on the connection that carried the expired one.
                if renewToken(sent: push.providerToken, reason, &turn, &tokens) {
                    replace(connection, reason: reason, isUrgent: true, &turn, &tokens)
                }
            }
        }
    }

    private mutating func takenTopic(_ push: HeldPush, _ turn: inout PushTurn) {
        guard topics.taken(push.job.request.topic) else { return }
        turn.tell(.topicResumed(push.job.request.topic), of: self)
    }

    /// - Returns: whether pushes may go on, on another connection.
    private mutating func renewToken(
        sent token: String?, _ reason: String, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) -> Bool {
        guard let provider else {
            refused(reason, &turn)
            return false
        }
        switch tokens.expired(provider, sent: token, turn.moment) {
        case .goOn: return true
        case .rest(let wait):
            turn.tell(.tokenRefusedYoung, of: self)
            turn.resting.append((provider, wait, reason))
            return false
        }
    }

    // MARK: - GOAWAY

    /// The reasons of a GOAWAY are those of answers, and mean the same for the credential. For a
    /// push they mean nothing: it is not told which one is meant, so no token is dropped.
    mutating func act(
        onGoAway reason: String, _ connection: PushConnection, _ turn: inout PushTurn,
        _ tokens: inout ProviderTokens
    ) {
        switch PushAnswer(goAway: reason) {
        case .accepted, .deadToken, .ourBug: break
        case .pauseCredential:
            let isOfToken = reason == "InvalidProviderToken"
            refused(reason, token: isOfToken ? connection.lastToken : nil, &turn)
        case .pauseTopic:
            // Where pushes of several are open, it is not told which one is meant.
            if let topic = connection.onlyTopic { refusedTopic(topic, reason, &turn) }
        case .retryLater(let after, let step):
            switch step {
            case .none, .reconnect, .reconnectNow: break  // It goes in any case.
            case .keepToken:
                guard let provider else { return refused(reason, &turn) }
                turn.resting.append((provider, after, reason))
            case .renewToken: _ = renewToken(sent: connection.lastToken, reason, &turn, &tokens)
            }
        }
    }
}

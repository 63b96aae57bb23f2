import EventLoop
import Feed
import Model
import PushPool
import Telemetry
import Wake

/// Writes what the pool reports into the log and the metrics.
struct GatewayJournal {
    let log: Log
    let metrics: GatewayMetrics

    /// - Parameters:
    ///   - now: by the loop's clock.
    ///   - wall: milliseconds since 1970.
    func note(_ report: PushReport, at place: PushPlace, now: Instant, wall: UInt64) {
        switch report {
        case .credential(let report): note(report, Self.fields(place))
        case .connection(let number, let report):
            let fields = Self.fields(place) + [LogField("connection", number)]
            note(report, fields, at: place)
        case .push(let push, let news):
            note(news, of: push, at: place, now: now, wall: wall)
        }
    }

    private func note(_ report: CredentialReport, _ fields: [LogField]) {
        switch report {
        case .changed(let isRemoved):
            log.info("push.credential_changed", fields + [LogField("removed", isRemoved)])
        case .paused(let reason, let pause):
            let seconds = pause.map { "\($0 / 1000)" } ?? "until changed"
            log.error(
                "push.paused", fields + [LogField("reason", reason), LogField("seconds", seconds)])
        case .resumed: log.info("push.resumed", fields)
        case .topicPaused(let topic, let reason, let pause):
            log.error(
                "push.topic_paused",
                fields + [
                    LogField("topic", topic), LogField("reason", reason),
                    LogField("seconds", pause / 1000),
                ])
        case .topicResumed(let topic):
            log.info("push.topic_resumed", fields + [LogField("topic", topic)])
        case .breakerTripped(let reason):
            metrics.breakerTrips.add()
            log.error(
                "push.breaker_tripped",
                fields + [
                    LogField("reason", reason),
                    LogField(
                        "hint",
                        "tokens that APNs accepted before are called wrong all at once: is the "
                            + "credential's environment, topic or host another one now? No "
                            + "token is dropped"),
                ])
        case .breakerReset: log.info("push.breaker_reset", fields)
        case .tokenRefusedYoung:
            log.error(
                "push.token_refused_young",
                fields + [LogField("hint", "is this host's clock right?")])
        case .clockWrong(let ahead):
            log.error(
                "push.clock_wrong",
                fields + [
                    LogField("minutes_ahead", ahead),
                    LogField(
                        "hint", "set this host's clock; provider tokens go by APNs' meanwhile"),
                ])
        case .connectionAdded(let count):
            log.info("push.connection_added", fields + [LogField("connections", count)])
        }
    }

    private func note(
        _ report: ConnectionReport, _ fields: [LogField], at place: PushPlace
    ) {
        switch report {
        case .connected:
            metrics.connections["connected"].add()
            log.info("push.connected", fields + [LogField("port", place.port)])
        case .replaced(let reason):
            log.info("push.connection_replaced", fields + [LogField("reason", reason)])
        case .goAway(let reason, let code, let open):
            metrics.goAways[PushResponse.label(reason)].add()
            log.warning(
                "push.goaway",
                fields + [
                    LogField("reason", reason), LogField("code", code), LogField("open", open),
                ])
        case .refused(let streams, let wait):
            metrics.streamsRefused[place.lane?.name ?? "none"].add(UInt64(streams))
            guard let wait else { return }
            log.warning(
                "push.streams_refused",
                fields + [LogField("streams", streams), LogField("retry_ms", wait)])
        case .notMade(let loss, let retry):
            log.error("push.connect_failed", fields + end(loss, retry: retry))
        case .lost(let loss, let hasAnswered, let retry):
            let told = fields + end(loss, retry: retry)
            hasAnswered
                ? log.warning("push.connection_lost", told)
                : log.error("push.connection_lost", told)
        case .left(let loss): log.warning("push.connection_lost", fields + end(loss, retry: nil))
        }
    }

    private func end(_ loss: ConnectionLoss, retry: Milliseconds?) -> [LogField] {
        metrics.connections[loss.label].add()
        return [LogField("end", loss.label), LogField("error", loss.explanation)]
            + (retry.map { [LogField("retry_ms", $0)] } ?? [])
    }

    private func note(
        _ news: PushNews, of push: HeldPush, at place: PushPlace, now: Instant, wall: UInt64
    ) {
        let id = push.job.request.id
        switch news {
        case .answered(let response, let answer, let isLate):
            count(push, status: "\(response.status)", PushResponse.label(response.reason))
            metrics.answerSeconds.observe(milliseconds: now.since(push.claimedAt))
            if answer == .accepted { metrics.told(push.job, wall: wall) }
            if isLate {
                log.info("push.late_answer", Self.fields(place) + [LogField("push", id)])
            }
            note(response, to: push, answer, at: place)
        case .unanswered(let connection):
            count(push, status: "unanswered")
            log.info(
                "push.unanswered",
                Self.fields(place) + [LogField("push", id), LogField("connection", connection)]
                    + Self.trace(push))
        case .unsent: count(push, status: "unsent")
        case .impossible(let text):
            count(push, status: "none")
            log.error("push.impossible", Self.fields(place) + [LogField("error", text)])
        }
    }

    private func note(
        _ response: PushResponse, to push: HeldPush, _ answer: PushAnswer, at place: PushPlace
    ) {
        // Most pushes are taken, which the log leaves out.
        var fields: [LogField] {
            Self.fields(place) + [
                LogField("kind", "\(push.job.kind)"), LogField("push", push.job.request.id),
                LogField("device", push.job.key.device), LogField("status", response.status),
                LogField("reason", response.reason),
            ] + Self.trace(push)
        }
        switch answer {
        case .accepted: log.debug("push.accepted", fields)
        case .deadToken, .retryLater: log.info("push.refused", fields)
        case .pauseCredential, .pauseTopic: log.warning("push.refused", fields)
        case .ourBug: log.error("push.wrong", fields)
        }
    }

    private func count(_ push: HeldPush, status: String, _ reason: String = "none") {
        metrics.pushes[push.job.lane.name, status, reason].add()
    }

    private static func trace(_ push: HeldPush) -> [LogField] {
        push.job.trace.map { [LogField("trace", $0.id)] } ?? []
    }

    private static func fields(_ place: PushPlace) -> [LogField] {
        var fields = [
            LogField("app", place.credential.app.name),
            LogField("environment", "\(place.credential.environment)"),
            LogField("credential", place.credential.name),
        ]
        if let lane = place.lane { fields.append(LogField("class", lane.name)) }
        fields.append(LogField("host", place.host))
        return fields
    }
}

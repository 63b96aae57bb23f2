import Feed
import Model
import SyncServer
import Telemetry
import Wire

// What becomes a line of the log, and a count.
extension SyncLoop {
    func log(_ event: SessionEvent, connection: UInt64) {
        let place = LogField("connection", "\(index)-\(connection)")
        switch event {
        case .challenged(let reason):
            metrics.logins["challenged"].add()
            log.limited(
                .debug, "session.challenged", [place, LogField("reason", "\(reason)")])
        case .loginRefused(let code):
            metrics.logins["refused"].add()
            log.limited(
                .info, "session.login_refused", [place, LogField("code", code.rawValue)])
        case .opened(let key, let clientName, let clientVersion, let wake):
            metrics.logins["opened"].add()
            log.info(
                "session.opened",
                [
                    place, LogField("app", key.app.name), LogField("user", key.user.name),
                    LogField("device", key.device), LogField("generation", key.generation),
                    LogField("client", "\(clientName) \(clientVersion)"),
                    LogField("wake", wake?.description ?? ""),
                ])
        case .reauthenticated:
            metrics.logins["reauthenticated"].add()
            log.info("session.reauthenticated", [place])
        case .poisonPage(let key, let after):
            metrics.poisonPages.add()
            log.warning(
                "poison_page",
                [
                    place, LogField("app", key.app.name), LogField("user", key.user.name),
                    LogField("device", key.device), LogField("after", after),
                ])
        case .suspected: log.info("session.suspected", [place])
        case .trusted: log.info("session.trusted", [place])
        case .refused(let type, let code):
            log.limited(
                .info, "request.refused",
                [place, LogField("frame", "\(type)"), LogField("code", code.rawValue)])
        case .storeFailed(let error):
            // Each session tries again every second.
            log.limited(
                .warning, "session.store_failed", [place, LogField("error", "\(error)")])
        case .digestCompared(let own, let clients):
            compared(own, clients, place)
        case .closedByPeer(let code):
            log.limited(.debug, "session.closed_by_peer", [place, LogField("code", code)])
        }
    }

    /// A message of a trace has come so far.
    func log(
        _ step: DeliveryWatch.Step, of trace: TraceContext, _ waited: Milliseconds,
        _ key: SessionKey?, connection: UInt64
    ) {
        log.debug(
            step.rawValue,
            [
                LogField("connection", "\(index)-\(connection)"),
                LogField("app", key?.app.name ?? ""), LogField("user", key?.user.name ?? ""),
                LogField("device", key?.device.description ?? ""),
                LogField("trace", trace.id), LogField("ms", waited),
            ])
    }

    /// HIS-35. The counts are in the line, for two empty replicas are equal and prove nothing.
    private func compared(_ own: DigestCounts, _ clients: DigestCounts, _ place: LogField) {
        metrics.digests[own == clients ? "equal" : "mismatch"].add()
        metrics.digestObjects.add(own.conversations + own.readMarks + own.messages)
        let fields = [
            place, LogField("conversations", own.conversations),
            LogField("read_marks", own.readMarks), LogField("messages", own.messages),
            LogField("client_conversations", clients.conversations),
            LogField("client_read_marks", clients.readMarks),
            LogField("client_messages", clients.messages),
        ]
        if own == clients {
            log.debug("digest.equal", fields)
        } else {
            log.warning("digest.mismatch", fields)
        }
    }
}

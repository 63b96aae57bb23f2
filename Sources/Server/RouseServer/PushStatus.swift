import BackendAPI
import Feed
import Model
import PushPool
import Wake

extension PushStatus {
    /// What the gateway knows, in the words of the admin API.
    init(_ status: PushCredentialStatus) {
        let pause = status.pausedFor.map { min($0, 86_400_000_000) }
        let isUnusable = pause == 86_400_000_000
        let environment =
            switch status.credential.environment {
            case .production: "production"
            case .development: "development"
            }
        self.init(
            app: status.credential.app, environment: environment, name: status.credential.name,
            kind: status.isCertificate ? "certificate" : "key",
            state: status.state,
            reason: status.state == "unreachable" ? status.failure : status.pauseReason,
            pausedSeconds: isUnusable ? nil : pause.map { $0 / 1000 },
            failures: status.failures, lastGoaway: status.lastGoAway,
            topicsPaused: status.topics.map {
                Topic(name: $0.topic, reason: $0.reason, pausedSeconds: $0.pausedFor / 1000)
            },
            lanes: status.lanes.map {
                Lane(
                    name: $0.lane.name, connections: $0.connections, streamsOpen: $0.open,
                    streamsAllowed: $0.allowed, waiting: $0.waiting,
                    oldestStreamMs: $0.oldestStream,
                    state: $0.failure.isEmpty ? "sending" : "unreachable",
                    reason: $0.failure, failures: $0.failures,
                    retrySeconds: $0.nextTry.map { ($0 + 999) / 1000 })
            })
    }
}

extension Server {
    /// Tries push credentials out as `rouse push check` does.
    static func doctor(_ place: StorePlace) -> CredentialExamination {
        { app, environment, name in
            try CredentialCheck.run(
                place: place, app: app, environment: environment, name: name
            ).map { check in
                ExaminedCredential(
                    app: check.app, environment: check.environment, name: check.name,
                    isGood: check.isGood,
                    findings: check.findings.map {
                        .init(check: $0.check, isGood: $0.isGood, text: $0.text)
                    })
            }
        }
    }
}

extension PushCredentialStatus {
    fileprivate var state: String {
        if isTripped { return "tripped" }
        if pausedFor != nil { return "paused" }
        return failure.isEmpty ? "sending" : "unreachable"
    }

    /// Of the first class that has no connection to send on; each has its own.
    fileprivate var failure: String { lanes.lazy.map(\.failure).first { !$0.isEmpty } ?? "" }
}

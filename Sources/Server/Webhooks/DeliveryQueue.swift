import EventLoop
import Feed
import Model
import StoreService

/// The store as the sender sees it. Loop-confined; every question gets one answer, on a later
/// turn of the loop, or none when the loop ends first.
protocol DeliveryQueue: AnyObject {
    /// Another number after each change of what may be claimed; `nil`: that is not known.
    var changes: UInt64? { get }
    func claim(
        _ request: ClaimDeliveries,
        reply: @escaping (Result<ClaimedDeliveries, StoreError>) -> Void)
    func finish(
        _ request: FinishDelivery,
        reply: @escaping (Result<DeliveryEffect?, StoreError>) -> Void)
    func count(reply: @escaping (Result<WebhookBacklog, StoreError>) -> Void)
}

/// The queue behind `StoreService`.
final class StoreDeliveryQueue: DeliveryQueue {
    private var client: StoreClient?
    private var open: [UInt64: (StoreResult) -> Void] = [:]
    private let store: StoreService
    var changes: UInt64? { store.changes }

    init(_ store: StoreService, on loop: Loop) {
        self.store = store
        client = store.client(on: loop) { [unowned self] reply in
            self.open.removeValue(forKey: reply.ticket)?(reply.result)
        }
    }

    func claim(
        _ request: ClaimDeliveries,
        reply: @escaping (Result<ClaimedDeliveries, StoreError>) -> Void
    ) {
        ask(.claim(request)) { answer in
            reply(
                answer.map { answer in
                    guard case .deliveries(let claimed) = answer else {
                        preconditionFailure("a claim answered with \(answer)")
                    }
                    return claimed
                })
        }
    }

    func finish(
        _ request: FinishDelivery,
        reply: @escaping (Result<DeliveryEffect?, StoreError>) -> Void
    ) {
        ask(.finish(request)) { answer in
            reply(
                answer.map { answer in
                    guard case .deliveryFinished(let effect) = answer else {
                        preconditionFailure("a finish answered with \(answer)")
                    }
                    return effect
                })
        }
    }

    func count(reply: @escaping (Result<WebhookBacklog, StoreError>) -> Void) {
        guard let client else { return }
        open[client.read(.webhookBacklog)] = { result in
            switch result {
            case .read(.webhookBacklog(let backlog)): reply(.success(backlog))
            case .failed(let error): reply(.failure(error))
            case .read, .committed: preconditionFailure("a count answered with \(result)")
            }
        }
    }

    private func ask(
        _ request: WebhookRequest, _ reply: @escaping (Result<StoreAnswer, StoreError>) -> Void
    ) {
        guard let client else { return }
        open[client.commit(.webhooks(request))] = { result in
            switch result {
            case .committed(let outcome): reply(.success(outcome.answer))
            case .failed(let error): reply(.failure(error))
            case .read: preconditionFailure("a request answered with a reading")
            }
        }
    }
}

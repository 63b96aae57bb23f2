import EventLoop
public import Feed
public import Model
import StoreService

/// Where the gateway's pushes come from and go back to: the store, or whatever else a program
/// that has only the gateway keeps them in. Loop-confined; every question gets one answer, on a
/// later turn of the loop, or none when the loop ends first.
public protocol PushQueue: AnyObject {
    /// Another number after each change of what may be claimed; `nil`: that is not known.
    var changes: UInt64? { get }
    /// Takes pushes that are due, no more than `rooms` and `streams` say, at most one for each
    /// device at a time; each is the claimer's until its lease ends.
    func claim(
        _ request: ClaimPushes, reply: @escaping (Result<ClaimedPushes, StoreError>) -> Void)
    /// Writes down what came of one; ignored if its claim is not the newest any more.
    func finish(
        _ request: FinishPush, reply: @escaping (Result<Void, StoreError>) -> Void)
    /// Gives the provider token of a key: the one that is kept, or else the one it is brought,
    /// which is kept from then on for all who share the key. It may be answered at once.
    func keepProviderToken(
        _ request: KeepProviderToken,
        reply: @escaping (Result<KeptProviderToken, StoreError>) -> Void)
}

extension PushQueue {
    public var changes: UInt64? { nil }

    /// Keeps none: each start of the program makes one of its own.
    public func keepProviderToken(
        _ request: KeepProviderToken,
        reply: @escaping (Result<KeptProviderToken, StoreError>) -> Void
    ) {
        reply(.success(KeptProviderToken(token: request.token, age: 0)))
    }
}

/// The credentials in force.
struct CredentialSource: Sendable {
    /// Changes whenever one may have changed.
    var generation: @Sendable () -> UInt64
    var all: @Sendable () -> [PushCredentialRecord]
}

extension CredentialSource {
    init(_ apps: AppDirectory) {
        generation = { apps.generation }
        all = { apps.all.flatMap(\.pushCredentials) }
    }
}

/// The queue behind `StoreService`.
final class StorePushQueue: PushQueue {
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
        _ request: ClaimPushes, reply: @escaping (Result<ClaimedPushes, StoreError>) -> Void
    ) {
        ask(.claimPushes(request)) { result in
            switch result {
            case .committed(let outcome):
                guard case .pushes(let claimed) = outcome.answer else {
                    preconditionFailure("a claim answered with \(outcome.answer)")
                }
                reply(.success(claimed))
            case .failed(let error): reply(.failure(error))
            case .read: preconditionFailure("a claim answered with a reading")
            }
        }
    }

    func finish(
        _ request: FinishPush, reply: @escaping (Result<Void, StoreError>) -> Void
    ) {
        ask(.finishPush(request)) { result in
            switch result {
            case .committed: reply(.success(()))
            case .failed(let error): reply(.failure(error))
            case .read: preconditionFailure("a finish answered with a reading")
            }
        }
    }

    func keepProviderToken(
        _ request: KeepProviderToken,
        reply: @escaping (Result<KeptProviderToken, StoreError>) -> Void
    ) {
        ask(.keepProviderToken(request)) { result in
            switch result {
            case .committed(let outcome):
                guard case .providerToken(let kept) = outcome.answer else {
                    preconditionFailure("a provider token answered with something else")
                }
                reply(.success(kept))
            case .failed(let error): reply(.failure(error))
            case .read: preconditionFailure("a provider token answered with a reading")
            }
        }
    }

    private func ask(_ request: StoreRequest, _ reply: @escaping (StoreResult) -> Void) {
        guard let client else { return }
        open[client.commit(request)] = reply
    }
}

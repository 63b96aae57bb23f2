import Crypto
import Foundation
import Model
import Wire

/// A server with one defect.
struct Mutant: Sendable {
    let name: String
    /// The defect, in words.
    let what: String
    let make: @Sendable (Shared) -> Defect

    /// Changes what the server says.
    static func says(
        _ name: String, _ what: String, _ rewrite: @escaping @Sendable (Frame, Shared) -> [Frame]?
    ) -> Mutant {
        Mutant(name: name, what: what) { Rewriting($0, rewrite) }
    }

    /// Changes what the server hears.
    static func hears(
        _ name: String, _ what: String,
        _ pretend: @escaping @Sendable (Frame, Shared, inout [UInt8]) -> Frame?
    ) -> Mutant {
        Mutant(name: name, what: what) { Pretending($0, pretend) }
    }

    /// Changes DELTAs.
    static func delta(
        _ name: String, _ what: String, _ change: @escaping @Sendable (inout Delta) -> Void
    ) -> Mutant {
        says(name, what) { frame, _ in
            guard case .delta(var delta) = frame.body else { return nil }
            change(&delta)
            return [Frame(.delta(delta), request: frame.request, more: frame.more)]
        }
    }

    /// Changes the code of CLOSE.
    static func close(_ name: String, _ what: String, _ from: Code, _ to: Code) -> Mutant {
        says(name, what) { frame, _ in
            guard case .close(var close) = frame.body, close.code == from.rawValue else {
                return nil
            }
            close.code = to.rawValue
            close.retry = to.retryClass
            return [Frame(.close(close), request: frame.request)]
        }
    }

    /// Signs tokens anew whose claims it does not mind.
    static func token(
        _ name: String, _ what: String,
        _ forgive: @escaping @Sendable (String, [String: Any], [UInt8], Shared) -> [String: Any]?
    ) -> Mutant {
        hears(name, what) { frame, shared, nonce in
            guard case .authenticate(let body) = frame.body,
                let claims = Shared.claims(of: body.identityToken),
                let changed = forgive(body.identityToken, claims, nonce, shared),
                let token = shared.signed(changed)
            else { return nil }
            return Frame(.authenticate(Authenticate(identityToken: token)), request: frame.request)
        }
    }

    static let all =
        feedMutants + toldMutants + loginMutants + frameMutants + resultMutants + watchMutants

    private static func position(of entry: Entry) -> UInt64? {
        if case .message(let message) = entry.body { message.position } else { nil }
    }

    /// A page of the feed, not a peek.
    private static func isPage(_ delta: Delta) -> Bool {
        (delta.to?.seq ?? 0) > (delta.from?.seq ?? 0)
    }

    // MARK: - The feed

    private static let feedMutants: [Mutant] = [
        delta("wrong-order", "the entries of a page come backwards") { delta in
            if isPage(delta) { delta.entries.reverse() }
        },
        delta("lost-entry", "the second message of a conversation is missing from every page") {
            delta in
            if isPage(delta) { delta.entries.removeAll { position(of: $0) == 2 } }
        },
        delta("doubled-entry", "the second message of a conversation comes twice in a page") {
            delta in
            if isPage(delta), let entry = delta.entries.first(where: { position(of: $0) == 2 }) {
                delta.entries.append(entry)
            }
        },
        delta("positions-with-gaps", "positions after the first are one too high") { delta in
            for index in delta.entries.indices {
                guard case .message(var message) = delta.entries[index].body,
                    message.position > 1
                else { continue }
                message.position += 1
                delta.entries[index].body = .message(message)
            }
        },
        delta("peek-moves-the-cursor", "a peek says that the cursor is at the head") { delta in
            if !isPage(delta), !delta.entries.isEmpty { delta.to?.seq = delta.head }
        },
        delta("peek-oldest-first", "a peek gives the oldest of its entries first") { delta in
            if !isPage(delta) { delta.entries.reverse() }
        },
        delta("more-forgotten", "a page never says that there is more") { delta in
            delta.more = false
        },
        delta("to-is-the-head", "a page with more says that it goes up to the head") { delta in
            if delta.more { delta.to?.seq = delta.head }
        },
        delta("reset-forgotten", "a feed from its start does not say that it is one") { delta in
            delta.reset = nil
        },
        delta("reset-without-reason", "every reset is for want of a cursor") { delta in
            if delta.reset != nil { delta.reset?.reason = .noCursor }
        },
        delta("floor-too-low", "DELTA names a mutation floor one too low") { delta in
            if delta.mutationFloor > 0 { delta.mutationFloor -= 1 }
        },
        delta("unread-too-high", "one more is unread than there are") { delta in
            if delta.unread > 0 { delta.unread += 1 }
        },
        delta("large-untold", "nobody learns that a conversation has become large") { delta in
            for index in delta.entries.indices {
                guard case .conversationState(var state) = delta.entries[index].body else {
                    continue
                }
                state.participants = 0
                delta.entries[index].body = .conversationState(state)
            }
        },
        delta("results-left-out", "results of mutations inside a SYNC are left out") { delta in
            delta.results = []
        },
        delta("hints-forgotten", "what a backend said of a push stays behind") { delta in
            for index in delta.entries.indices {
                guard case .message(var message) = delta.entries[index].body else { continue }
                message.hints = nil
                delta.entries[index].body = .message(message)
            }
        },
        says("page-with-a-hole", "a PAGE lacks one of the positions it is complete for") {
            frame, _ in
            guard case .page(var page) = frame.body, page.entries.count > 2 else { return nil }
            page.entries.remove(at: 1)
            return [Frame(.page(page), request: frame.request)]
        },
        says("snapshot-loses-one", "a snapshot leaves its last conversation out") { frame, _ in
            guard case .snapshotPage(var page) = frame.body, page.continuation.isEmpty else {
                return nil
            }
            page.conversations = page.conversations.dropLast()
            return [Frame(.snapshotPage(page), request: frame.request)]
        },
        says("snapshot-without-number", "a snapshot ends without the number of the icon") {
            frame, _ in
            guard case .snapshotPage(var page) = frame.body else { return nil }
            page.unread = nil
            return [Frame(.snapshotPage(page), request: frame.request)]
        },
        says("digest-off", "the sum over messages is one too high") { frame, _ in
            guard case .digestResult(var result) = frame.body else { return nil }
            result.messages?.hash &+= 1
            return [Frame(.digestResult(result), request: frame.request)]
        },
        Mutant(name: "leaked-object", what: "FETCH gives messages that are out of reach") {
            Leaking($0)
        },
    ]

    // MARK: - Being told

    private static let toldMutants: [Mutant] = [
        says("sync-request-twice", "every SYNC_REQUEST comes twice") { frame, _ in
            guard case .syncRequest = frame.body else { return nil }
            return [frame, frame]
        },
        says("sync-request-without-kinds", "SYNC_REQUEST does not say what changed") { frame, _ in
            guard case .syncRequest(var asked) = frame.body else { return nil }
            asked.kinds = 0
            return [Frame(.syncRequest(asked))]
        },
        says("delta-unasked", "a DELTA follows SYNC_REQUEST, though nobody agreed on it") {
            frame, _ in
            guard case .syncRequest = frame.body else { return nil }
            return [frame, Frame(.delta(Delta()))]
        },
        says("ack-ahead-unnoticed", "an ACK above the head is not refused") { frame, _ in
            guard case .error(let error) = frame.body, error.code == Code.ackAhead.rawValue else {
                return nil
            }
            return []
        },
    ]

    // MARK: - Results

    private static let resultMutants: [Mutant] = [
        says("result-of-another-request", "a result carries the next request's number") {
            frame, _ in
            guard case .mutationResult = frame.body else { return nil }
            return [Frame(frame.body, request: frame.request &+ 1)]
        },
        Mutant(name: "result-not-repeated", what: "a repeated number gets another result") {
            Forgetful($0)
        },
        says("welcome-floor-too-low", "WELCOME names a mutation floor one too low") { frame, _ in
            guard case .welcome(var welcome) = frame.body, welcome.mutationFloor > 0 else {
                return nil
            }
            welcome.mutationFloor -= 1
            return [Frame(.welcome(welcome), request: frame.request)]
        },
        says("existence-told", "a conversation out of reach is refused as forbidden, not unknown") {
            frame, _ in
            guard case .mutationResult(var result) = frame.body,
                result.code == Code.notFound.rawValue
            else { return nil }
            result.code = Code.forbidden.rawValue
            return [Frame(.mutationResult(result), request: frame.request)]
        },
        says("number-taken-unnoticed", "an operation under a taken number is said to be done") {
            frame, _ in
            guard case .mutationResult(var result) = frame.body,
                result.code == Code.numberTaken.rawValue
            else { return nil }
            result.code = 0
            return [Frame(.mutationResult(result), request: frame.request)]
        },
        delta("epoch-unminded", "mutations of another epoch are said to be done") { delta in
            for index in delta.results.indices
            where delta.results[index].code == Code.unavailable.rawValue {
                delta.results[index].code = 0
            }
        },
        says("conflict-unnoticed", "a change based on an old version is said to be done") {
            frame, _ in
            guard case .mutationResult(var result) = frame.body,
                result.code == Code.versionConflict.rawValue
            else { return nil }
            result.code = 0
            return [Frame(.mutationResult(result), request: frame.request)]
        },
    ]
}

internal import EventLoop
internal import Model
internal import RouseClient
internal import SyncClient
internal import Wire

// What the client tells, for the log.
extension SyncDeviceApp {
    func noted(_ record: RouseRecord) {
        switch record {
        case .event(let event): reported(event)
        case .applied(let entries): applied(entries)
        case .results(let results): answered(results)
        case .left:
            if isOnline { tellOffline("asleep") }
            isOnline = false
        case .lost(let why): lastEnd = why
        case .storeFailed(let why): fail("store: \(why)")
        }
    }

    private func reported(_ event: ClientEvent) {
        switch event {
        case .opened:
            isOnline = true
            hooks.tell(SimulatorEvent(.online))
        case .synced(let cursor):
            var told = SimulatorEvent(.synced)
            told.applied = cursor.seq
            hooks.tell(told)
        case .closed(let code):
            isOnline = false
            tellOffline(lastEnd, code: code)
        case .syncRequested(let head):
            var told = SimulatorEvent(.syncRequest)
            told.head = head
            hooks.tell(told)
        case .delta(let entries, let more):
            var told = SimulatorEvent(.delta)
            told.entries = entries
            told.more = more
            hooks.tell(told)
        case .reset(let reason):
            var told = SimulatorEvent(.reset)
            told.reason = "\(reason)"
            hooks.tell(told)
        case .loginRefused(let code), .refused(let code, _):
            // A store that is away for a while is no fault of the server's: the client asks again.
            guard code != Code.unavailable.rawValue, code != Code.storageBusy.rawValue else {
                break
            }
            var told = SimulatorEvent(.failed)
            told.code = code
            told.text = "refused by the server"
            hooks.tell(told)
        case .otherUser(let user): fail("the identity token names \(user)")
        case .pushTokenRefused: fail("push token refused")
        case .upgradeRequired: fail("client too old")
        case .loggedOut:
            isOnline = false
            tellOffline("logged out")
        case .digest(let isComparable, let isEqual, let objects):
            compared(isComparable, isEqual, objects)
        case .unread, .parked, .storeFailed, .drained, .retrying, .snapshot, .fetched,
            .fetchFailed, .peeked, .signalled, .reauthenticated:
            break
        }
    }

    private func compared(_ isComparable: Bool, _ isEqual: Bool, _ objects: UInt64) {
        do {
            let held = try openStore().counts()
            var told = SimulatorEvent(.digest)
            told.digest = SimulatorEvent.DigestFacts(
                isComparable: isComparable, isEqual: isEqual, objects: objects,
                entries: held.entries, conversations: held.conversations, messages: held.messages)
            hooks.tell(told)
        } catch {
            fail("counting: \(error)")
        }
    }

    private func answered(_ results: [MutationResult]) {
        for result in results {
            var event = SimulatorEvent(.acknowledged)
            event.code = result.code
            event.message = MessageID(result.object).map { $0.description }
            event.position = result.position
            hooks.tell(event)
        }
    }

    private func applied(_ entries: [Entry]) {
        var messages: [SimulatorEvent.AppliedMessage] = []
        for entry in entries {
            guard let conversation = entry.conversation else { continue }
            switch entry.body {
            case .message(let message):
                let identifier = MessageID(entry.object)?.description ?? ""
                messages.append(
                    SimulatorEvent.AppliedMessage(
                        conversation: conversation.description, message: identifier,
                        position: message.position, seq: entry.seq, sender: message.sender,
                        alerted: entry.alerted))
            case .participant(let participant) where participant.user == configuration.user:
                var event = SimulatorEvent(.joined)
                event.conversation = conversation.description
                event.position = participant.joinedPosition
                hooks.tell(event)
            default: break
            }
        }
        if !messages.isEmpty {
            var event = SimulatorEvent(.applied)
            event.messages = messages
            hooks.tell(event)
        }
    }

    func tellOffline(_ why: String, code: UInt32? = nil) {
        var event = SimulatorEvent(.offline)
        event.code = code
        event.text = why
        hooks.tell(event)
    }

    private func fail(_ text: String) {
        var event = SimulatorEvent(.failed)
        event.text = text
        hooks.tell(event)
    }
}

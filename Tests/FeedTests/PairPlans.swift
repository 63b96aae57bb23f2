import Feed
import Model
import Wake
import Wire

// A request for each operation, about a given object and by a given user where that is asked for.
extension PairWorld {
    /// - Returns: `nil`: there is nothing it could be about now.
    func plan(_ operation: Operation, on thing: Thing? = nil, by party: Int? = nil) -> Plan? {
        switch operation {
        case .create, .add, .send, .remove, .leave, .edit, .delete, .hide, .end, .clear,
            .setMetadata, .mute, .unmute, .block, .unblock, .forget:
            mutation(operation, on: thing, by: party)
        case .open, .sync, .acknowledge, .read, .readAnnouncement, .changeState, .endSession,
            .abandon, .reauthenticate:
            told(operation, on: thing, by: party)
        case .backendCreate, .backendAdd, .publish, .publishAs, .backendRemove, .backendEdit,
            .backendDelete, .backendEnd, .backendMetadata, .announce, .takeBack, .schedule,
            .scheduleAnnouncement, .cancel, .backendMute, .backendUnmute, .backendBlock,
            .backendUnblock:
            published(operation, on: thing, by: party)
        case .deleteUser, .revoke, .challenge, .suspendUser, .resumeUser, .tagUser, .tagDevice,
            .removeDevice:
            administered(operation, on: thing, by: party)
        case .createWebhook, .changeWebhook, .removeWebhook, .rotateSecret, .endRotation,
            .undoRotation, .testWebhook, .createCampaign, .pauseCampaign, .resumeCampaign,
            .cancelCampaign,
            .putApp, .removeApp, .putIssuerKey, .removeIssuerKey, .putAPIKey, .removeAPIKey,
            .putCredential,
            .removeCredential, .suspendApp, .resumeApp:
            ofApp(operation, on: thing)
        case .continueFanOut, .continueDeletions, .coalesceReceipts, .enforceRetention, .start,
            .restore, .claimPushes, .finishPush, .keepProviderToken, .keepTicketKeys,
            .sweepWakes, .keepAlive, .beat, .order, .publishDue, .advanceCampaigns,
            .claimDeliveries, .finishDelivery:
            turn(operation)
        }
    }

    // MARK: what it is about

    /// The newest conversations in which the user takes part.
    func rooms(of who: Int, madeBy creator: Int? = nil) -> [ConversationID] {
        conversations.suffix(10).filter { id in
            guard let row = conversation(id), row.deletedAt == nil else { return false }
            if let creator, !row.creator.isExactly(Self.names[creator]) { return false }
            return present(id).contains(who)
        }
    }

    /// Messages that somebody may still change, of the user if one is named.
    func texts(in id: ConversationID, of author: Int? = nil) -> [MessageID] {
        messages.suffix(60).filter { text in
            guard place[text] == id, let row = message(text), row.deletedAt == nil else {
                return false
            }
            return author.map { row.sender.isExactly(Self.names[$0]) } ?? true
        }
    }

    /// A conversation that suits: of the message, or one where the user takes part. Now and then
    /// it is any: what is out of reach must be refused.
    func room(_ thing: Thing?, of who: Int?) -> ConversationID? {
        switch thing {
        case .conversation(let id): return id
        case .message(let id): if let known = place[id] { return known }
        default: break
        }
        if let who, chance.next() % 16 > 0, let id = pick(rooms(of: who)) { return id }
        return pick(conversations.suffix(8))
    }

    /// A message of the conversation; an author's own, where only that will do.
    func text(_ thing: Thing?, in id: ConversationID?, of author: Int? = nil) -> MessageID? {
        if case .message(let id) = thing { return id }
        guard let id else { return nil }
        // There may be none yet: then one is named that is not there.
        return pick(texts(in: id, of: author).suffix(3)) ?? pick(messages(in: id).suffix(3))
            ?? world.fresh()
    }

    func new(_ thing: Thing?) -> MessageID {
        if case .message(let id) = thing { return id }
        return world.fresh()
    }

    /// Who asks: the party, or the user it is about, or whoever could.
    func actor(_ operation: Operation, on thing: Thing?, by party: Int?) -> Int {
        if let party { return party }
        switch thing {
        case .user(let who):
            return operation.roles[.user] == .own ? who : anyone(but: who)
        case .device(let device): return owner[device] ?? 0
        case .conversation(let id): return pick(present(id)) ?? anyone()
        case .message(let id):
            return place[id].flatMap { pick(present($0)) } ?? anyone()
        default: return anyone()
        }
    }

    func content() -> [Part] {
        let number: MessageID = world.fresh()
        return [Part(mimeType: "text/plain", content: Array("text \(number.low)".utf8))]
    }

    func push() -> PushText? {
        chance.next() % 4 == 0 ? nil : PushText(title: "", body: "look")
    }

    func theme() -> MetadataChange {
        let number: MessageID = world.fresh()
        return MetadataChange(
            path: ["theme"], value: "\(number.low)", removed: chance.next() % 5 == 0)
    }
}

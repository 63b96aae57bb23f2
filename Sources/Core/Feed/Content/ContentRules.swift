import Model
import Wake
import Wire

// What may stand in a message, an announcement or a campaign.

extension Work {
    /// MSG-3.
    func checkContent(
        _ parts: [Part], _ push: PushText?, _ options: PushOptions = PushOptions()
    ) throws(RuleFailure) {
        try require(!parts.isEmpty, .missingField, "no parts")
        try require(parts.count <= limits.parts, .limit, "more than \(limits.parts) parts")
        var bytes = 0
        for part in parts {
            let type = part.mimeType.utf8
            try require(!type.isEmpty, .missingField, "a part without MIME type")
            guard type.count <= limits.mimeTypeBytes,
                type.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else {
                throw .refused(.malformed, "a part whose MIME type is not one")
            }
            bytes += type.count + part.content.count
            if let reference = part.reference {
                try checkReference(reference, of: part)
                bytes += reference.url.utf8.count + reference.digest.count
            }
        }
        guard bytes <= limits.messageBytes else {
            throw .refused(.tooLarge, "more than \(limits.messageBytes) bytes of parts")
        }
        try checkPush(push, options)
    }

    /// MSG-56. Most events are empty: no row is read for them.
    func checkKind(of options: PushOptions, in app: AppID) throws(RuleFailure) {
        guard !options.event.isEmpty,
            let kinds = try self.app(app)?.eventKinds,
            let refusal = kinds.refusal(of: options.event)
        else { return }
        throw .refused(.unknownKind, refusal)
    }

    private func checkPush(_ push: PushText?, _ options: PushOptions) throws(RuleFailure) {
        // No engine's text column is sure to hold a zero byte.
        try require(push?.hasZero != true, .malformed, "a push text with a zero byte")
        let text = (push?.title.utf8.count ?? 0) + (push?.body.utf8.count ?? 0)
        guard text <= limits.pushTextBytes else {
            throw .refused(.tooLarge, "more than \(limits.pushTextBytes) bytes of push text")
        }
        // It would never alert anybody.
        try require(
            options.urgency != .passive || options.timing.moment == nil, .malformed,
            "push.at, push.local: what is passive never alerts; leave the time out, or take "
                + "another urgency")
        try checkTiming(options.timing)
        if let (code, reason) = options.refusal(title: push?.title ?? "", body: push?.body ?? "") {
            throw .refused(code, reason)
        }
    }

    /// How far the publisher's clock may be behind: the message is worth more than its alert.
    private static let clockLeeway: Milliseconds = 60_000

    /// An alert whose end comes before it may leave would alert nobody. Looked at where something
    /// is asked for, and not again when its time has come: it may be late then.
    ///
    /// - Parameter sendAt: when it is to be published; `nil`: now.
    func checkEnd(of options: PushOptions, sendAt: Timestamp? = nil) throws(RuleFailure) {
        guard let end = options.timing.expires else { return }
        let reason: String? =
            if case .at(let time) = options.timing.moment, end <= time {
                "is not after push.at"
            } else if let sendAt, end <= sendAt {
                "is not after send_at"
            } else if end + Self.clockLeeway <= now {
                "has passed"
            } else {
                nil
            }
        guard let reason else { return }
        throw .refused(
            .malformed,
            "push.expires_at: \(reason): nobody would be alerted; leave push out for that")
    }

    /// A moment that has passed is no mistake: it is shown at once.
    private func checkTiming(_ timing: AlertTiming) throws(RuleFailure) {
        let latest = now + limits.scheduleHorizon
        let isNear =
            switch timing.moment {
            case nil: true
            case .at(let time): time <= latest
            case .local(let local): local.isDaily || local.wall <= latest.milliseconds
            }
        guard isNear else {
            let days = limits.scheduleHorizon / 86_400_000
            throw .refused(
                .malformed, "push.at, push.local: an alert more than \(days) days ahead")
        }
        if case .local(let local) = timing.moment {
            try require(
                local.zone.isEmpty || zones.offset(of: local.zone, at: now) != nil, .malformed,
                "push.zone: no such time zone; take a name of IANA's database, such as "
                    + "Europe/Vienna")
        }
        for end in [timing.expires?.milliseconds, timing.lifetime] {
            try require(end ?? 0 <= .max >> 2, .malformed, "no such time")
        }
    }

    /// MSG-23: the form only; nobody here fetches it.
    private func checkReference(
        _ reference: PartReference, of part: Part
    ) throws(RuleFailure) {
        try require(part.content.isEmpty, .malformed, "a part with content and a reference")
        guard !reference.url.isEmpty, reference.size > 0 else {
            throw .refused(.missingField, "a reference without url or size")
        }
        guard reference.url.utf8.count <= limits.referenceBytes else {
            throw .refused(.tooLarge, "a url of more than \(limits.referenceBytes) bytes")
        }
        guard reference.url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            reference.digest.count == 32
        else {
            throw .refused(.malformed, "a url or digest that is not one")
        }
    }
}

extension PushOptions {
    /// Why a push with this title and body cannot be sent; `nil`: it can.
    func refusal(title: String, body: String) -> (Code, String)? {
        switch problem(title: title, body: body) {
        case nil: nil
        case .malformed(let reason): (.malformed, reason)
        case .tooLarge(let reason):
            // Each of its texts may be as long as one can be, and all of them too much.
            encoded.count > Self.encodedBytesMax
                ? (
                    .tooLarge,
                    "push: more than \(Self.encodedBytesMax) bytes all together beside title and "
                        + "body: texts, keys with their arguments, data and names"
                ) : (.tooLarge, reason)
        }
    }
}

extension PushText {
    fileprivate var hasZero: Bool { title.utf8.contains(0) || body.utf8.contains(0) }
}

import Feed
import FoundationEssentials
import Model
import Wake
import Wire

/// `POST .../campaigns`.
struct NewCampaignBody: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case id, name, push, audience, start, rate, canary
        case localStart = "local_start"
        case stopPercent = "stop_percent"
        case expirationSeconds = "expiration_seconds"
        case dryRun = "dry_run"
    }

    let id: CampaignID?
    let name: String
    let push: NewPush
    let filter: CampaignFilter
    /// `nil`: at once.
    let start: Timestamp?
    let isLocal: Bool
    let rate: UInt64
    let canary: NewCanary?
    let stopPercent: UInt64
    let expiration: Milliseconds?
    let isDryRun: Bool

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        id = try fields.identifier(.id)
        name = try fields.text(.name, bytes: 0...128) ?? ""
        push = try fields.required(.push)
        filter = try fields.optional(.audience, NewAudience.self)?.filter ?? CampaignFilter()
        rate = try fields.number(.rate, in: 1...CampaignPlan.rateMax) ?? CampaignPlan.rateUsual
        canary = try fields.optional(.canary)
        stopPercent =
            try fields.number(.stopPercent, in: 0...100) ?? CampaignPlan.stopPercentUsual
        expiration = try fields.number(.expirationSeconds, in: 0...2_592_000).map { $0 * 1_000 }
        isDryRun = try fields.optional(.dryRun) ?? false
        let local = try fields.optional(.localStart, String.self)
        isLocal = local != nil
        if let local {
            guard let time = Timestamp(text: local + "Z") else {
                throw fields.refusal(
                    .localStart, "must be like 2026-12-01T09:00:00, as a clock on a wall shows it")
            }
            guard try fields.optional(.start, String.self) == nil else {
                throw fields.refusal(.localStart, "must not stand beside start")
            }
            start = time
        } else if let text = try fields.optional(.start, String.self) {
            guard let time = Timestamp(text: text) else {
                throw fields.refusal(.start, "must be RFC 3339 in UTC, like 2026-12-01T09:00:00Z")
            }
            start = time
        } else {
            start = nil
        }
    }

    func campaign(of app: AppID, at now: Timestamp) -> NewCampaign {
        var plan = CampaignPlan(startsAt: start ?? now, isLocal: isLocal, rate: rate)
        plan.canaryShare = canary?.share ?? 0
        plan.canaryWait = canary?.wait
        plan.stopPercent = stopPercent
        plan.expiration = expiration
        return NewCampaign(
            app: app, campaign: id ?? .fresh(at: now), name: name, title: push.text.title,
            body: push.text.body, options: push.options, filter: filter, plan: plan)
    }
}

struct NewCanary: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case share
        case waitSeconds = "wait_seconds"
    }

    let share: UInt64
    let wait: Milliseconds?

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        guard let share = try fields.number(.share, in: 1...CampaignPlan.shareWhole - 1) else {
            throw fields.missing(.share)
        }
        self.share = share
        wait = try fields.number(.waitSeconds, in: 1...2_592_000).map { $0 * 1_000 }
    }
}

private struct NewAudience: Decodable {
    enum Key: String, CodingKey, CaseIterable {
        case topics, clients, locales, tags, reachability
        case timeZones = "time_zones"
        case versionMin = "version_min"
        case versionMax = "version_max"
        case seenWithin = "seen_within_seconds"
        case unseenFor = "unseen_for_seconds"
        case anyTags = "any_tags"
        case noTags = "no_tags"
    }

    let filter: CampaignFilter
    /// Ten years.
    private static let secondsMax: UInt64 = 315_360_000

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        var filter = CampaignFilter()
        filter.topics = try Self.list(fields, .topics)
        filter.clients = try Self.list(fields, .clients)
        filter.locales = try Self.list(fields, .locales)
        filter.timeZones = try Self.list(fields, .timeZones)
        filter.versionMin = try Self.version(fields, .versionMin)
        filter.versionMax = try Self.version(fields, .versionMax)
        filter.seenWithin = try fields.number(.seenWithin, in: 1...Self.secondsMax)
            .map { $0 * 1_000 }
        filter.unseenFor = try fields.number(.unseenFor, in: 1...Self.secondsMax)
            .map { $0 * 1_000 }
        filter.tags = try Self.list(fields, .tags)
        filter.anyTags = try Self.list(fields, .anyTags)
        // Empty it leaves out nobody, which is what it says.
        filter.noTags = try Self.list(fields, .noTags, orEmpty: true)
        for name in try Self.list(fields, .reachability) {
            guard let state = ReachabilityState(rawValue: name) else {
                throw fields.refusal(
                    .reachability,
                    "must be of "
                        + ReachabilityState.allCases.map(\.rawValue).joined(separator: ", "))
            }
            filter.states.append(state)
        }
        self.filter = filter
    }

    /// Empty it would leave the filter out, and the campaign would go to every device.
    private static func version(_ fields: Fields<Key>, _ key: Key) throws -> String {
        guard let version: String = try fields.optional(key) else { return "" }
        guard !version.isEmpty else {
            throw fields.refusal(key, "must not be empty: leave it out to take every version")
        }
        return version
    }

    /// A list that was computed and came out empty means nobody to who made it; left out it is
    /// everybody. So that none becomes a broadcast, an empty one is refused.
    private static func list(
        _ fields: Fields<Key>, _ key: Key, orEmpty mayBeEmpty: Bool = false
    ) throws -> [String] {
        guard let list = try fields.optional(key, [String].self) else { return [] }
        guard list.count <= CampaignFilter.entriesMax else {
            throw fields.refusal(
                key, "must hold at most \(CampaignFilter.entriesMax) entries", .limit)
        }
        guard mayBeEmpty || !list.isEmpty else {
            throw fields.refusal(
                key, "must hold at least one entry: leave it out to take every device")
        }
        return list
    }
}

struct NewTagsBody: Decodable {
    enum Key: String, CodingKey, CaseIterable { case add, remove }

    let add: [String]
    let remove: [String]

    private static let most = 256

    init(from decoder: any Decoder) throws {
        let fields = try Fields<Key>(decoder)
        add = try fields.optional(.add) ?? []
        remove = try fields.optional(.remove) ?? []
        for (key, list) in [(Key.add, add), (.remove, remove)] where list.count > Self.most {
            throw fields.refusal(key, "must hold at most \(Self.most) tags", .limit)
        }
    }
}

// MARK: Answers

struct CampaignStateBody: Encodable {
    let id: String
    let state: String
}

struct TagsBody: Encodable {
    let tags: [String]
}

/// A campaign; without state and progress in the answer that made it, which is the same however
/// often it is given.
struct CampaignBody: Encodable {
    struct Push: Encodable {
        let title: String?
        let body: String?
        /// Languages that have a text of their own.
        let locales: [String]
    }

    struct Audience: Encodable {
        let topics: [String]?
        let clients: [String]?
        let locales: [String]?
        let timeZones: [String]?
        let versionMin: String?
        let versionMax: String?
        let seenWithinSeconds: UInt64?
        let unseenForSeconds: UInt64?
        let tags: [String]?
        let anyTags: [String]?
        let noTags: [String]?
        let reachability: [String]?

        init(_ filter: CampaignFilter) {
            func named(_ list: [String]) -> [String]? { list.isEmpty ? nil : list }
            topics = named(filter.topics)
            clients = named(filter.clients)
            locales = named(filter.locales)
            timeZones = named(filter.timeZones)
            versionMin = filter.versionMin.isEmpty ? nil : filter.versionMin
            versionMax = filter.versionMax.isEmpty ? nil : filter.versionMax
            seenWithinSeconds = filter.seenWithin.map { $0 / 1_000 }
            unseenForSeconds = filter.unseenFor.map { $0 / 1_000 }
            tags = named(filter.tags)
            anyTags = named(filter.anyTags)
            noTags = named(filter.noTags)
            reachability = named(filter.states.map(\.rawValue))
        }
    }

    struct Canary: Encodable {
        let share: UInt64
        let waitSeconds: UInt64?
    }

    let id: String
    let name: String
    let createdAt: String
    let start: String?
    let localStart: String?
    let rate: UInt64
    let canary: Canary?
    let stopPercent: UInt64
    let expirationSeconds: UInt64?
    let push: Push
    let audience: Audience
    let state: String?
    /// Why it is held, where the server did it.
    let reason: String?
    let since: String?
    let startedAt: String?
    let finishedAt: String?
    let continuesAt: String?
    let progress: CampaignProgressBody?

    init(_ view: CampaignView) {
        self.init(
            view.campaign, filter: view.filter, options: view.options, progress: view.progress)
    }

    init(
        _ record: CampaignRecord, filter: CampaignFilter, options: PushOptions,
        progress: CampaignProgressRecord? = nil
    ) {
        let plan = record.plan
        id = record.campaign.description
        name = record.name
        createdAt = record.createdAt.text
        start = plan.isLocal ? nil : plan.startsAt.text
        // As it was given: without a zone.
        localStart = plan.isLocal ? String(plan.startsAt.text.dropLast()) : nil
        rate = plan.rate
        canary =
            plan.canaryShare == 0
            ? nil
            : Canary(share: plan.canaryShare, waitSeconds: plan.canaryWait.map { $0 / 1_000 })
        stopPercent = plan.stopPercent
        expirationSeconds = plan.expiration.map { $0 / 1_000 }
        push = Push(
            title: record.pushTitle.isEmpty ? nil : record.pushTitle,
            body: record.pushBody.isEmpty ? nil : record.pushBody,
            locales: options.texts.map(\.locale))
        audience = Audience(filter)
        state = progress?.state.rawValue
        reason = progress.flatMap { $0.reason.isEmpty ? nil : $0.reason }
        since = progress?.since.text
        startedAt = progress?.startedAt?.text
        finishedAt = progress?.finishedAt?.text
        continuesAt = progress.flatMap { $0.hold == .none ? $0.reviewUntil?.text : nil }
        self.progress = progress.map { CampaignProgressBody($0) }
    }
}

struct CampaignProgressBody: Encodable {
    struct Canary: Encodable {
        let devices: UInt64
        let accepted: UInt64
        let refused: UInt64
    }

    struct Rejection: Encodable {
        let status: UInt64
        let reason: String
    }

    /// Devices looked at.
    let seen: UInt64
    /// Of them those that get it, as far as is known.
    let audience: UInt64
    let waiting: UInt64
    let sending: UInt64
    let accepted: UInt64
    let refused: UInt64
    let cancelled: UInt64
    let leftOut: LeftOutBody
    let canary: Canary
    /// All devices were looked at: `audience` is final.
    let isComplete: Bool
    /// Of the latest answers: how many there are, and how many rejected the push.
    let latestAnswers: Int
    let latestRejections: Int
    let lastRejection: Rejection?

    init(_ record: CampaignProgressRecord) {
        let counts = record.counts
        seen = counts.seen
        audience = counts.audience
        waiting = counts.waiting
        sending = counts.flying
        accepted = counts.accepted
        refused = counts.refused
        cancelled = counts.cancelled
        leftOut = LeftOutBody { counts[$0] }
        canary = Canary(
            devices: counts.canary, accepted: counts.canaryAccepted,
            refused: counts.canaryRefused)
        isComplete = record.stage == .finished || record.stage == .main && record.isPassDone
        latestAnswers = record.trend.answers
        latestRejections = record.trend.rejections
        lastRejection =
            record.lastStatus == 0
            ? nil : Rejection(status: record.lastStatus, reason: record.lastReason)
    }
}

/// Devices of the audience that get none, by why.
struct LeftOutBody: Encodable {
    let presumedGone: UInt64
    let tokenless: UInt64
    let notificationsOff: UInt64
    let suspended: UInt64
    let noCredential: UInt64
    let changed: UInt64

    init(_ count: (CampaignOmission) -> UInt64) {
        presumedGone = count(.presumedGone)
        tokenless = count(.tokenless)
        notificationsOff = count(.notificationsOff)
        suspended = count(.suspended)
        noCredential = count(.noCredential)
        changed = count(.changed)
    }
}

/// The answer to a dry run.
struct CampaignTallyBody: Encodable {
    let dryRun = true
    let seen: UInt64
    let devices: UInt64
    let canary: UInt64
    let leftOut: LeftOutBody

    init(_ tally: CampaignTally) {
        seen = tally.seen
        devices = tally.devices
        canary = tally.canary
        leftOut = LeftOutBody { tally[$0] }
    }
}

struct CampaignFatesBody: Encodable {
    let devices: [CampaignFateBody]
}

/// Why a device got a campaign, or did not.
struct CampaignFateBody: Encodable {
    let device: String
    /// `queued`, `sending`, `sent`, `refused`, `left-out`, `cancelled`; `none`: it has no push.
    let push: String
    /// Why it was left out, APNs' reason for a refusal, or why there is no push.
    let reason: String?
    let status: UInt64?
    let at: String?
    let due: String?
    let attempts: UInt64?
    let apnsId: String?
    let isCanary: Bool?

    init(_ fate: CampaignFate) {
        device = fate.device.description
        guard let row = fate.push else {
            push = "none"
            switch fate.verdict {
            case .takes: reason = "not-yet"
            case .outside(let criterion): reason = "audience-\(criterion.rawValue)"
            case .leftOut(let omission): reason = omission.name
            }
            (status, at, due, attempts, apnsId, isCanary) = (nil, nil, nil, nil, nil, nil)
            return
        }
        push = row.phase.name
        reason = row.reason.isEmpty ? nil : row.reason
        status = row.status == 0 ? nil : row.status
        at = (row.settledAt ?? row.sendingSince ?? row.queuedAt).text
        due = row.due?.text
        attempts = row.attempts
        apnsId = row.push?.description
        isCanary = row.isCanary
    }
}

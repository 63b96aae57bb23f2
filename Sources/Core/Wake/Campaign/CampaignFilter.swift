public import Model

/// For which devices a campaign is: all criteria must hold; an empty one always does.
public struct CampaignFilter: Equatable, Sendable {
    /// Topics of push tokens: one app of Apple's each.
    public var topics: [String] = []
    /// What devices said as `client_name`: by it an app tells its platforms apart.
    public var clients: [String] = []
    /// Language ranges (RFC 4647 section 3.3.1): `de` takes `de-AT` too.
    public var locales: [String] = []
    /// Names of the IANA database; one that ends in a slash takes all that begin so.
    public var timeZones: [String] = []
    /// Bounds of `client_version`, both included, compared number by number; empty: none.
    public var versionMin = ""
    public var versionMax = ""
    /// Heard of within so long; `nil`: whenever.
    public var seenWithin: Milliseconds?
    /// Not heard of for so long.
    public var unseenFor: Milliseconds?
    /// The device or its user has all of these, one of these, none of these.
    public var tags: [String] = []
    public var anyTags: [String] = []
    public var noTags: [String] = []
    /// Empty: any.
    public var states: [ReachabilityState] = []

    public init() {}

    /// The most entries of each list.
    public static let entriesMax = 32
    public static let entryBytesMax = 128
    public static let tagBytesMax = 64

    /// 1 to 64 ASCII letters, digits and `.`, `_`, `:`, `-`.
    public static func isTag(_ text: String) -> Bool {
        let bytes = text.utf8
        return (1...tagBytesMax).contains(bytes.count)
            && bytes.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
                default: false
                }
            }
    }

    /// What keeps it from being evaluated; `nil`: nothing.
    public var problem: String? {
        let lists = [
            ("topics", topics), ("clients", clients), ("locales", locales),
            ("time_zones", timeZones), ("tags", tags), ("any_tags", anyTags),
            ("no_tags", noTags),
        ]
        for (name, list) in lists {
            if list.count > Self.entriesMax {
                return "\(name): more than \(Self.entriesMax) entries"
            }
            if list.contains(where: { !(1...Self.entryBytesMax).contains($0.utf8.count) }) {
                return "\(name): an entry must have 1 to \(Self.entryBytesMax) bytes"
            }
        }
        if let odd = (tags + anyTags + noTags).first(where: { !Self.isTag($0) }) {
            return "\(odd): a tag has 1 to \(Self.tagBytesMax) ASCII letters, digits, . _ : -"
        }
        if let odd = locales.first(where: { LocaleTag($0) == nil }) {
            return "locales: \(odd) is no language tag (BCP 47)"
        }
        for text in [versionMin, versionMax] where !text.isEmpty && AppVersion(text) == nil {
            return "\(text): a version begins with a number, such as 2.10.1"
        }
        if let least = AppVersion(versionMin), let most = AppVersion(versionMax), most < least {
            return "version_min is above version_max"
        }
        return nil
    }
}

/// Why a device is not in a campaign's audience. The raw value is its name in the APIs.
public enum CampaignCriterion: String, Sendable, CaseIterable {
    case topic
    case client
    case version
    case locale
    case timeZone = "time-zone"
    case lastSeen = "last-seen"
    case tags
    case reachability
}

/// What a filter looks at without a look into other rows.
public struct CampaignFacts: Equatable, Sendable {
    public var topic: String
    public var client: String
    public var version: String
    public var locale: String
    public var timeZone: String
    public var lastSeenAt: Timestamp

    public init(
        topic: String, client: String, version: String, locale: String, timeZone: String,
        lastSeenAt: Timestamp
    ) {
        self.topic = topic
        self.client = client
        self.version = version
        self.locale = locale
        self.timeZone = timeZone
        self.lastSeenAt = lastSeenAt
    }
}

extension CampaignFilter {
    /// The first criterion the device does not meet; `nil`: it is in the audience.
    ///
    /// - Parameters:
    ///   - state: asked for only where it matters, as `hasTag` is: both cost reads.
    public func mismatch(
        _ facts: CampaignFacts, now: Timestamp,
        state: () throws(StoreError) -> ReachabilityState,
        hasTag: (String) throws(StoreError) -> Bool
    ) throws(StoreError) -> CampaignCriterion? {
        if !topics.isEmpty, !topics.containsExactly(facts.topic) { return .topic }
        if !clients.isEmpty, !clients.containsExactly(facts.client) { return .client }
        if !takesVersion(facts.version) { return .version }
        if !takesLocale(facts.locale) { return .locale }
        if !takesZone(facts.timeZone) { return .timeZone }
        let isOld = seenWithin.map { facts.lastSeenAt + $0 <= now } ?? false
        let isNew = unseenFor.map { facts.lastSeenAt + $0 > now } ?? false
        if isNew { return .lastSeen }
        if isOld || unseenFor != nil || !states.isEmpty {
            let state = try state()
            // Who is connected is heard of now.
            if state == .online ? unseenFor != nil : isOld { return .lastSeen }
            if !states.isEmpty, !states.contains(state) { return .reachability }
        }
        for tag in tags where try !hasTag(tag) { return .tags }
        for tag in noTags where try hasTag(tag) { return .tags }
        if anyTags.isEmpty { return nil }
        for tag in anyTags where try hasTag(tag) { return nil }
        return .tags
    }

    private func takesVersion(_ text: String) -> Bool {
        if versionMin.isEmpty, versionMax.isEmpty { return true }
        guard let version = AppVersion(text) else { return false }
        if let least = AppVersion(versionMin), version < least { return false }
        if let most = AppVersion(versionMax), most < version { return false }
        return true
    }

    private func takesLocale(_ text: String) -> Bool {
        if locales.isEmpty { return true }
        guard let tag = LocaleTag(text) else { return false }
        return locales.contains { range in
            guard let range = LocaleTag(range)?.text else { return false }
            return tag.text == range || tag.text.hasPrefix(range + "-")
        }
    }

    private func takesZone(_ text: String) -> Bool {
        if timeZones.isEmpty { return true }
        return timeZones.contains {
            $0.hasSuffix("/") ? text.utf8.starts(with: $0.utf8) : text.isExactly($0)
        }
    }
}

/// A version as numbers between dots: 2.10 is above 2.9, and 2 is 2.0.
struct AppVersion: Comparable {
    private let numbers: [UInt64]

    /// `nil`: it does not begin with a number. What follows a part's digits is passed over.
    init?(_ text: String) {
        var numbers: [UInt64] = []
        for part in text.utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        {
            let digits = part.prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { break }
            // So long a number is a build's mark; it only has to have an order.
            numbers.append(digits.prefix(18).reduce(0) { $0 * 10 + UInt64($1 - 0x30) })
            if digits.count < part.count { break }
        }
        guard !numbers.isEmpty else { return nil }
        while numbers.last == 0, numbers.count > 1 { numbers.removeLast() }
        self.numbers = numbers
    }

    static func < (left: Self, right: Self) -> Bool {
        left.numbers.lexicographicallyPrecedes(right.numbers)
    }
}

// MARK: The form in a row

extension CampaignFilter {
    private enum Tag: UInt8 {
        case topic = 1
        case client, locale, timeZone, versionMin, versionMax, seenWithin, unseenFor, tag, anyTag
        case noTag, state
    }

    public var encoded: [UInt8] {
        var fields = FieldBytes()
        for (tag, list) in [
            (Tag.topic, topics), (.client, clients), (.locale, locales),
            (.timeZone, timeZones), (.tag, tags), (.anyTag, anyTags), (.noTag, noTags),
            (.state, states.map(\.rawValue)), (.versionMin, [versionMin]),
            (.versionMax, [versionMax]),
        ] {
            for text in list { fields.add(tag.rawValue, text: text) }
        }
        if let seenWithin { fields.add(Tag.seenWithin.rawValue, number: seenWithin) }
        if let unseenFor { fields.add(Tag.unseenFor.rawValue, number: unseenFor) }
        return fields.bytes
    }

    /// `nil`: the bytes are cut off or name what there is not.
    public init?(encoded: [UInt8]) {
        self.init()
        guard let fields = FieldBytes.fields(of: encoded[...]) else { return nil }
        for (number, bytes) in fields {
            let text = String(decoding: bytes, as: UTF8.self)
            switch Tag(rawValue: number) {
            case .topic: topics.append(text)
            case .client: clients.append(text)
            case .locale: locales.append(text)
            case .timeZone: timeZones.append(text)
            case .versionMin: versionMin = text
            case .versionMax: versionMax = text
            case .seenWithin: seenWithin = FieldBytes.number(bytes)
            case .unseenFor: unseenFor = FieldBytes.number(bytes)
            case .tag: tags.append(text)
            case .anyTag: anyTags.append(text)
            case .noTag: noTags.append(text)
            case .state:
                guard let state = ReachabilityState(rawValue: text) else { return nil }
                states.append(state)
            case nil: continue
            }
        }
    }
}

import Model
import Wake
import Wire

/// A push as an entry shows it (MSG-3, MSG-54), with a bound on its encoded size.
struct PushState {
    /// `nil`: no alert shows it. Empty where the alert shows strings of the app's own: it counts as
    /// unread all the same (SYN-27), as a passive message does not.
    private(set) var text: PushText?
    private(set) var hints: PushHints?
    private(set) var bytes = 0

    /// - Parameters:
    ///   - encoded: the options, as a row holds them.
    ///   - language: of the device it is for; `nil`: it is shown as it was published.
    init(
        title: String, body: String, options encoded: [UInt8], in language: DeviceLanguage?
    ) throws(StoreError) {
        var words = PushPayload.AlertText(title: title, body: body)
        var hasText = !(title.isEmpty && body.isEmpty)
        if !encoded.isEmpty, let options = PushOptions(encoded: encoded) {
            words.subtitle = options.subtitle
            if !options.texts.isEmpty, let language {
                words = try language.words(of: options, title: title, body: body)
            }
            hasText = (hasText || options.hasKeyText) && options.urgency != .passive
            hints = PushHints(options, words, isShown: hasText)
        }
        if hasText { text = PushText(title: words.title, body: words.body) }
        bytes = words.title.utf8.count + words.body.utf8.count + (hints?.approximateBytes ?? 0)
    }
}

/// In which language a device is told of alerts; read when the first text depends on it.
final class DeviceLanguage {
    private let app: AppID
    private let user: UserID
    private let device: DeviceID
    private let snapshot: any StoreSnapshot
    private var known: (own: String, otherwise: String)?

    init(_ query: PageQuery, in snapshot: any StoreSnapshot) {
        (app, user, device) = (query.app, query.user, query.device)
        self.snapshot = snapshot
    }

    /// What an alert to the device would show.
    fileprivate func words(
        of options: PushOptions, title: String, body: String
    ) throws(StoreError) -> PushPayload.AlertText {
        let (own, otherwise) = try languages()
        return options.shown(title: title, body: body, locale: own, otherwise: otherwise)
    }

    private func languages() throws(StoreError) -> (own: String, otherwise: String) {
        if let known { return known }
        let row = try snapshot.record(
            DeviceRecord.self, [.app(app), .user(user), .identifier(device)])
        let appRow = try snapshot.record(AppRecord.self, [.app(app)])
        let found = (own: row?.locale ?? "", otherwise: appRow?.locale ?? "")
        known = found
        return found
    }
}

extension PushHints {
    /// - Parameters:
    ///   - words: chosen for the device.
    ///   - isShown: an alert shows it; if none does, only what is the app's own is told.
    /// - Returns: `nil` if everything is as usual.
    fileprivate init?(
        _ options: PushOptions, _ words: PushPayload.AlertText, isShown: Bool
    ) {
        self.init(event: options.event, object: options.object)
        if !options.custom.members.isEmpty {
            data = "{" + String(decoding: options.custom.members, as: UTF8.self) + "}"
        }
        if isShown { show(options, words) }
        if self == PushHints() { return nil }
    }

    private mutating func show(_ options: PushOptions, _ words: PushPayload.AlertText) {
        subtitle = words.subtitle
        // A text in the device's language stands in place of keys.
        if !words.isLocal {
            titleKey = options.titleKey.map { LocalizedText($0) }
            subtitleKey = options.subtitleKey.map { LocalizedText($0) }
            bodyKey = options.bodyKey.map { LocalizedText($0) }
        }
        sound = PushSound(options.sound)
        thread = options.thread
        category = options.category
        if let level = options.interruption { interruptionLevel = InterruptionLevel(level) }
        if let thousandths = options.relevance { relevance = UInt32(clamping: thousandths) + 1 }
        targetContent = options.targetContent
    }
}

extension LocalizedText {
    fileprivate init(_ key: PushOptions.LocalKey) {
        self.init(key: key.key, arguments: key.arguments)
    }
}

extension PushSound {
    /// `nil`: the system's.
    fileprivate init?(_ sound: PushOptions.Sound) {
        switch sound {
        case .standard: return nil
        case .none: self.init(kind: SoundKind.none)
        case .named(let name): self.init(kind: .named, name: name)
        case .critical(let name, let volume):
            self.init(kind: .critical, name: name, volume: UInt32(clamping: volume))
        }
    }
}

extension InterruptionLevel {
    fileprivate init(_ level: PushOptions.InterruptionLevel) {
        self =
            switch level {
            case .passive: .passive
            case .active: .active
            case .timeSensitive: .timeSensitive
            case .critical: .critical
            }
    }
}

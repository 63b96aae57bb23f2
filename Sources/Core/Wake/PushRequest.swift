public import Model

/// One request to APNs, all but the provider token: that is the connection's.
public struct PushRequest: Equatable, Sendable {
    public enum PushType: String, Sendable {
        case alert
        case background
    }

    public var token: [UInt8]
    public var topic: String
    public var pushType: PushType
    /// 10: at once; 5: when the device's power allows.
    public var priority: UInt64
    /// Seconds since 1970 until which APNs may store it; 0: one attempt, never stored.
    public var expiration: UInt64
    /// A later push with the same one takes the notification's place. At most 64 bytes.
    public var collapseID: String?
    public var id: WakeID
    public var payload: [UInt8]

    public init(
        token: [UInt8], topic: String, pushType: PushType, priority: UInt64, expiration: UInt64,
        collapseID: String?, id: WakeID, payload: [UInt8]
    ) {
        self.token = token
        self.topic = topic
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.id = id
        self.payload = payload
    }

    /// Where a push goes: an app's token and the topic it is for.
    public struct Destination: Equatable, Sendable {
        public var token: [UInt8]
        public var topic: String

        public init(token: [UInt8], topic: String) {
            self.token = token
            self.topic = topic
        }
    }

    /// Expiration 0: APNs stores one notification a device, and a stored silent push would take
    /// the place of a stored alert.
    public static func silent(
        _ subject: PushPayload.Subject, options: PushOptions = PushOptions(),
        to destination: Destination
    ) -> PushRequest {
        PushRequest(
            token: destination.token, topic: destination.topic, pushType: .background,
            priority: 5, expiration: 0, collapseID: nil, id: subject.wake,
            payload: PushPayload.silent(subject, options: options))
    }

    /// - Parameter expires: until when APNs may store it; `nil`: one attempt.
    public static func alert(
        _ text: PushPayload.AlertText, options: PushOptions = PushOptions(), badge: UInt64,
        subject: PushPayload.Subject, expires: Timestamp?, to destination: Destination
    ) -> PushRequest {
        PushRequest(
            token: destination.token, topic: destination.topic, pushType: .alert, priority: 10,
            expiration: seconds(expires), collapseID: subject.message?.description,
            id: subject.wake,
            payload: PushPayload.alert(text, options: options, badge: badge, subject: subject))
    }

    /// The icon's number stays as it is: a campaign is nothing to read. Nor is it anything to
    /// sync: it does not wake the app, or every phone of the audience would connect at once.
    ///
    /// - Parameter expires: until when APNs may store it; `nil`: one attempt.
    public static func campaign(
        _ text: PushPayload.AlertText, options: PushOptions, of campaign: CampaignID,
        wake: WakeID, expires: Timestamp?, to destination: Destination
    ) -> PushRequest {
        let subject = PushPayload.Subject(
            event: "campaign", message: MessageID(campaign), wake: wake)
        return PushRequest(
            token: destination.token, topic: destination.topic, pushType: .alert, priority: 10,
            expiration: seconds(expires), collapseID: campaign.description, id: wake,
            payload: PushPayload.alert(
                text, options: options, badge: nil, subject: subject, wakesApp: false))
    }

    /// A badge is of push type `alert` (Apple: Sending notification requests to APNs). With the
    /// text of a message it takes that message's place on the screen, and adds none.
    public static func badge(
        _ badge: UInt64, text: PushPayload.AlertText?, options: PushOptions = PushOptions(),
        subject: PushPayload.Subject, expires: Timestamp?, to destination: Destination
    ) -> PushRequest {
        PushRequest(
            token: destination.token, topic: destination.topic, pushType: .alert, priority: 5,
            expiration: seconds(expires),
            collapseID: text == nil ? "badge" : subject.message?.description ?? "badge",
            id: subject.wake,
            payload: PushPayload.badge(badge, text: text, options: options, subject: subject))
    }

    /// Never 0 for a moment that is meant.
    private static func seconds(_ time: Timestamp?) -> UInt64 {
        time.map { max(1, $0.milliseconds / 1_000) } ?? 0
    }

    /// `/3/device/` and the token in lower-case hexadecimal; no length is assumed.
    public var path: String {
        let digits = Array("0123456789abcdef".utf8)
        let hex = token.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "/3/device/" + String(decoding: hex, as: UTF8.self)
    }

    /// The `apns-*` headers, in the order in which they are written.
    public var headers: [(name: String, value: String)] {
        var headers = [
            (name: "apns-topic", value: topic), ("apns-push-type", pushType.rawValue),
            ("apns-priority", String(priority)), ("apns-expiration", String(expiration)),
            ("apns-id", id.description),
        ]
        if let collapseID { headers.append(("apns-collapse-id", collapseID)) }
        return headers
    }
}

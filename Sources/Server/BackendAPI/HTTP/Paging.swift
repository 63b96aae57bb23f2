import Crypto
import Feed
import HTTP1
import Model

/// Where a list goes on: the last row that was given. Callers give it back as they got it.
///
/// It is not signed: it only says where to begin in a list the caller may read anyway. It names the
/// address, so that one of another object is refused and not taken for a place in this list.
struct PageCursor: Equatable {
    /// Which list it belongs to.
    enum List: UInt8 {
        case participants = 1
        case messagesRising = 2
        case messagesFalling = 3
        case receipts = 4
        case conversations = 5
        case schedule = 6
        case campaigns = 7
        case audit = 8
        case users = 9
        case allConversations = 10
        case blocks = 11
        case mutes = 12
        case written = 13
    }

    /// The app and the path, shortened: no two lists that somebody pages through share one.
    struct Address: Equatable {
        static let count = 8
        let bytes: [UInt8]

        init(_ app: AppID?, _ path: [String]) {
            // Ids are the same in capital letters; each word stands behind its length.
            let words =
                [app?.name ?? ""] + path.map { Identifier<Never>(text: $0)?.description ?? $0 }
            let text = words.map { "\($0.utf8.count) \($0)" }.joined()
            bytes = Array(Digest.sha256(Array(text.utf8)).prefix(Self.count))
        }

        fileprivate init(_ bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }
    }

    let list: List
    let address: Address
    let last: [UInt8]

    var text: String { Base64URL.encode([list.rawValue] + address.bytes + last) }

    init(_ list: List, of address: Address, _ last: [UInt8]) {
        self.list = list
        self.address = address
        self.last = last
    }

    init?(text: String) {
        guard let bytes = Base64URL.decode(Array(text.utf8)), bytes.count > Address.count,
            let list = List(rawValue: bytes[0])
        else { return nil }
        self.list = list
        address = Address(bytes[1...Address.count])
        last = Array(bytes[(Address.count + 1)...])
    }
}

extension Call {
    /// Whose lists its cursors go on in.
    var address: PageCursor.Address { PageCursor.Address(app, request.pathSegments) }

    /// `limit`, from 1 to `max`.
    func limit(default ordinary: Int, max: Int) throws(Problem) -> Int {
        guard let text = request.queryValue("limit") else { return ordinary }
        guard let limit = UInt64(digits: text), (1...UInt64(max)).contains(limit) else {
            throw .malformed("limit: must be a number from 1 to \(max)")
        }
        return Int(limit)
    }

    /// A parameter of the query that is true or false; left out, it is false.
    func flag(_ name: String) throws(Problem) -> Bool {
        guard let flag = Bool(request.queryValue(name) ?? "false") else {
            throw .malformed("\(name): must be true or false")
        }
        return flag
    }

    /// What the names in a list begin with; left out, it is empty, and the list has all.
    func namePrefix() throws(Problem) -> String {
        guard let prefix = request.queryValue("prefix") else { return "" }
        guard UserID(prefix).isValid else {
            throw .malformed(
                "prefix: must be 1 to \(UserID.bytesMax) bytes without control characters; leave "
                    + "it out to list all")
        }
        return prefix
    }

    /// What `cursor` holds; `nil`: the list is asked for from its start.
    private func cursor(_ list: PageCursor.List) throws(Problem) -> [UInt8]? {
        try cursor([list])
    }

    private func cursor(_ lists: [PageCursor.List]) throws(Problem) -> [UInt8]? {
        guard let text = request.queryValue("cursor") else { return nil }
        guard let cursor = PageCursor(text: text), lists.contains(cursor.list),
            cursor.address == address
        else { throw .badCursor }
        return cursor.last
    }

    func userCursor(_ list: PageCursor.List) throws(Problem) -> UserID? {
        guard let bytes = try cursor(list) else { return nil }
        guard let name = String(validating: bytes, as: UTF8.self), UserID(name).isValid else {
            throw .badCursor
        }
        return UserID(name)
    }

    func conversationCursor(_ list: PageCursor.List) throws(Problem) -> ConversationID? {
        guard let bytes = try cursor(list) else { return nil }
        guard let id = ConversationID(bytes) else { throw .badCursor }
        return id
    }

    func scheduleCursor(_ list: PageCursor.List) throws(Problem) -> SchedulePlace? {
        guard let bytes = try cursor(list) else { return nil }
        guard let time = Identifier<Never>(bytes.prefix(16)), time.high == 0,
            time.low <= .max >> 1, let message = MessageID(bytes.dropFirst(16))
        else { throw .badCursor }
        return SchedulePlace(
            sendAt: Timestamp(milliseconds: time.low), message: message)
    }

    func writtenCursor() throws(Problem) -> WrittenPlace? {
        guard let bytes = try cursor(.written) else { return nil }
        guard let conversation = ConversationID(bytes.prefix(16)),
            let pair = Identifier<Never>(bytes.dropFirst(16)), pair.high == 0,
            pair.low <= .max >> 1
        else { throw .badCursor }
        return WrittenPlace(conversation: conversation, position: pair.low)
    }

    func campaignCursor() throws(Problem) -> CampaignID? {
        guard let bytes = try cursor(.campaigns) else { return nil }
        guard let id = CampaignID(bytes) else { throw .badCursor }
        return id
    }

    /// The position after which the list goes on; `nil`: the list is asked for from its start.
    ///
    /// - Parameter lists: those whose cursor is taken. A list of messages takes that of either
    ///   order.
    func positionCursor(_ lists: PageCursor.List...) throws(Problem) -> UInt64? {
        guard let bytes = try cursor(lists) else { return nil }
        // Positions are stored as signed numbers.
        guard let pair = Identifier<Never>(bytes), pair.high == 0, pair.low <= .max >> 1 else {
            throw .badCursor
        }
        return pair.low
    }
}

extension UInt64 {
    /// Digits alone, as JSON writes numbers; the library takes a sign and zeros before them, too.
    init?(digits text: String) {
        guard let number = UInt64(text), String(number) == text else { return nil }
        self = number
    }
}

extension PageCursor {
    init(_ list: List, of address: Address, _ place: SchedulePlace) {
        let time = Identifier<Never>(high: 0, low: place.sendAt.milliseconds)
        self.init(list, of: address, time.bytes + place.message.bytes)
    }

    init(_ list: List, of address: Address, _ place: WrittenPlace) {
        let position = Identifier<Never>(high: 0, low: place.position)
        self.init(list, of: address, place.conversation.bytes + position.bytes)
    }

    init(_ list: List, of address: Address, position: UInt64) {
        self.init(list, of: address, Identifier<Never>(high: 0, low: position).bytes)
    }
}

extension Problem {
    fileprivate static let badCursor = Problem.malformed(
        "cursor: must be the `next` of an answer of this address")
}

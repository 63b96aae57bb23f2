public import AppLife
public import JSONTree
import Model
import Wire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension AppNotice {
    /// What stands beside `aps` in the payload of an alert of the same message, but for the wake
    /// id: the app's `userInfo`, so that a tap on either leads to the same place (PSH-2, PSH-12).
    /// Of what is quiet it says so: the system asks the app what to show of it in front.
    public var information: [String: JSONValue] {
        var subject = [
            "e": conversation == nil ? "announcement" : "message", "o": object.description,
        ]
        subject["c"] = conversation?.description
        if !hints.event.isEmpty { subject["t"] = hints.event }
        if !hints.object.isEmpty { subject["i"] = hints.object }
        var info: [String: JSONValue] = [:]
        let data = try? JSONDecoder().decode(JSONValue.self, from: Data(hints.data.utf8))
        if let data { info = data.members }
        info["aps"] = nil
        var members = subject.mapValues(JSONValue.text)
        if isQuiet { members["q"] = .flag(true) }
        info["rouse"] = .object(members)
        return info
    }

    /// The same as the system's frameworks take it.
    public var userInfo: [String: Any] { information.compactMapValues(\.plain) }
}

extension JSONValue {
    /// As property lists and `userInfo` hold it: objects and lists leave out a `null`, which is
    /// `nil` here.
    var plain: Any? {
        switch self {
        case .null: nil
        case .flag(let flag): flag
        case .number(let number): Int(clamping: number)
        case .fraction(let fraction): fraction
        case .text(let text): text
        case .list(let items): items.compactMap(\.plain)
        case .object(let members): members.compactMapValues(\.plain)
        }
    }
}

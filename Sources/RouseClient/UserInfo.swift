public import AppLife
import Foundation
import Model
import Wire

extension AppNotice {
    /// What stands beside `aps` in the payload of an alert of the same message, but for the wake
    /// id: the app's `userInfo`, so that a tap on either leads to the same place (PSH-2, PSH-12).
    public var userInfo: [String: Any] {
        var subject = [
            "e": conversation == nil ? "announcement" : "message", "o": object.description,
        ]
        subject["c"] = conversation?.description
        if !hints.event.isEmpty { subject["t"] = hints.event }
        if !hints.object.isEmpty { subject["i"] = hints.object }
        let data = try? JSONSerialization.jsonObject(with: Data(hints.data.utf8))
        var info = data as? [String: Any] ?? [:]
        info["aps"] = nil
        info["rouse"] = subject
        return info
    }
}

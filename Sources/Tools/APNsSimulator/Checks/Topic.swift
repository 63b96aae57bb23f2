/// Topics: a bundle id, followed by a suffix for some push types.
enum Topic {
    /// Apple's push types and what each appends to the bundle id; `nil`: the topic is no bundle
    /// id of ours to take apart (Apple: Sending notification requests to APNs).
    static let suffixes: [String: String?] = [
        "alert": "",
        "background": "",
        "complication": ".complication",
        "controls": ".push-type.controls",
        "fileprovider": ".pushkit.fileprovider",
        "liveactivity": ".push-type.liveactivity",
        "location": ".location-query",
        "mdm": nil,
        "pushtotalk": ".voip-ptt",
        "voip": ".voip",
        "widgets": ".push-type.widgets",
    ]

    static func isWellFormed(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= 255
            && topic.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
                    || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x2E
            }
    }

    /// The bundle id that a topic of this push type names; `nil`: the suffix is missing.
    static func bundleID(_ topic: String, pushType: String) -> String? {
        guard let suffix = (suffixes[pushType] ?? "") else { return topic }
        guard topic.hasSuffix(suffix), topic.count > suffix.count else { return nil }
        return String(topic.dropLast(suffix.count))
    }
}

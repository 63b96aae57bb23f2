import Model
import Wire

/// A frame as it came: its header field by field, and the body if it is one of the protocol.
struct ReceivedFrame {
    /// Header and body.
    let bytes: [UInt8]
    let type: UInt8
    let flags: UInt8
    let reserved: UInt8
    let request: UInt16
    /// `nil`: a type that version 1 does not have, or a body that is none of its type.
    let body: FrameBody?
    /// Why there is no `body`, though the type is known.
    let problem: WireError?

    /// - Parameter bytes: a whole frame.
    init(_ bytes: [UInt8], limits: FrameLimits) {
        self.bytes = bytes
        type = bytes[3]
        flags = bytes[4]
        reserved = bytes[5]
        request = UInt16(bytes[6]) << 8 | UInt16(bytes[7])
        guard FrameType(rawValue: type) != nil else {
            body = nil
            problem = nil
            return
        }
        // Header faults are judged apart: the body is read as if there were none.
        var plain = bytes
        plain[4] = 0
        plain[5] = 0
        var decoder = FrameDecoder(
            limits: FrameLimits(bodyBytes: Frame.bodyBytesMax, elements: limits.elements))
        decoder.append(plain)
        do throws(WireError) {
            body = try decoder.next()?.body
            problem = nil
        } catch {
            body = nil
            problem = error
        }
    }

    var isIgnorable: Bool { flags & FrameFlags.ignorable.rawValue != 0 }
    var hasMore: Bool { flags & FrameFlags.more.rawValue != 0 }

    var name: String {
        FrameType(rawValue: type)?.name ?? "type 0x\(String(type, radix: 16))"
    }

    /// For transcripts and failures: the name, the code if it has one, the request.
    var summary: String {
        var text = name
        switch body {
        case .close(let close): text += " \(close.code)"
        case .error(let error): text += " \(error.code)"
        case .challenge(let challenge): text += " (\(challenge.reason))"
        case .delta(let delta):
            text +=
                " \(delta.from?.seq ?? 0) to \(delta.to?.seq ?? 0) of \(delta.head), "
                + "\(delta.entries.count) entries"
            if delta.more { text += ", more" }
            if let reset = delta.reset { text += ", reset \(reset.reason)" }
            for result in delta.results { text += ", result \(result.number): \(result.code)" }
        case .syncRequest(let asked): text += " head \(asked.head)"
        case .mutationResult(let result): text += " \(result.number): \(result.code)"
        case .none: if let problem { text += " (\(problem))" }
        default: break
        }
        if request != 0 { text += " [request \(request)]" }
        return text
    }
}

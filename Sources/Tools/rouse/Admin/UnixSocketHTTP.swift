import Glibc

/// One HTTP/1.1 request over a Unix-domain socket, blocking; as much HTTP as the server's own
/// answers need (RFC 9112, with a length or until the end).
enum UnixSocketHTTP {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// An answer of the admin API is far below.
    private static let answerBytesMax = 64 << 20
    private static let secondsMax = 60

    /// Whether somebody listens at `path`.
    static func isAnswered(_ path: String) -> Bool {
        guard let descriptor = try? connect(path) else { return false }
        close(descriptor)
        return true
    }

    static func send(
        _ method: String, _ path: [String], query: [(name: String, value: String)] = [],
        body: [UInt8], to socket: String
    ) throws(Failure) -> (status: Int, body: [UInt8]) {
        let descriptor = try connect(socket)
        defer { close(descriptor) }
        var target = "/" + path.map(encoded).joined(separator: "/")
        for (index, field) in query.enumerated() {
            target += (index == 0 ? "?" : "&") + encoded(field.name) + "=" + encoded(field.value)
        }
        var head = "\(method) \(target) HTTP/1.1\r\n"
        head += "host: rouse\r\nconnection: close\r\n"
        if !body.isEmpty {
            head += "content-type: application/json\r\ncontent-length: \(body.count)\r\n"
        }
        try write(Array((head + "\r\n").utf8) + body, to: descriptor)
        return try answer(in: try readToEnd(descriptor))
    }

    private static func connect(_ path: String) throws(Failure) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path), !bytes.contains(0) else {
            throw Failure(description: "\(path): too long for a socket's path")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: "socket: \(errorText())") }
        var limit = timeval(tv_sec: secondsMax, tv_usec: 0)
        let limitSize = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, limitSize)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, limitSize)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            let reason = errorText()
            close(descriptor)
            throw Failure(description: "\(path): \(reason)")
        }
        return descriptor
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw Failure(description: "sending: \(errorText())") }
            rest = rest.dropFirst(sent)
        }
    }

    private static func readToEnd(_ descriptor: Int32) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= answerBytesMax {
            let count = recv(descriptor, &part, part.count, 0)
            if count == 0 { return bytes }
            guard count > 0 else { throw Failure(description: "receiving: \(errorText())") }
            bytes += part[..<count]
        }
        throw Failure(description: "the answer is too long")
    }

    private static func answer(
        in bytes: [UInt8]
    ) throws(Failure) -> (status: Int, body: [UInt8]) {
        let separator = Array("\r\n\r\n".utf8)
        let end = bytes.indices.first { bytes[$0...].starts(with: separator) }
        let words = String(decoding: bytes.prefix(64), as: UTF8.self).split(separator: " ")
        guard let end, words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1])
        else { throw Failure(description: "what answers at the socket is no Rouse server") }
        return (status, Array(bytes[(end + separator.count)...]))
    }

    /// Percent-encodes all but the unreserved characters (RFC 3986 2.3).
    private static func encoded(_ segment: String) -> String {
        var text = ""
        for byte in segment.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                text += "%" + (digits.count < 2 ? "0" : "") + digits
            }
        }
        return text
    }

    private static func errorText() -> String { String(cString: strerror(errno)) }
}

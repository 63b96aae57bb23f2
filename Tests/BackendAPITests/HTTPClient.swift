import Foundation
import Glibc
import Testing

/// One request and its answer, as they went over the wire.
struct Exchange: Codable {
    /// Sent as bytes that the server refuses before it looks for a route.
    var isRaw = false
    /// Its body is refused for its form, which the description forbids, too.
    var isMisshapen = false
    var method: String
    var path: String
    var requestHeaders: [String: String]
    var requestBody: String
    var status: Int
    /// Names in lower case.
    var headers: [String: String]
    var body: String

    /// The body as JSON.
    var json: JSONTree { get throws { try JSONTree(body) } }
}

/// A blocking client that knows as much HTTP as the tests need.
enum HTTPClient {
    enum Address {
        case port(UInt16)
        case path(String)
    }

    static func send(
        _ method: String, _ path: String, headers: [String: String] = [:], body: String = "",
        to address: Address
    ) throws -> Exchange {
        var head = "\(method) \(path) HTTP/1.1\r\nconnection: close\r\n"
        head += "host: \(headers["host"] ?? "test")\r\n"
        for (name, value) in headers where name != "host" { head += "\(name): \(value)\r\n" }
        if !body.isEmpty { head += "content-length: \(body.utf8.count)\r\n" }
        let answer = try raw(head + "\r\n" + body, to: address)
        return try exchange(method, path, headers, body, answer)
    }

    /// Takes an answer apart.
    static func exchange(
        _ method: String, _ path: String, _ headers: [String: String], _ body: String,
        _ answer: String
    ) throws -> Exchange {
        let end = try #require(answer.range(of: "\r\n\r\n"), "no answer to \(method) \(path)")
        let lines = answer[..<end.lowerBound].components(separatedBy: "\r\n")
        let status = try #require(Int(lines[0].split(separator: " ")[1]))
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        return Exchange(
            method: method, path: path, requestHeaders: headers, requestBody: body,
            status: status, headers: fields, body: String(answer[end.upperBound...]))
    }

    /// Sends these bytes and reads until the other side closes.
    static func raw(_ text: String, to address: Address) throws -> String {
        let descriptor = try connect(to: address)
        defer { close(descriptor) }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let sent = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            // The server may refuse and close before it has everything.
            guard sent > 0 else { break }
            bytes = bytes.dropFirst(sent)
        }
        var answer: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &part, part.count, 0)
            guard count > 0 else { break }
            answer += part[..<count]
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// - Parameter receiveBuffer: bytes that the kernel takes for a client that does not read.
    static func connect(to address: Address, receiveBuffer: Int32? = nil) throws -> Int32 {
        switch address {
        case .port(let port):
            var internet = sockaddr_in()
            internet.sin_family = sa_family_t(AF_INET)
            internet.sin_port = port.bigEndian
            internet.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return try connect(
                AF_INET, &internet, MemoryLayout<sockaddr_in>.size, receiveBuffer)
        case .path(let path):
            var local = sockaddr_un()
            local.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &local.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            return try connect(AF_UNIX, &local, MemoryLayout<sockaddr_un>.size)
        }
    }

    private static func connect(
        _ family: Int32, _ address: UnsafeRawPointer, _ size: Int,
        _ receiveBuffer: Int32? = nil
    ) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        if var receiveBuffer {
            setsockopt(
                descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer,
                socklen_t(MemoryLayout<Int32>.size))
        }
        // A test that would hang fails instead.
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let status = Glibc.connect(
            descriptor, address.assumingMemoryBound(to: sockaddr.self), socklen_t(size))
        try #require(status == 0, "connect: errno \(errno)")
        return descriptor
    }
}

/// Any JSON, for looking into answers.
struct JSONTree: Equatable {
    private let value: NSObject

    init(_ text: String) throws {
        let object = try JSONSerialization.jsonObject(
            with: Data(text.utf8), options: .fragmentsAllowed)
        value = try #require(object as? NSObject)
    }

    private init(_ value: NSObject) { self.value = value }

    subscript(_ name: String) -> JSONTree {
        JSONTree((value as? [String: NSObject])?[name] ?? NSNull())
    }

    subscript(_ index: Int) -> JSONTree {
        guard let items = value as? [NSObject], index < items.count else {
            return JSONTree(NSNull())
        }
        return JSONTree(items[index])
    }

    var string: String? { value as? String }
    var number: Int? { (value as? NSNumber)?.intValue }
    var flag: Bool? { (value as? NSNumber)?.boolValue }
    var count: Int { (value as? [NSObject])?.count ?? 0 }
    var names: [String] { (value as? [String: NSObject])?.keys.sorted() ?? [] }
}

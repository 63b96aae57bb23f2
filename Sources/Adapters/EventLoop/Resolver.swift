import CUV
import Glibc

/// Names to addresses, by getaddrinfo on libuv's pool of four threads: a slow name server holds up
/// other look-ups, never a loop.
public enum Resolver {
    /// Looks `host` up and calls `completion` on the loop, in a later turn, with numeric addresses
    /// in the system's order of preference (RFC 6724), none twice, at least one. A numeric `host`
    /// is its own answer. Not called when the loop closes first.
    public static func resolve(
        _ host: String, on loop: Loop,
        completion: @escaping (Result<[String], StreamError>) -> Void
    ) {
        addresses(of: host, port: 0, on: loop) { result in
            completion(result.map { addresses in addresses.map(\.host) })
        }
    }

    @discardableResult
    static func addresses(
        of host: String, port: UInt16, on loop: Loop,
        completion: @escaping (Result<[SocketAddress], StreamError>) -> Void
    ) -> Resolution? {
        loop.preconditionInside()
        guard !loop.isClosing else { return nil }
        let resolution = Resolution(loop: loop, port: port, completion: completion)
        // Known to the loop until it answers: a loop that closes first breaks the cycle of caller
        // and completion.
        loop.add(resolution)
        if let address = SocketAddress(numeric: host, port: port) {
            loop.nextTurn { resolution.finish(.success([address])) }
        } else {
            resolution.start(host)
        }
        return resolution
    }
}

/// One look-up.
final class Resolution {
    private let loop: Loop
    private let port: UInt16
    private var completion: ((Result<[SocketAddress], StreamError>) -> Void)?
    private var request: UnsafeMutablePointer<uv_getaddrinfo_t>?

    init(
        loop: Loop, port: UInt16,
        completion: @escaping (Result<[SocketAddress], StreamError>) -> Void
    ) {
        self.loop = loop
        self.port = port
        self.completion = completion
    }

    func start(_ host: String) {
        let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
        var hints = addrinfo()
        hints.ai_socktype = rouse_sock_stream()
        let status = uv_getaddrinfo(loop.raw, request, resolutionDidEnd, host, nil, &hints)
        guard status == 0 else {
            request.deallocate()
            loop.nextTurn { self.finish(.failure(StreamError(.resolve, status))) }
            return
        }
        // Given back in resolutionDidEnd, which libuv calls in any case.
        request.pointee.data = Unmanaged.passRetained(self).toOpaque()
        self.request = request
    }

    /// The completion will not be called. A look-up that already runs goes on in its thread.
    func cancel() {
        completion = nil
        guard let request else { return }
        request.withMemoryRebound(to: uv_req_t.self, capacity: 1) { _ = uv_cancel($0) }
    }

    fileprivate func didEnd(_ status: Int32, _ list: UnsafeMutablePointer<addrinfo>?) {
        request = nil
        guard status == 0 else {
            finish(.failure(StreamError(.resolve, status)))
            return
        }
        var found: [SocketAddress] = []
        var seen: [String] = []
        var next = list
        while let entry = next {
            if let address = SocketAddress(entry.pointee.ai_addr, length: entry.pointee.ai_addrlen)
            {
                let host = address.host
                if !host.isEmpty, !seen.contains(host) {
                    seen.append(host)
                    found.append(address.with(port: port))
                }
            }
            next = entry.pointee.ai_next
        }
        if found.isEmpty {
            finish(.failure(StreamError(.resolve, UV_EAI_NONAME.status)))
        } else {
            finish(.success(found))
        }
    }

    fileprivate func finish(_ result: Result<[SocketAddress], StreamError>) {
        loop.remove(self)
        let handler = completion
        completion = nil
        handler?(result)
    }
}

private func resolutionDidEnd(
    _ request: UnsafeMutablePointer<uv_getaddrinfo_t>?, _ status: Int32,
    _ list: UnsafeMutablePointer<addrinfo>?
) {
    guard let request, let data = request.pointee.data else { return }
    let resolution = Unmanaged<Resolution>.fromOpaque(data).takeRetainedValue()
    request.deallocate()
    resolution.didEnd(status, list)
    uv_freeaddrinfo(list)
}

import CUV
import Glibc

/// Names to addresses, by getaddrinfo on libuv's pool of threads: a slow name server holds up other
/// look-ups where there are more names than threads, never a loop.
public enum Resolver {
    /// libuv takes half of its threads for look-ups, and has four unless it is told: two names
    /// whose server is silent would hold up every other. It reads the number when it first needs a
    /// thread.
    static let pool: Void = { _ = setenv("UV_THREADPOOL_SIZE", "32", 0) }()

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

/// Somebody who waits for a name's addresses.
final class Resolution {
    private let loop: Loop
    private let port: UInt16
    private var completion: ((Result<[SocketAddress], StreamError>) -> Void)?
    private var lookUp: LookUp?

    init(
        loop: Loop, port: UInt16,
        completion: @escaping (Result<[SocketAddress], StreamError>) -> Void
    ) {
        self.loop = loop
        self.port = port
        self.completion = completion
    }

    func start(_ host: String) {
        do throws(StreamError) {
            lookUp = try loop.lookUp(host)
            lookUp?.join(self)
        } catch {
            loop.nextTurn { self.finish(.failure(error)) }
        }
    }

    /// The completion will not be called.
    func cancel() {
        completion = nil
        let left = lookUp
        lookUp = nil
        left?.leave(self)
    }

    func finish(_ result: Result<[SocketAddress], StreamError>) {
        loop.remove(self)
        lookUp = nil
        let handler = completion
        completion = nil
        handler?(result.map { found in found.map { $0.with(port: port) } })
    }
}

/// One question to the system's resolver, shared by all on a loop that want the name. One that
/// gives up leaves the question under way, and joins it when it asks again. Otherwise a name server
/// that is slower than anybody waits would be asked again and again, and each question would hold a
/// thread.
final class LookUp {
    let host: String
    private let loop: Loop
    private var waiting: [ObjectIdentifier: Resolution] = [:]
    private let request: UnsafeMutablePointer<uv_getaddrinfo_t>

    init(_ host: String, on loop: Loop) throws(StreamError) {
        self.host = host
        self.loop = loop
        request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
        var hints = addrinfo()
        hints.ai_socktype = rouse_sock_stream()
        let status = uv_getaddrinfo(loop.raw, request, lookUpDidEnd, host, nil, &hints)
        guard status == 0 else {
            request.deallocate()
            throw StreamError(.resolve, status)
        }
        // Given back in lookUpDidEnd, which libuv calls in any case.
        request.pointee.data = Unmanaged.passRetained(self).toOpaque()
    }

    func join(_ resolution: Resolution) { waiting[ObjectIdentifier(resolution)] = resolution }

    func leave(_ resolution: Resolution) {
        waiting[ObjectIdentifier(resolution)] = nil
        guard waiting.isEmpty else { return }
        // One that has not begun need not; one that runs goes on in its thread.
        let isTakenBack = request.withMemoryRebound(to: uv_req_t.self, capacity: 1) {
            uv_cancel($0) == 0
        }
        if isTakenBack { loop.remove(self) }
    }

    fileprivate func didEnd(_ status: Int32, _ list: UnsafeMutablePointer<addrinfo>?) {
        loop.remove(self)
        let result: Result<[SocketAddress], StreamError> =
            status == 0 ? Self.addresses(in: list) : .failure(StreamError(.resolve, status))
        let waiters = waiting.values
        waiting = [:]
        for resolution in waiters { resolution.finish(result) }
    }

    private static func addresses(
        in list: UnsafeMutablePointer<addrinfo>?
    ) -> Result<[SocketAddress], StreamError> {
        var found: [SocketAddress] = []
        var seen: [String] = []
        var next = list
        while let entry = next {
            if let address = SocketAddress(entry.pointee.ai_addr, length: entry.pointee.ai_addrlen)
            {
                let host = address.host
                if !host.isEmpty, !seen.contains(host) {
                    seen.append(host)
                    found.append(address)
                }
            }
            next = entry.pointee.ai_next
        }
        return found.isEmpty
            ? .failure(StreamError(.resolve, UV_EAI_NONAME.status)) : .success(found)
    }
}

private func lookUpDidEnd(
    _ request: UnsafeMutablePointer<uv_getaddrinfo_t>?, _ status: Int32,
    _ list: UnsafeMutablePointer<addrinfo>?
) {
    guard let request, let data = request.pointee.data else { return }
    let lookUp = Unmanaged<LookUp>.fromOpaque(data).takeRetainedValue()
    lookUp.didEnd(status, list)
    request.deallocate()
    uv_freeaddrinfo(list)
}

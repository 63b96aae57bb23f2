import CUV
import Glibc

extension Stream {
    /// Connects by TCP to a name or numeric address. A name's addresses are tried one after the
    /// other, each for its share of the time that is left. `completion` is called once, on the
    /// loop, in a later turn: with a stream that reads nothing yet, or with the last address's
    /// failure; not at all when the loop closes first, or after cancel().
    ///
    /// `sourceAddress`: a numeric address of this host to connect from; the port is chosen at
    /// connect, so 28,000 connections fit per source address and destination.
    @discardableResult
    public static func connect(
        loop: Loop, host: String, port: UInt16, sourceAddress: String? = nil,
        timeoutMilliseconds: UInt64 = 30_000,
        completion: @escaping (Result<Stream, StreamError>) -> Void
    ) -> Dialing {
        let dialing = Dialing(
            loop: loop, timeoutMilliseconds: timeoutMilliseconds, completion: completion)
        dialing.start(host: host, port: port, sourceAddress: sourceAddress)
        return dialing
    }

    /// Connects to a Unix-domain socket at a path of at most 107 bytes. As above.
    @discardableResult
    public static func connect(
        loop: Loop, path: String, timeoutMilliseconds: UInt64 = 30_000,
        completion: @escaping (Result<Stream, StreamError>) -> Void
    ) -> Dialing {
        let dialing = Dialing(
            loop: loop, timeoutMilliseconds: timeoutMilliseconds, completion: completion)
        dialing.start(path: path)
        return dialing
    }
}

/// A connect under way.
public final class Dialing {
    private let loop: Loop
    private let deadline: UInt64
    private var completion: ((Result<Stream, StreamError>) -> Void)?
    private var resolution: Resolution?
    private var timer: LoopTimer?
    private var attempt: Stream?
    private var addresses: [SocketAddress] = []
    private var source: SocketAddress?
    private var lastError = StreamError(.connect, UV_EADDRNOTAVAIL.status)

    init(
        loop: Loop, timeoutMilliseconds: UInt64,
        completion: @escaping (Result<Stream, StreamError>) -> Void
    ) {
        loop.preconditionInside()
        self.loop = loop
        self.completion = completion
        let (sum, isOver) = loop.now.addingReportingOverflow(timeoutMilliseconds)
        deadline = isOver ? .max : sum
    }

    /// Takes it back: the completion is not called. Nothing when it has been.
    public func cancel() {
        loop.preconditionInside()
        completion = nil
        tidy()
    }

    func start(host: String, port: UInt16, sourceAddress: String?) {
        guard !loop.isClosing else { return }
        if let sourceAddress {
            guard let address = SocketAddress(numeric: sourceAddress, port: 0) else {
                finishLater(StreamError(.bind, UV_EADDRNOTAVAIL.status))
                return
            }
            source = address
        }
        timer = loop.timer { [self] in timedOut() }
        restartTimer(shares: 1)
        resolution = Resolver.addresses(of: host, port: port, on: loop) { [self] result in
            resolution = nil
            switch result {
            case .success(let found):
                addresses = found.filter { source == nil || source?.family == $0.family }
                tryNext()
            case .failure(let error):
                finish(.failure(error))
            }
        }
    }

    func start(path: String) {
        guard !loop.isClosing else { return }
        timer = loop.timer { [self] in timedOut() }
        restartTimer(shares: 1)
        do throws(StreamError) {
            // Only for the check of the path: libuv makes its own address of it.
            _ = try Socket.address(path: path, .connect)
            let stream = try Stream(loop: loop, isTCP: false)
            attempt = stream
            guard let pipe = stream.handle(uv_pipe_t.self) else { return }
            let request = newRequest()
            uv_pipe_connect(request, pipe, path, dialingDidEnd)
        } catch {
            finishLater(error)
        }
    }

    private func tryNext() {
        while !addresses.isEmpty {
            restartTimer(shares: UInt64(addresses.count))
            do throws(StreamError) {
                try begin(addresses.removeFirst())
                return
            } catch {
                lastError = error
            }
        }
        finish(.failure(lastError))
    }

    private func begin(_ address: SocketAddress) throws(StreamError) {
        let descriptor = try Socket.open(family: address.family, .connect)
        if let source {
            // Without it bind(2) takes a port for itself alone, and the range is used up early.
            Socket.set(descriptor, SocketLevel.ip, IP_BIND_ADDRESS_NO_PORT, 1)
            do throws(StreamError) {
                try Socket.bind(descriptor, source)
            } catch {
                close(descriptor)
                throw error
            }
        }
        let stream = try Stream(loop: loop, isTCP: true, adopting: descriptor, .connect)
        guard let tcp = stream.handle(uv_tcp_t.self) else { return }
        let request = newRequest()
        let status = address.with { pointer, _ in
            uv_tcp_connect(request, tcp, pointer, dialingDidEnd)
        }
        guard status == 0 else {
            Unmanaged<Dialing>.fromOpaque(request.pointee.data).release()
            request.deallocate()
            stream.close()
            throw StreamError(.connect, status)
        }
        attempt = stream
    }

    /// Holds this object until dialingDidEnd, which libuv calls in any case.
    private func newRequest() -> UnsafeMutablePointer<uv_connect_t> {
        let request = UnsafeMutablePointer<uv_connect_t>.allocate(capacity: 1)
        request.pointee.data = Unmanaged.passRetained(self).toOpaque()
        return request
    }

    fileprivate func didEnd(_ stream: Stream, _ status: Int32) {
        // An attempt that was given up answers too, with ECANCELED, once it is closed.
        guard stream === attempt else { return }
        attempt = nil
        if status == 0 {
            finish(.success(stream))
        } else {
            stream.close()
            lastError = StreamError(.connect, status)
            tryNext()
        }
    }

    private func timedOut() {
        guard resolution == nil else {
            // The name server's silence: there are no addresses to go on with.
            return finish(.failure(StreamError(.resolve, UV_ETIMEDOUT.status)))
        }
        lastError = StreamError(.connect, UV_ETIMEDOUT.status)
        guard attempt != nil else { return finish(.failure(lastError)) }
        attempt?.close()
        attempt = nil
        tryNext()
    }

    private func restartTimer(shares: UInt64) {
        let left = deadline > loop.now ? deadline - loop.now : 0
        timer?.start(afterMilliseconds: left / max(1, shares))
    }

    private func finishLater(_ error: StreamError) {
        loop.nextTurn { [self] in finish(.failure(error)) }
    }

    private func finish(_ result: Result<Stream, StreamError>) {
        let handler = loop.isClosing ? nil : completion
        completion = nil
        tidy()
        handler?(result)
    }

    private func tidy() {
        addresses = []
        resolution?.cancel()
        resolution = nil
        timer?.close()
        timer = nil
        attempt?.close()
        attempt = nil
    }
}

private func dialingDidEnd(_ request: UnsafeMutablePointer<uv_connect_t>?, _ status: Int32) {
    guard let request, let data = request.pointee.data else { return }
    let dialing = Unmanaged<Dialing>.fromOpaque(data).takeRetainedValue()
    let stream = owner(request.pointee.handle.pointee.data, Stream.self)
    request.deallocate()
    dialing.didEnd(stream, status)
}

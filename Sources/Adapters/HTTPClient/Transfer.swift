import CCurl
import Glibc

/// One request on its way: owns its easy handle. Thread-confined with its client.
final class Transfer {
    let easy: UnsafeMutableRawPointer
    let done: (HTTPPostResult) -> Void
    private let options: HTTPClientOptions
    private var headers: UnsafeMutablePointer<curl_slist>?
    private var answerBytes = 0
    private var opened = 0
    private var forbidden = 0

    /// `nil`: the library refuses the request, or has no memory.
    init?(
        _ post: HTTPPost, _ options: HTTPClientOptions, _ done: @escaping (HTTPPostResult) -> Void
    ) {
        guard let easy = curl_easy_init() else { return nil }
        self.easy = easy
        self.options = options
        self.done = done
        guard set(post), setBounds(), setTrust() else { return nil }
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(headers)
    }

    private func set(_ post: HTTPPost) -> Bool {
        // No wait for a 100-continue.
        for (name, value) in post.headers + [("expect", "")] {
            guard (name + value).utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                let longer = curl_slist_append(
                    headers, "\(name):\(value.isEmpty ? "" : " ")\(value)")
            else { return false }
            headers = longer
        }
        return text(CURLOPT_URL, post.url) && text(CURLOPT_PROTOCOLS_STR, "http,https")
            && long(CURLOPT_DISALLOW_USERNAME_IN_URL, 1) && long(CURLOPT_POST, 1)
            && rouse_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, Int(post.body.count))
                == CURLE_OK
            && post.body.withUnsafeBytes { bytes in
                // Copied: the option is COPYPOSTFIELDS.
                rouse_curl_set_pointer(
                    easy, CURLOPT_COPYPOSTFIELDS,
                    UnsafeMutableRawPointer(mutating: bytes.baseAddress)) == CURLE_OK
            }
            && rouse_curl_set_list(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK
            && text(CURLOPT_USERAGENT, options.userAgent)
    }

    private func setBounds() -> Bool {
        let owner = Unmanaged.passUnretained(self).toOpaque()
        return long(CURLOPT_NOSIGNAL, 1) && long(CURLOPT_FOLLOWLOCATION, 0)
            && long(CURLOPT_CONNECTTIMEOUT_MS, options.connectTimeout)
            && long(CURLOPT_TIMEOUT_MS, options.timeout)
            // A look-up that was given up ends in its own thread, which the loop does not wait
            // for: a silent name server would hold up every other request for 20 s and more. The
            // threads left behind are bounded by the requests at a time and the system's patience.
            && long(CURLOPT_QUICK_EXIT, 1)
            // An empty text: none, whatever the environment says.
            && text(CURLOPT_PROXY, "") && text(CURLOPT_NOPROXY, "*")
            && long(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
            && rouse_curl_set_write(easy, answerArrived) == CURLE_OK
            && pointer(CURLOPT_WRITEDATA, owner)
            && rouse_curl_set_open_socket(easy, socketWanted) == CURLE_OK
            && pointer(CURLOPT_OPENSOCKETDATA, owner)
    }

    private func setTrust() -> Bool {
        guard long(CURLOPT_SSL_VERIFYPEER, 1), long(CURLOPT_SSL_VERIFYHOST, 2) else {
            return false
        }
        guard var certificates = options.trustedCertificates else { return true }
        return certificates.withUnsafeMutableBytes { bytes in
            var blob = curl_blob(
                data: bytes.baseAddress, len: bytes.count, flags: UInt32(CURL_BLOB_COPY))
            return rouse_curl_set_blob(easy, CURLOPT_CAINFO_BLOB, &blob) == CURLE_OK
                && rouse_curl_set_text(easy, CURLOPT_CAPATH, nil) == CURLE_OK
        }
    }

    private func long(_ option: CURLoption, _ value: Int) -> Bool {
        rouse_curl_set_long(easy, option, value) == CURLE_OK
    }

    private func text(_ option: CURLoption, _ value: String) -> Bool {
        // It would end at the first zero.
        !value.utf8.contains(0) && rouse_curl_set_text(easy, option, value) == CURLE_OK
    }

    private func pointer(_ option: CURLoption, _ value: UnsafeMutableRawPointer) -> Bool {
        rouse_curl_set_pointer(easy, option, value) == CURLE_OK
    }

    /// What the library's result comes to.
    func result(_ code: CURLcode) -> HTTPPostResult {
        // Something of the body has come: the answer's head is whole, and says what it says, also
        // where the rest of the body does not come, or is more than anybody wants.
        guard code == CURLE_OK || answerBytes > 0 else { return .failed(failure(code)) }
        var status = 0
        rouse_curl_info_long(easy, CURLINFO_RESPONSE_CODE, &status)
        guard status >= 200 else { return .failed(.answer) }
        var wait: curl_off_t = 0
        rouse_curl_info_size(easy, CURLINFO_RETRY_AFTER, &wait)
        return .answered(
            status: status, retryAfterSeconds: wait > 0 ? UInt64(wait) : nil)
    }

    private func failure(_ code: CURLcode) -> HTTPPostFailure {
        // Once the request was sent, what is wrong is what came back, whatever the library calls
        // it: bytes that are no HTTP/1.1 are to it another protocol than the URL's.
        if wasSent, code != CURLE_OPERATION_TIMEDOUT { return .answer }
        return switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .name
        case CURLE_COULDNT_CONNECT: forbidden > 0 && opened == 0 ? .address : .connect
        case CURLE_OPERATION_TIMEDOUT: timeout
        case CURLE_PEER_FAILED_VERIFICATION: .certificate
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE: .tls
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL, CURLE_LOGIN_DENIED: .url
        default: .answer
        }
    }

    /// How far it had come when its time was over.
    private var timeout: HTTPPostFailure {
        if wasSent { return .timeout }
        // The library asks for a socket as soon as it has an address.
        guard opened > 0 else { return .nameTimeout }
        // Its times say nothing of a handshake that was not finished.
        var connections = 0
        rouse_curl_info_long(easy, CURLINFO_NUM_CONNECTS, &connections)
        return connections > 0 ? .tlsTimeout : .connectTimeout
    }

    private var wasSent: Bool {
        var bytes = 0
        rouse_curl_info_long(easy, CURLINFO_REQUEST_SIZE, &bytes)
        return bytes > 0
    }

    fileprivate func received(_ count: Int) -> Int {
        answerBytes += count
        return answerBytes <= options.answerBytesMax ? count : 0
    }

    fileprivate func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard let bytes = Self.bytes(of: address), options.permits(bytes) else {
            forbidden += 1
            return rouse_curl_socket_bad()
        }
        opened += 1
        return socket(
            address.pointee.family, address.pointee.socktype | rouse_curl_sock_flags(),
            address.pointee.`protocol`)
    }

    private static func bytes(of address: UnsafeMutablePointer<curl_sockaddr>) -> [UInt8]? {
        let length = Int(address.pointee.addrlen)
        return withUnsafeMutablePointer(to: &address.pointee.addr) { pointer in
            let raw = UnsafeMutableRawPointer(pointer)
            switch address.pointee.family {
            case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
                let found = raw.loadUnaligned(as: sockaddr_in.self)
                return withUnsafeBytes(of: found.sin_addr) { Array($0) }
            case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
                // The library keeps room for a sockaddr_storage behind the declared sockaddr.
                let found = raw.loadUnaligned(as: sockaddr_in6.self)
                return withUnsafeBytes(of: found.sin6_addr) { Array($0) }
            default: return nil
            }
        }
    }
}

private func answerArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ owner: UnsafeMutableRawPointer?
) -> Int {
    guard let owner else { return 0 }
    let (total, overflow) = size.multipliedReportingOverflow(by: count)
    guard !overflow else { return 0 }
    return Unmanaged<Transfer>.fromOpaque(owner).takeUnretainedValue().received(total)
}

private func socketWanted(
    _ owner: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let owner, let address else { return rouse_curl_socket_bad() }
    return Unmanaged<Transfer>.fromOpaque(owner).takeUnretainedValue().openSocket(address)
}

import Crypto
import EventLoop
import HTTP2

/// Why a connection to APNs is over.
enum ConnectionEnd: Equatable {
    /// We closed it: it was retired and its last stream has ended.
    case retired
    /// It could not be made in time.
    case connectTimeout
    case socket(StreamError)
    case tls(TLSError)
    /// The peer broke HTTP/2.
    case http(HTTP2Error)
    /// APNs closed it.
    case closedByPeer
    /// A PING had no answer.
    case silent
    /// The gateway stops.
    case stopped

    /// For the metrics: a closed set.
    var label: String {
        switch self {
        case .retired: "retired"
        case .connectTimeout: "connect-timeout"
        case .socket: "socket"
        case .tls: "tls"
        case .http: "http"
        case .closedByPeer: "closed-by-peer"
        case .silent: "silent"
        case .stopped: "stopped"
        }
    }

    /// For the log: what happened and, where somebody can do something, what.
    func explanation(host: String) -> String {
        switch self {
        case .tls(.peerCertificate(.untrusted)):
            "the certificate of \(host) does not lead to a trusted authority: "
                + "check the credential's trusted certificates, or the system's"
        case .tls(.peerCertificate(.wrongHost)):
            "the certificate does not name \(host): check the credential's host"
        case .tls(.peerCertificate(.expired)):
            "the certificate of \(host) has expired, or this host's clock is wrong"
        case .tls(.peerCertificate(.notYetValid)):
            "the certificate of \(host) is not valid yet: is this host's clock right?"
        case .tls(.noCommonProtocol): "\(host) does not speak HTTP/2"
        case .tls(.notTLS): "\(host) does not speak TLS on this port"
        case .tls(let error): "TLS: \(error)"
        case .socket(let error): "\(error)"
        case .http(let error): "\(error)"
        case .connectTimeout: "no connection in time"
        case .silent: "no answer to a PING"
        case .closedByPeer: "closed by \(host)"
        case .retired, .stopped: label
        }
    }
}

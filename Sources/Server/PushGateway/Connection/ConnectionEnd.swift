import Crypto
import EventLoop
import HTTP2

/// Why a connection to APNs is over.
enum ConnectionEnd: Equatable {
    /// We closed it.
    case closed
    /// Its last stream has ended after one of us had asked for that.
    case finished
    case socket(StreamError)
    case tls(TLSError)
    /// The peer broke HTTP/2.
    case http(HTTP2Error)
    /// APNs closed it.
    case closedByPeer

    /// For the metrics: a closed set.
    var label: String {
        switch self {
        case .closed: "closed"
        case .socket: "socket"
        case .tls: "tls"
        case .http: "http"
        case .closedByPeer, .finished: "closed-by-peer"
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
        case .socket(let error) where error.operation == .resolve:
            "the address of \(host) is not known: \(error): check the credential's host, and "
                + "whether this machine's name servers answer (/etc/resolv.conf)"
        case .socket(let error): "\(error)"
        case .http(let error): "\(error)"
        case .closedByPeer, .finished: "closed by \(host)"
        case .closed: label
        }
    }
}

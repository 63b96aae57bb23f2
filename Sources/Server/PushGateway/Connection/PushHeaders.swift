import Feed
import HTTP2
import PushPool
import Wake

extension HeldPush {
    /// The request as Apple wants it (Sending notification requests to APNs). What differs with
    /// each push is kept out of the header table, which is small; the library never puts `:path`
    /// and `authorization` into it.
    ///
    /// - Parameter token: `nil`: the connection is of a client certificate.
    func headers(authority: String, token: String?) -> [HTTP2Header] {
        let request = job.request
        var headers = [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", authority), HTTP2Header(":path", request.path),
        ]
        if let token { headers.append(HTTP2Header("authorization", "bearer \(token)")) }
        // All pushes of a campaign share their headers. They are a million, so none has an id of
        // its own: its 35 bytes are an eighth of the push, and APNs answers with one. What makes
        // a repeat show once is the collapse id.
        let isShared = job.lane == .campaign
        for (name, value) in request.headers where !(isShared && name == "apns-id") {
            let differs =
                switch name {
                case "apns-id": true
                case "apns-collapse-id": !isShared
                case "apns-expiration": !isShared && value != "0"
                default: false
                }
            headers.append(HTTP2Header(name, value, indexing: differs ? .never : .always))
        }
        return headers
    }
}

import Glibc

/// An IP address written in numbers.
public enum NumericAddress {
    /// Its 16 bytes; IPv4 is mapped (RFC 4291, 2.5.5.2). `nil`: it is none. A scope (`%eth0`) names
    /// an interface of this machine and is passed over.
    public static func bytes(_ text: String) -> [UInt8]? {
        var four = in_addr()
        var sixteen = in6_addr()
        let host = String(text.prefix { $0 != "%" })
        if inet_pton(AF_INET, host, &four) == 1 {
            let prefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
            return prefix + withUnsafeBytes(of: &four) { Array($0) }
        }
        guard inet_pton(AF_INET6, host, &sixteen) == 1 else { return nil }
        return withUnsafeBytes(of: &sixteen) { Array($0) }
    }
}

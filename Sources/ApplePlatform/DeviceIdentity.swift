#if canImport(Security)
    import Foundation
    public import Model
    public import Security
    public import SyncClient

    extension DeviceID {
        /// This installation's id (SES-14), made once. It is in the keychain of this phone alone,
        /// so that no backup takes it to another; there it outlives the app, which may find it
        /// again after it was deleted.
        ///
        /// - Parameters:
        ///   - service: what it is kept under, as the app's bundle id.
        ///   - group: a keychain group that the app shares with its notification service extension,
        ///     with the team's prefix; `nil`: the app's own.
        /// - Throws: `KeychainError`; the phone was not unlocked since its restart: ask again.
        public static func kept(service: String, group: String? = nil) throws -> DeviceID {
            if let known = try found(service, group) { return known }
            let made = DeviceID(high: .random(in: 1 ... .max), low: .random(in: 0 ... .max))
            var item = query(service, group)
            item[kSecValueData as String] = Data(made.bytes)
            item[kSecAttrAccessible as String] =
                kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly as String
            let status = SecItemAdd(item as CFDictionary, nil)
            // The app and its extension may both make one: the first holds.
            if status == errSecDuplicateItem, let first = try found(service, group) {
                return first
            }
            guard status == errSecSuccess else { throw KeychainError(status: status) }
            return made
        }

        private static func found(_ service: String, _ group: String?) throws -> DeviceID? {
            var item = query(service, group)
            item[kSecReturnData as String] = true
            item[kSecMatchLimit as String] = kSecMatchLimitOne as String
            var result: CFTypeRef?
            let status = SecItemCopyMatching(item as CFDictionary, &result)
            if status == errSecItemNotFound { return nil }
            guard status == errSecSuccess, let data = result as? Data,
                let id = DeviceID(Array(data))
            else { throw KeychainError(status: status) }
            return id
        }

        private static func query(_ service: String, _ group: String?) -> [String: Any] {
            var query: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword as String,
                kSecAttrService as String: service,
                kSecAttrAccount as String: "rouse.device",
                // On a Mac the keychain that iOS has, too.
                kSecUseDataProtectionKeychain as String: true,
            ]
            if let group { query[kSecAttrAccessGroup as String] = group }
            return query
        }
    }

    /// What the keychain said; `errSecInteractionNotAllowed`: the phone was not unlocked since its
    /// restart.
    public struct KeychainError: Error, Equatable, Sendable {
        public var status: OSStatus
    }
#endif

#if canImport(Darwin)
    import Foundation
    public import SyncClient

    extension ClientPlace {
        /// The language that the app shows to its person, and the phone's zone, as of now;
        /// `Rouse.follow` tells of their changes.
        public static var ofThisPhone: ClientPlace {
            let zone = TimeZone.autoupdatingCurrent
            return ClientPlace(
                locale: Bundle.main.preferredLocalizations.first
                    ?? Locale.preferredLanguages.first ?? "",
                timeZone: zone.identifier, secondsFromUTC: zone.secondsFromGMT())
        }
    }
#endif

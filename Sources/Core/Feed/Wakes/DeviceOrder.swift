import Model
import Wake

/// A row of one device. Who changes rows of several devices takes them in this order, that of
/// the store's locks, so that no two wait for each other.
protocol DeviceOrdered {
    var app: AppID { get }
    var user: UserID { get }
    var device: DeviceID { get }
}

extension DeviceOrdered {
    /// - Parameter orInTie: the answer for two rows of one device.
    func precedes(_ other: Self, orInTie tie: Bool = false) -> Bool {
        if app != other.app {
            return app.name.utf8.lexicographicallyPrecedes(other.app.name.utf8)
        }
        if user != other.user { return user < other.user }
        return device == other.device ? tie : device < other.device
    }
}

extension WakeRecord: DeviceOrdered {}
extension SessionRecord: DeviceOrdered {}
extension AlertRecord: DeviceOrdered {}
extension CampaignPushRecord: DeviceOrdered {}

import Feed
import HTTP1
import Model
import Wake

/// What a backend sees of devices. The admin server shows the same.
enum DeviceRoutes {
    static let all: [Route] = [
        Route("GET", "/v1/users/{user}/devices", .keyed(list)),
        Route("GET", "/v1/devices/{device}", .keyed(show)),
        Route("DELETE", "/v1/devices/{device}", .keyed(remove)),
        Route("GET", "/v1/devices/{device}/wakes", query: ["limit"], .keyed(wakes)),
    ]

    /// Wakes given unless the request says how many, and the most it can say.
    static let wakesDefault = 50
    static let wakesMax = 500

    static func list(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        .read(.devices(app, try call.user())) { reading throws(Problem) in
            guard case .devices(let devices) = reading else { throw .unexpected(reading) }
            return .answer(
                .json(200, DeviceListBody(devices: devices.map { DeviceBody($0) })))
        }
    }

    static func show(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        try find(call, app) { view in .answer(.json(200, DeviceBody(view))) }
    }

    /// Ends its sessions and detaches its push token; the installation may log in anew.
    static func remove(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        try find(call, app) { view in
            let device = view.device
            return AccessRoutes.administer(.removeDevice(app, device.user, device.device))
        }
    }

    static func wakes(_ call: Call, _ app: AppID) throws(Problem) -> Step {
        let limit = try call.limit(default: wakesDefault, max: wakesMax)
        let device = try call.identifier("device", as: DeviceID.self)
        return .read(.wakes(app, device, limit: limit)) { reading throws(Problem) in
            switch reading {
            case .wakes(let records):
                return .answer(.json(200, WakeListBody(wakes: records.map { WakeBody($0) })))
            case .nothing: throw .noSuch("device")
            default: throw .unexpected(reading)
            }
        }
    }

    /// Goes on with the device the path names.
    static func find(
        _ call: Call, _ app: AppID, then: @escaping (DeviceView) throws(Problem) -> Step
    ) throws(Problem) -> Step {
        let id = try call.identifier("device", as: DeviceID.self)
        return .read(.device(app, id)) { reading throws(Problem) in
            guard case .device(let view) = reading else { throw .unexpected(reading) }
            guard let view else { throw .noSuch("device") }
            return try then(view)
        }
    }
}

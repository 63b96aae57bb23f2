import Model
import Wake

/// APNs and the screens of the phones: what was asked may be refused, dropped, late, or done
/// without an answer.
final class SimulatedAPNs {
    private unowned let simulation: Simulation
    /// "device message" of alerts that it took and never delivered.
    private(set) var lost: Set<String> = []
    /// Pushes taken so far, and the newest that came to each phone.
    private var taken = 0
    private var newest: [DeviceID: Int] = [:]

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Takes one push. `answer` is called at most once.
    func push(_ request: PushRequest, _ answer: @escaping (PushReply) -> Void) {
        let clock = simulation.clock
        guard let device = simulation.devices.first(where: { $0.pushToken == request.token })
        else {
            clock.after(20) {
                answer(.answered(status: 410, reason: "Unregistered", timestamp: clock.wall))
            }
            return
        }
        let fault = simulation.isCalm ? 99 : Int.random(in: 0..<100, using: &simulation.chance)
        switch fault {
        case 0..<4:
            simulation.reached.count("a push answered 503")
            clock.after(30) {
                answer(.answered(status: 503, reason: "ServiceUnavailable", timestamp: nil))
            }
        case 4..<7:
            simulation.reached.count("a push answered 429")
            clock.after(30) {
                answer(.answered(status: 429, reason: "TooManyRequests", timestamp: nil))
            }
        case 7..<11:
            simulation.reached.count("a push never sent")
            clock.after(30) { answer(.notSent) }
        case 11..<16:
            simulation.reached.count("a push without an answer")
            // Taken or not: nobody knows.
            if simulation.chance.once(in: 2) {
                deliver(request, to: device)
            } else {
                lose(request, to: device)
            }
            clock.after(10_000) { answer(.unanswered) }
        case 16..<26:
            simulation.reached.count("a push accepted and dropped")
            lose(request, to: device)
            clock.after(30) { answer(.answered(status: 200, reason: "", timestamp: nil)) }
        default:
            deliver(request, to: device)
            clock.after(30 + simulation.chance.upTo(60)) {
                answer(.answered(status: 200, reason: "", timestamp: nil))
            }
        }
    }

    private func lose(_ request: PushRequest, to device: SimulatedDevice) {
        device.doubtIcon()
        if let collapse = request.collapseID { lost.insert("\(device.id) \(collapse)") }
    }

    private func deliver(_ request: PushRequest, to device: SimulatedDevice) {
        let slowest: Milliseconds = simulation.isCalm ? 300 : 8_000
        taken += 1
        let number = taken
        simulation.clock.after(20 + simulation.chance.upTo(slowest)) { [weak self, weak device] in
            guard let self, let device else { return }
            try device.receivePush(request)
            // APNs promises no order: an older push brings an older number.
            if number < self.newest[device.id] ?? 0 { device.doubtIcon() }
            self.newest[device.id] = max(number, self.newest[device.id] ?? 0)
        }
    }
}

import DeviceModel
import Foundation
import Model
import Testing

@testable import Fleet

/// What lives are drawn, and how delays are counted.
@Suite struct LifeTests {
    static func maker(_ recorded: RecordedTraffic? = nil, days: Int = 3) -> LifeMaker {
        LifeMaker(model: FleetModel(), recorded: recorded, seed: 1, days: days)
    }

    @Test("lives are in order, lie in the days, and are the same each time")
    func lives() {
        let maker = Self.maker()
        let end = fleetStart + 3 * DeviceRules.day
        var devices = 0
        var messages = 0
        var opens = 0
        for user in 0..<400 as Range<UInt64> {
            let life = maker.life(of: user, devicesMax: 2)
            #expect(life.events == maker.life(of: user, devicesMax: 2).events)
            #expect((1...2).contains(life.devices.count))
            #expect(maker.life(of: user, devicesMax: 1).devices.count == 1)
            devices += life.devices.count
            var last = fleetStart
            for event in life.events {
                #expect(event.at >= last && event.device < life.devices.count)
                last = event.at
                switch event.kind {
                case .message:
                    messages += 1
                    #expect(event.at < end)
                case .open: opens += 1
                default: break
                }
            }
        }
        // The model's: a quarter has two devices; 9 in the median and 15 messages in the mean.
        #expect((450...550).contains(devices))
        #expect((12.0...18).contains(Double(messages) / 1_200))
        #expect((7.0...13).contains(Double(opens) / 1_200))
    }

    @Test("a log's messages come to all others, each day anew")
    func recorded() throws {
        typealias Message = RecordedTraffic.Message
        let traffic = try #require(
            RecordedTraffic([
                Message(at: 5_000, conversation: 1, sender: 1),
                Message(at: 1_000, conversation: 1, sender: 0),
                Message(at: 2_000, conversation: 2, sender: 0),
                Message(at: 9_000, conversation: 2, sender: 1),
            ]))
        #expect(RecordedTraffic([]) == nil)
        let maker = Self.maker(traffic, days: 2)
        var seen: Set<[UInt64]> = []
        for user in 0..<40 as Range<UInt64> {
            let life = maker.life(of: user, devicesMax: 1)
            seen.insert(
                life.events.compactMap {
                    guard case .message = $0.kind else { return nil }
                    return $0.at.since(fleetStart)
                })
        }
        let day = DeviceRules.day
        #expect(
            seen == [
                [1_000, day + 1_000], [2_000, day + 2_000], [5_000, day + 5_000],
                [9_000, day + 9_000],
            ])
    }

    @Test("a quantile is at most a sixty-fourth too high, and has no value where many are missing")
    func histogram() {
        var delays = DelayHistogram()
        var all: [UInt64] = []
        var draws = Draws(3, 4)
        for _ in 0..<5_000 {
            let delay = milliseconds(draws.logNormal(median: 20, sigma: 3))
            delays.add(delay)
            all.append(delay)
        }
        all.sort()
        for share in [0.001, 0.25, 0.5, 0.95, 0.99, 1] {
            let exact = all[max(1, Int((share * 5_000).rounded(.up))) - 1]
            let found = delays.quantile(share, of: 5_000) ?? 0
            #expect(found >= exact && found <= exact + exact / 64 + 1, "\(share)")
        }
        #expect(delays.quantile(0.5, of: 10_000) != nil)
        #expect(delays.quantile(0.51, of: 10_000) == nil)
        var double = delays
        double += delays
        #expect(double.count == 10_000)
        #expect(double.quantile(0.5, of: 10_000) == delays.quantile(0.5, of: 5_000))
        let within = delays.cumulative(at: [100, 20_000, .max >> 8])
        #expect(within[0] < within[1] && within[2] == 5_000)
        #expect(abs(Int(within[1]) - 2_500) < 150)
    }
}

import Foundation
import Glibc
import PostgresPeer
import Testing

@testable import Scenario

/// Three nodes on PostgreSQL behind a balancer, through everything that may happen to one of them
/// at a time, while a channel's people talk (README, "What it promises").
@Suite(
    .serialized,
    .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"),
    .enabled(if: Balancer.isInstalled, "haproxy is not installed"))
struct NodeFaultTests {
    @Test("through any single fault nothing is lost, doubled, out of order or wrong on a screen")
    func throughAll() throws {
        signal(SIGPIPE, SIG_IGN)
        let log = try ChatLog("2012-12-15.txt")
        var options = ReplayOptions()
        options.logFile = log.path
        options.isAwake = false
        options.factor = 100
        options.executable = Program.path
        options.remark = { print($0) }
        options.keepsFolder = NodeFaultStage.chosen != nil
        let report = try withExtendedLifetime(log) {
            try Replay.run(options) { try NodeFaultStage(folder: $0) }
        }
        print(report.text)
        #expect(report.failures.isEmpty, "\(report.failures)")
        for fault in report.faults {
            #expect(fault.lost == 0 && fault.duplicated == 0 && fault.outOfOrder == 0, "\(fault)")
            #expect(fault.screensWrong == 0 && fault.iconsWrong == 0, "\(fault)")
        }
    }
}

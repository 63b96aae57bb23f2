import APNsSimulator
import Testing

struct FaultScriptTests {
    @Test func faultsComeInOrderAndToTheirToken() {
        var script = FaultScript()
        #expect(script.add(.silence(delivers: false), count: 2, token: "AB") == true)
        #expect(script.add(.reset(code: 7), count: 1) == true)
        #expect(script.next(path: "/3/device/ab") == .silence(delivers: false))
        #expect(script.next(path: "/3/device/cd") == .reset(code: 7))
        #expect(script.next(path: "/3/device/cd") == nil)
        #expect(script.next(path: "/3/device/ab") == .silence(delivers: false))
        #expect(script.next(path: "/3/device/ab") == nil)
    }

    @Test func theScriptIsBounded() {
        var script = FaultScript()
        #expect(script.add(.reset(code: 7), count: 0) == false)
        for _ in 0..<1_000 { #expect(script.add(.reset(code: 7), count: 1) == true) }
        #expect(script.add(.reset(code: 7), count: 1) == false)
        script.delay(milliseconds: .max)
        #expect(script.delayMilliseconds == 600_000)
        script.clear()
        #expect(script == FaultScript())
    }
}

import APNsSimulator
import Testing

struct FaultScriptTests {
    typealias Match = FaultScript.Match

    @Test func faultsComeInOrderAndToTheirToken() {
        var script = FaultScript()
        #expect(script.add(.silence(delivers: false), count: 2, match: Match(token: "AB")) == true)
        #expect(script.add(.reset(code: 7), count: 1) == true)
        #expect(script.next(Match(token: "ab")) == .silence(delivers: false))
        #expect(script.next(Match(token: "cd")) == .reset(code: 7))
        #expect(script.next(Match(token: "cd")) == nil)
        #expect(script.next(Match(token: "ab")) == .silence(delivers: false))
        #expect(script.next(Match(token: "ab")) == nil)
    }

    @Test func theNthOfAnAppInAnEnvironment() {
        var script = FaultScript()
        let app = Match(topic: "org.example.chat", environment: .development, skip: 2)
        #expect(script.add(.cut, count: 1, match: app) == true)
        func next(_ topic: String, _ environment: APNsEnvironment) -> FaultScript.Fault? {
            script.next(
                Match(token: "ab", topic: topic, environment: environment, connection: 3))
        }
        #expect(next("org.example.chat", .production) == nil)
        #expect(next("org.example.other", .development) == nil)
        #expect(next("org.example.chat", .development) == nil)
        #expect(next("org.example.chat", .development) == nil)
        #expect(next("org.example.chat", .development) == .cut)
        #expect(next("org.example.chat", .development) == nil)
        #expect(script.add(.shutdown, count: 1, match: Match(connection: 4)) == true)
        #expect(next("org.example.chat", .development) == nil)
        #expect(script.next(Match(connection: 4)) == .shutdown)
    }

    @Test func theScriptIsBounded() {
        var script = FaultScript()
        #expect(script.add(.reset(code: 7), count: 0) == false)
        #expect(script.add(.reset(code: 7), count: 1, match: Match(skip: -1)) == false)
        for _ in 0..<1_000 { #expect(script.add(.reset(code: 7), count: 1) == true) }
        #expect(script.add(.reset(code: 7), count: 1) == false)
        script.delay(milliseconds: .max)
        #expect(script.delayMilliseconds == 600_000)
        script.clear()
        #expect(script == FaultScript())
    }
}

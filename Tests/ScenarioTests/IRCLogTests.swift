import Testing

@testable import Scenario

@Suite struct IRCLogTests {
    @Test("messages, joins, parts, renames, midnight; everything else is left out")
    func reading() {
        let log = IRCLog(
            text: """
                === early [n=x@host]  has joined #ubuntu
                [23:58] <Anna> hi <there> > all
                === Bob [i=b@host]  has joined #ubuntu
                === mode/#ubuntu [+o anna]  by ChanServ
                [23:59]  * anna waves
                === Anna is now known as anna_away
                [00:01] <ANNA_away> still me
                === bob [i=b@host]  has left #ubuntu ["bye"]
                [00:02] <anna> somebody else took the nick
                not a line
                [00:03] <> nobody
                [24:00] <bob> no such time
                [00:02] <bob> a small slip back
                """)
        typealias Event = IRCLog.Event
        #expect(
            log.events == [
                Event(minute: 0, user: "early", kind: .join),
                Event(minute: 0, user: "anna", kind: .message(text: "hi <there> > all")),
                Event(minute: 0, user: "bob", kind: .join),
                Event(minute: 3, user: "anna", kind: .message(text: "still me")),
                Event(minute: 3, user: "bob", kind: .part),
                Event(
                    minute: 4, user: "anna.2",
                    kind: .message(text: "somebody else took the nick")),
                Event(minute: 5, user: "bob", kind: .message(text: "a small slip back")),
            ])
        #expect(log.messages == 4)
        #expect(log.hasParts)
    }
}

import AppLife
import Model
import Testing
import Wire

/// What stands on the screen, as transcripts: each is a row of "The app's half" in
/// Protocol/push.md.
@Suite struct AppScreenTests {
    private func woken(_ system: inout System) {
        system.push(system.life.nextDeadline == nil ? system.now.milliseconds : 1)
    }

    /// In the background, awake for a wake.
    private func awake() -> System {
        var system = System()
        system.give(.launched)
        woken(&system)
        _ = system.take()
        return system
    }

    @Test("what stands already, by the server's alert, is not shown again")
    func whatTheServerAlertedIsNotShownAgain() {
        var system = awake()
        // The alert came before the page that does not know of it yet.
        system.screen = [1]
        system.apply(1, 2)
        #expect(system.take() == ["show 2"])
        #expect(system.screen == [1, 2])
        #expect(system.owed.isEmpty)
    }

    @Test("an edit replaces the text of what stands, without sound; what went is told anew")
    func anEditReplacesTheTextThatStands() {
        var system = awake()
        system.screen = [1]
        system.edited = [1, 2]
        system.apply(1, 2)
        #expect(system.take() == ["replace 1", "show 2"])
    }

    @Test("an edit of what the server alerted replaces what stands, and rings for nobody")
    func anEditOfAnAlertReplacesItOnly() {
        var system = awake()
        system.screen = [1]
        (system.edited, system.alerted) = ([1, 2], [1, 2])
        system.apply(1, 2)
        // The second was put aside by its person.
        #expect(system.take() == ["replace 1"])
        #expect(system.owed.isEmpty)
    }

    @Test("a text that was taken back stands nowhere: not beside the app, nor muted")
    func anEditReplacesInFrontAndMutedToo() {
        var system = System()
        system.screen = [1, 2]
        system.give(.launched, .becameActive, .onScreen(.everything))
        _ = system.take()
        system.edited = [1, 2, 3]
        system.apply(1, 3)
        #expect(system.take() == ["replace 1"])
        system.standings[2] = .muted
        system.owed = [2]
        system.give(.enteredBackground(until: system.now + 5_000), .applied)
        #expect(system.take() == ["tell background", "replace 2"])
    }

    @Test("an alert that comes in front is shown, unless its person sees it or it is over")
    func anAlertInFrontIsPresented() {
        var system = System()
        let other = ConversationID(high: 1, low: 1)
        system.give(.launched, .becameActive, .onScreen(.conversation(System.room)))
        for standing in [NotificationStanding.shows, .missing, .unknown] {
            #expect(system.life.presents(other, standing: standing) == .all)
            #expect(system.life.presents(nil, standing: standing) == .all)
        }
        #expect(system.life.presents(System.room, standing: .shows) == .nothing)
        // Its person may leave before it is here: then it stands in the list.
        #expect(system.life.presents(System.room, standing: .missing) == .list)
        #expect(system.life.presents(System.room, standing: .unknown) == .list)
        #expect(system.life.presents(other, standing: .over) == .nothing)
        #expect(system.life.presents(other, standing: .muted) == .nothing)
        // Covered, nobody sees it.
        system.give(.resignedActive)
        #expect(system.life.presents(System.room, standing: .shows) == .all)
    }

    @Test("what replaces a text in front goes into the list, without a banner, unless it is over")
    func aQuietOneGoesIntoTheList() {
        var system = System()
        let other = ConversationID(high: 1, low: 1)
        system.give(.launched, .becameActive)
        for screen in [OnScreen.nothing, .everything, .conversation(System.room)] {
            system.give(.onScreen(screen))
            for standing in [NotificationStanding.shows, .muted, .missing, .unknown] {
                for place in [System.room, other, nil] {
                    let shown = system.life.presents(place, standing: standing, isQuiet: true)
                    #expect(shown == .list, "\(screen), \(standing)")
                }
            }
            #expect(system.life.presents(other, standing: .over, isQuiet: true) == .nothing)
        }
    }

    @Test("no screen tells of what is not in the feed: it is shown, also over all of the app")
    func whatIsNotInTheFeedIsPresented() {
        var system = System()
        system.give(.launched, .becameActive, .onScreen(.everything))
        #expect(system.life.presents(nil, standing: .unknown) == .all)
        // An announcement that is here, and a message that comes.
        #expect(system.life.presents(nil, standing: .shows) == .nothing)
        #expect(system.life.presents(System.room, standing: .missing) == .list)
    }

    @Test("in front nothing is shown of what is on the screen, and everything else is")
    func inFrontOnlyWhatIsNotOnTheScreen() {
        var system = System()
        system.give(.launched, .becameActive, .onScreen(.conversation(System.room)))
        _ = system.take()
        system.apply(1)
        #expect(system.take().isEmpty)
        #expect(system.owed.isEmpty)
        system.give(.onScreen(.conversation(ConversationID(high: 1, low: 1))))
        system.apply(2)
        #expect(system.take() == ["show 2"])
        system.give(.onScreen(.everything))
        system.apply(3)
        #expect(system.take().isEmpty)
        // Covered, nobody reads it.
        system.give(.resignedActive)
        system.apply(4)
        #expect(system.take() == ["tell inactive", "show 4"])
    }

    @Test("a muted conversation shows nothing new, and what stands may stand")
    func aMutedConversationShowsNothingNew() {
        var system = awake()
        system.screen = [1]
        (system.standings[1], system.standings[2]) = (.muted, .muted)
        system.owed = [2]
        system.give(.applied, .synced)
        #expect(system.screen == [1])
        #expect(system.owed.isEmpty)
    }

    @Test("a message read on another device takes exactly its notification away")
    func whatWasReadElsewhereGoesAlone() {
        var system = awake()
        system.apply(1, 2, 3)
        system.standings[2] = .over
        _ = system.take()
        system.give(.unread(2), .applied, .synced)
        #expect(system.take().prefix(2) == ["badge 2", "remove 2"])
        #expect(system.screen == [1, 3])
    }

    @Test("also when the app was killed between")
    func afterAKillToo() {
        var system = awake()
        system.apply(1, 2, 3)
        system.give(.synced)
        system.kill()
        system.give(.launched)
        woken(&system)
        system.standings[2] = .over
        system.give(.applied, .synced)
        #expect(system.screen == [1, 3])
    }

    @Test("a process that was killed before it told leaves word to the next")
    func aKilledAppTellsWhatItOwes() {
        var system = awake()
        // Stored with their page; the process did not come further.
        (system.standings[1], system.standings[2]) = (.shows, .over)
        system.owed = [1, 2]
        system.kill()
        system.give(.launched)
        woken(&system)
        #expect(system.screen == [1])
        #expect(system.owed.isEmpty)
    }

    @Test("killed between showing and noting it, the same notification stands once")
    func killedBeforeItWasNoted() {
        var system = awake()
        system.standings[1] = .shows
        (system.screen, system.owed) = ([1], [1])
        system.kill()
        system.give(.launched)
        woken(&system)
        #expect(system.take() == ["killed", "store", "start background"])
        #expect(system.screen == [1])
        #expect(system.owed.isEmpty)
    }

    @Test("what the whole feed does not hold goes, but nothing that a page may still bring")
    func whatTheFeedDoesNotHoldGoesOnceInSync() {
        var system = System()
        system.screen = [1, 2]
        system.give(.launched)
        woken(&system)
        // An alert for what the server writes down after this connection was made.
        system.screen.append(3)
        system.apply(2)
        #expect(system.screen == [1, 2, 3])
        system.give(.synced)
        #expect(system.screen == [2, 3])
    }

    @Test("a connection that was lost begins anew with what stands then")
    func aLostConnectionBeginsAnew() {
        var system = awake()
        system.screen = [3]
        system.give(.applied)
        #expect(system.screen == [3])
        system.give(.disconnected, .synced)
        #expect(system.screen.isEmpty)
    }

    @Test("the icon shows what each sync says, in every state")
    func theIconIsSetByEverySync() {
        var system = awake()
        system.give(.unread(7), .synced)
        #expect(system.icon == 7)
        system.give(.becameActive, .unread(2), .synced)
        #expect(system.icon == 2)
        system.give(.enteredBackground(until: system.now + 5_000), .unread(0), .synced)
        #expect(system.icon == 0)
    }
}

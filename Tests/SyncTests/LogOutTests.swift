import SyncClient
import Testing
import Wire

/// What a client takes for the result of its user's logout (MSG-7), and what it does not.
@Suite struct LogOutTests {
    private func loggingOut() throws -> Phone {
        var phone = try Phone.inSync()
        let number = try phone.store.enqueue(.forgetDevice(ForgetDevice()), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == ["send MUTATE 1"])
        return phone
    }

    @Test func aLogoutStaysOne() throws {
        // By its result; by a close that came instead; by a challenge after a cut.
        let ends: [(inout Phone) -> [String]] = [
            { $0.receive(.mutationResult(MutationResult(number: 1))) },
            { $0.close(.revoked) },
            {
                $0.close()
                $0.pass(5_000)
                $0.connect()
                return $0.receive(.challenge(Challenge(reason: .revoked)), request: 1)
            },
        ]
        for end in ends {
            var phone = try loggingOut()
            let lines = end(&phone)
            #expect(lines.contains("loggedOut") && lines.contains("forget session"))
            #expect(phone.store.outbox.isEmpty && phone.store.results[1]?.code == 0)
            #expect(phone.run { $0.userRefresh(now: $1) } == [])
            #expect(phone.session.nextDeadline == nil)
            #expect(phone.start() == ["connect"])
            #expect(phone.connect() == ["send HELLO no token at 10"])
        }
    }

    @Test("MSG-7: a logout that the server has not carried out is sent again, after a login")
    func aLogoutIsNotTakenForDone() throws {
        let ends: [(String, (inout Phone) throws -> [String])] = [
            (
                "its HELLO was not read",
                {
                    $0 = try Phone()
                    _ = try $0.store.enqueue(.forgetDevice(ForgetDevice()), at: $0.wall)
                    $0.run { $0.mutationQueued(1, now: $1) }
                    $0.start()
                    $0.connect()
                    return $0.receive(.challenge(Challenge(reason: .revoked)), request: 1)
                }
            ),
            (
                "the token was too old",
                {
                    $0.close()
                    $0.pass(5_000)
                    $0.connect()
                    return $0.receive(.challenge(Challenge(reason: .expired)), request: 1)
                }
            ),
            ("it was not answered yet", { $0.receive(.challenge(Challenge(reason: .expired))) }),
        ]
        for (why, end) in ends {
            var phone = try loggingOut()
            #expect(try end(&phone) == ["need identity token"], "\(why)")
            #expect(phone.store.outbox.count == 1 && phone.store.results[1] == nil)
            phone.run { $0.identityToken("jwt", now: $1) }
            let lines = phone.receive(Phone.welcome(), request: 1)
            let isWaiting = why == "it was not answered yet"
            #expect(lines.contains("send MUTATE 1") != isWaiting, "\(why)")
            #expect(
                phone.receive(.mutationResult(MutationResult(number: 1))).contains("loggedOut"))
        }
    }

    @Test("MSG-7: only CLOSE 2004 says that a logout was carried out")
    func otherClosesAreNoLogout() throws {
        for code in [Code.authRequired, .nonceExpired, .tokenInvalid, .deviceMismatch] {
            var phone = try loggingOut()
            #expect(phone.close(code).contains("loggedOut") == false)
            #expect(phone.store.outbox.count == 1)
        }
        // Queued while the user logs in, it was never sent.
        var phone = try Phone.inSync()
        phone.receive(.challenge(Challenge(reason: .revoked)))
        let number = try phone.store.enqueue(.forgetDevice(ForgetDevice()), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == [])
        #expect(phone.close(.revoked).contains("loggedOut") == false)
    }

    @Test("MSG-7: a logout that was sent is known as such though the store fails meanwhile")
    func aLogoutBesideAFault() throws {
        var phone = try loggingOut()
        phone.store.fault = .full("")
        #expect(phone.receive(Phone.delta(10, [11])).contains("store failed"))
        phone.store.fault = nil
        phone.pass(5_000)
        phone.connect()
        let lines = phone.receive(.challenge(Challenge(reason: .revoked)), request: 1)
        #expect(lines.contains("loggedOut"))
    }

    /// Ends the process, and begins another one on its store.
    private func next(_ phone: inout Phone, says hello: String = "at 10") throws {
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start()
        #expect(phone.connect() == ["send HELLO token \(hello)"])
    }

    @Test("MSG-7: what a process before this one has sent is carried out by a revoked token")
    func aLogoutOfAnEarlierProcess() throws {
        let ends: [(inout Phone) -> [String]] = [
            { $0.receive(.challenge(Challenge(reason: .revoked)), request: 1) },
            { $0.close(.revoked) },
        ]
        for end in ends {
            var phone = try loggingOut()
            try next(&phone)
            #expect(end(&phone).contains("loggedOut"))
            #expect(phone.store.outbox.isEmpty && phone.store.results[1]?.code == 0)
        }
    }

    @Test("MSG-7: what a process before this one has queued and not sent is not carried out")
    func aLogoutThatNeverLeft() throws {
        let ends: [(inout Phone) -> [String]] = [
            { $0.receive(.challenge(Challenge(reason: .revoked)), request: 1) },
            {
                _ = $0.close(.revoked)
                $0.pass(5_000)
                $0.connect()
                return $0.receive(.challenge(Challenge(reason: .first)), request: 1)
            },
        ]
        for end in ends {
            var phone = try Phone()
            let number = try phone.store.enqueue(.forgetDevice(ForgetDevice()), at: phone.wall)
            #expect(phone.run { $0.mutationQueued(number, now: $1) } == [])
            try next(&phone)
            #expect(end(&phone) == ["need identity token"])
            phone.run { $0.identityToken("jwt", now: $1) }
            // It leaves now, and its end is its result.
            #expect(phone.receive(Phone.welcome(), request: 1).contains("send MUTATE 1"))
            #expect(phone.close(.revoked).contains("loggedOut"))
        }
    }

    @Test("MSG-7: a logout does not leave before the store has it that it does")
    func aLogoutThatCannotBeMarked() throws {
        var phone = try Phone.inSync()
        let number = try phone.store.enqueue(.forgetDevice(ForgetDevice()), at: phone.wall)
        // It is read, and then the disk is full.
        (phone.store.callsBeforeFault, phone.store.fault) = (1, .full(""))
        let lines = phone.run { $0.mutationQueued(number, now: $1) }
        #expect(lines.first == "store failed" && !lines.contains("send MUTATE 1"))
        phone.pass(5_000)
        phone.connect()
        #expect(
            phone.receive(.challenge(Challenge(reason: .revoked)), request: 1)
                == ["need identity token"])
        phone.run { $0.identityToken("jwt", now: $1) }
        #expect(phone.receive(Phone.welcome(), request: 1).contains("send MUTATE 1"))
    }

    @Test("MSG-7: a logout that is sent again under another number is still one that was sent")
    func aLogoutWithANewNumber() throws {
        var phone = try Phone.inSync(mutations: 1)
        let number = try phone.store.enqueue(.forgetDevice(ForgetDevice()), at: phone.wall)
        #expect(phone.run { $0.mutationQueued(number, now: $1) } == ["send MUTATE 2"])
        let taken = MutationResult(number: 1, code: Code.numberTaken.rawValue, retry: .none)
        let lines = phone.receive(.mutationResult(taken))
        #expect(lines.contains("renumber from 1 above 0"))
        #expect(try phone.store.load().hasSentLogout)
        // The message is sent again with HELLO, and the logout behind it alone.
        try next(&phone, says: "at 10 m3")
        #expect(phone.close(.revoked).contains("loggedOut"))
    }
}

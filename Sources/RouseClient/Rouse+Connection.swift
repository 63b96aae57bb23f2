import Model
import SyncClient
import Wire

// Bytes of a transport to frames, and back.
extension Rouse {
    func connect() {
        disconnect()
        let made = transport.connect()
        connection = made
        decoder = FrameDecoder(limits: .beforeWelcome)
        let number = connections
        Task { [weak self] in
            for await event in made.events {
                // `nil`: the app has let go of this client without closing it.
                guard await self?.heard(event, number) != nil else { return made.close() }
                // What it led to comes first: the next is not read before.
                await self?.carrying?.value
            }
        }
    }

    func disconnect() {
        connection?.close()
        connection = nil
        connections += 1
    }

    func signed(_ token: String?, _ number: UInt64) {
        // A token over the nonce of an older connection helps nobody.
        guard number == connections else { return }
        if token == nil { disconnectReason = "the app's backend did not say who this is" }
        hear { $0.identityToken(token, now: $1) }
    }

    func heard(_ event: TransportEvent, _ number: UInt64) async {
        guard number == connections else { return }
        switch event {
        case .connected: hear { $0.connected(now: $1) }
        case .received(let bytes): received(bytes, number)
        case .closed(let why):
            journal(.lost(why: why))
            (disconnectReason, lostWhy) = (why, why)
            connection = nil
            connections += 1
            hear { $0.closed(now: $1) }
        }
    }

    func received(_ bytes: [UInt8], _ number: UInt64) {
        decoder.append(bytes)
        let (now, wall) = (clock.now, clock.wall)
        do {
            while number == connections, let frame = try decoder.next() {
                let effects = replica?.received(frame, now: now, wall: wall) ?? []
                // Frames behind a WELCOME may be as large as that allows, and behind the end of the
                // connection there is none.
                perform(effects)
            }
            perform(replica?.framesEnded(now: now, wall: wall) ?? [])
        } catch {
            perform(replica?.framesEnded(now: now, wall: wall) ?? [])
            hear { $0.decodingFailed(error, now: $1) }
        }
    }
}

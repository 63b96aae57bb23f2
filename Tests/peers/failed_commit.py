#!/usr/bin/python3
"""Sends messages while the server's commits fail: no result says that one was taken, nobody is
shown one, and sent again afterwards each has its one effect.

usage: failed_commit.py --port P --ca FILE --app APP --key FILE --kid KID --folder DIR

Commits fail as long as DIR/fail-commits exists.
"""
import os
import time

from client import Client, arguments, identity_token, pb

TRIES = 5
# Longer than the server's turn over the heads of connected users (10 s).
QUIET_S = 12


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()

    def signer(user):
        return lambda nonce: identity_token(key, given.kid, given.app, user, nonce)

    place = dict(port=given.port, ca=given.ca, app=given.app, host=given.host)
    anna, live, hint = Client(**place), Client(**place, features=["live"]), Client(**place)
    anna.login(signer("anna"))
    live.login(signer("bob"))
    hint.login(signer("bob"))
    conversation = os.urandom(16)
    made = anna.mutate(create_conversation=pb.CreateConversation(
        conversation=conversation, participants=["bob"]))
    assert made.code == 0, made

    def message(text):
        return pb.SendMessage(
            conversation=conversation, message=os.urandom(16),
            parts=[pb.Part(mime_type="text/plain", content=text.encode())])

    first = anna.mutate(send_message=message("first"))
    assert first.code == 0 and first.position == 1, first

    def texts(client):
        return [m.parts[0].content.decode() for m in client.messages(conversation)]

    while not texts(live):
        live.expect(pb.Delta)
    while not texts(hint):
        hint.expect(pb.SyncRequest)
        hint.sync()
    anna.sync()

    switch = os.path.join(given.folder, "fail-commits")
    with open(switch, "wb"):
        pass
    second = message("second")
    number = anna.numbers + 1
    for _ in range(TRIES):
        anna.ask(pb.Mutation(number=number, send_message=second))
        while True:
            frame = anna.read()
            assert frame is not None, "the connection ended"
            if isinstance(frame[0], pb.MutationResult):
                break
        assert 1000 <= frame[0].code < 2000, f"answered without a commit: {frame[0]}"
    late = Client(**place)
    late.connect()
    late.send(late.hello())
    late.read()
    end = time.monotonic() + QUIET_S
    while time.monotonic() < end:
        for client in (live, hint, late):
            client.socket.settimeout(0.2)
            try:
                frame = client.read()
            except TimeoutError:
                continue
            assert frame is not None, "the connection ended"
            assert isinstance(frame[0], pb.Ping), f"shown uncommitted: {frame[0]}"
    for client in (live, hint):
        client.socket.settimeout(20)
    print("no result, nothing shown")

    os.remove(switch)
    sent = None
    for _ in range(50):
        anna.ask(pb.Mutation(number=number, send_message=second))
        sent = anna.expect(pb.MutationResult)
        if sent.code == 0:
            break
        time.sleep(0.2)
    assert sent.code == 0 and sent.position == 2, sent
    while len(texts(live)) < 2:
        live.expect(pb.Delta)
    while len(texts(hint)) < 2:
        hint.expect(pb.SyncRequest)
        hint.sync()
    assert texts(live) == texts(hint) == ["first", "second"], (texts(live), texts(hint))
    print("sent again it is there once: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

#!/usr/bin/python3
"""Typing reaches the other participant who looks, and nobody else (Protocol/signals.md).

usage: signals.py --port P --ca FILE --app APP --key FILE --kid KID [--host H]
"""
import os

from client import Client, arguments, identity_token, pb


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()

    def device(user, *features):
        client = Client(given.port, given.ca, given.app, given.host, features=features)
        client.login(lambda nonce: identity_token(key, given.kid, given.app, user, nonce))
        assert ("signal" in client.welcome.features) == ("signal" in features), client.welcome
        return client

    anna = device("anna", "live", "signal")
    bob, zoe = device("bob", "live", "signal"), device("zoe", "live", "signal")
    conversation = os.urandom(16)
    made = anna.mutate(create_conversation=pb.CreateConversation(
        conversation=conversation, participants=["bob"]))
    assert made.code == 0, made
    zoe.send(pb.Signal(conversation=conversation, kind=pb.SIGNAL_KIND_TYPING))
    anna.send(pb.Signal(conversation=conversation, kind=pb.SIGNAL_KIND_TYPING, user="zoe"))
    heard = bob.expect(pb.Signal)
    assert (heard.conversation, heard.kind, heard.ttl_ms, heard.user) == (
        conversation, pb.SIGNAL_KIND_TYPING, 6000, "anna"), heard
    # What comes after it shows that nothing else came before: neither back to anna nor to zoe.
    for client in (anna, zoe):
        client.send(pb.Ping(next_ms=60000), 77)
        while True:
            body, _ = client.read()
            assert not isinstance(body, pb.Signal), body
            if isinstance(body, pb.Pong):
                break
    print("bob saw anna typing, nobody else did: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

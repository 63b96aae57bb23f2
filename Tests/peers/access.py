#!/usr/bin/python3
"""One user is asked who he is, suspended, let in again and revoked (Protocol/session.md, SES-21 to
SES-24). The test changes the store whenever this program says that it is ready.

usage: access.py --port P --ca FILE --app APP --key FILE --kid KID --folder DIR [--host H]
"""
import os
import time

from client import Client, arguments, identity_token, pb


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()

    def sign(nonce, user="anna"):
        return identity_token(key, given.kid, given.app, user, nonce)

    def step(number):
        """Lets the test do something and waits until it is committed."""
        name = os.path.join(given.folder, f"step-{number}")
        with open(name, "w", encoding="utf-8"):
            pass
        while not os.path.exists(name + "-done"):
            time.sleep(0.002)

    def last(client):
        """The last frame before the end."""
        body = None
        while True:
            frame = client.read()
            if frame is None:
                return body
            body = frame[0]

    anna = Client(given.port, given.ca, given.app, given.host, features=["live"])
    anna.login(sign)
    first = anna.token
    step(0)
    asked = anna.expect(pb.Challenge)
    assert asked.reason == pb.CHALLENGE_REASON_REVOKED, asked
    anna.ask(pb.Mutation(number=1, create_conversation=pb.CreateConversation(
        conversation=os.urandom(16), participants=["bob"])))
    anna.send(pb.Ping(next_ms=60000), 9)
    body, _ = anna.read()
    assert isinstance(body, pb.Pong), f"the mutation was to wait: {body}"
    anna.send(pb.Authenticate(identity_token=sign(asked.nonce)))
    body, _ = anna.read()
    assert isinstance(body, pb.Welcome) and body.session_token not in (b"", first), body
    anna.token = body.session_token
    assert anna.expect(pb.MutationResult).code == 0
    print("asked on the open connection, and went on")

    step(1)
    closed = last(anna)
    assert isinstance(closed, pb.Close) and closed.code == 2005, closed
    anna.connect()
    anna.send(anna.hello())
    closed = last(anna)
    assert isinstance(closed, pb.Close) and closed.code == 2005, closed

    step(2)
    anna.login(sign)
    print("suspended, and let in again with the same token")

    step(3)
    closed = last(anna)
    assert isinstance(closed, pb.Close) and closed.code == 2004, closed
    anna.connect()
    anna.send(anna.hello())
    body, _ = anna.read()
    assert isinstance(body, pb.Challenge) and body.reason == pb.CHALLENGE_REASON_REVOKED, body
    print("revoked at once: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

#!/usr/bin/python3
"""A device that is logged out while a request of it is on its way to the store: prints the code of
the CLOSE it gets.

usage: overtaken.py --port P --ca FILE --app APP --key FILE --kid KID --folder DIR

It makes DIR/in when it is logged in, and sends the request when there is DIR/go.
"""
import os
import time

from client import Client, arguments, identity_token, pb


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    client = Client(given.port, given.ca, given.app, given.host)
    client.login(lambda nonce: identity_token(key, given.kid, given.app, "anna", nonce))
    # What the login left to write is written.
    time.sleep(2)
    with open(os.path.join(given.folder, "in"), "w", encoding="utf-8"):
        pass
    end = time.monotonic() + 60
    while not os.path.exists(os.path.join(given.folder, "go")):
        assert time.monotonic() < end, "nobody said go"
        time.sleep(0.01)
    client.ask(pb.Mutation(
        number=client.welcome.mutation_floor + 1, create_conversation=pb.CreateConversation(
            conversation=os.urandom(16), participants=["bob"])))
    while True:
        body = client.read()[0]
        assert not isinstance(body, pb.MutationResult), body
        if isinstance(body, pb.Close):
            print("CLOSE", body.code)
            return


if __name__ == "__main__":
    main(arguments(__doc__))

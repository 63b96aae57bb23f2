#!/usr/bin/python3
"""Publishes over HTTP and sends mutations over TLS, one after the other, while somebody watches the
server's system calls. Prints the local ports of both connections.

usage: traced.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
"""
import os

from client import Backend, Client, arguments, identity_token, pb

ROUNDS = 20
# Larger than anything else these connections carry, so that it is found among the calls.
CONTENT = 6000


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    backend = Backend(given)
    # Its users have no devices: nobody but the publisher is answered.
    quiet = backend.create("carol", "dave")
    for number in range(ROUNDS):
        status, answer = backend.publish(quiet, "carol", f"{number}".ljust(CONTENT))
        assert status == 201, answer
    anna = Client(given.port, given.ca, given.app, given.host)
    anna.login(lambda nonce: identity_token(key, given.kid, given.app, "anna", nonce))
    conversation = os.urandom(16)
    made = anna.mutate(create_conversation=pb.CreateConversation(
        conversation=conversation, participants=["carol"]))
    assert made.code == 0, made
    for number in range(ROUNDS):
        sent = anna.mutate(send_message=pb.SendMessage(
            conversation=conversation, message=os.urandom(16),
            parts=[pb.Part(mime_type="text/plain", content=os.urandom(CONTENT))]))
        assert sent.code == 0, sent
    print("backend", backend.connection.sock.getsockname()[1])
    print("device", anna.socket.getsockname()[1])
    anna.close()


if __name__ == "__main__":
    main(arguments(__doc__))

#!/usr/bin/python3
"""A phone with a push token that APNs does not know: the app's webhook is told that it was dropped,
as the feedback address tells it, and never the token itself.

usage: dropped.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
"""
import hashlib
import os

from client import Backend, Client, arguments, identity_token, pb
from webhooks import Receiver

TOPIC = "org.example.chat"
SECRET = "a-secret-of-thirty-characters-"


class Bodies(Receiver):
    """Keeps the bodies as they came, too."""

    def __init__(self):
        super().__init__()
        self.bodies = []

    def check(self, headers, body):
        super().check(headers, body)
        self.bodies.append(body)


def hello_with(token, given, user):
    """A phone that registers the token and goes to sleep."""
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    phone = Client(port=given.port, ca=given.ca, app=given.app, host=given.host)
    phone.connect()
    hello = phone.hello()
    hello.push.token, hello.push.topic = token, TOPIC
    hello.push.environment = pb.PUSH_ENVIRONMENT_PRODUCTION
    phone.send(hello)
    challenge, _ = phone.read()
    phone.send(pb.Authenticate(
        identity_token=identity_token(key, given.kid, given.app, user, challenge.nonce)))
    assert phone.expect(pb.Welcome).push_token_held
    phone.send(pb.Close(code=5000))
    phone.socket.close()
    text = phone.device.hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


def main(given):
    backend = Backend(given)
    receiver = Bodies()
    receiver.secrets = [SECRET]
    receiver.start()
    status, hook = backend.call("POST", "/v1/webhooks", {
        "url": f"http://127.0.0.1:{receiver.port}/", "secret": SECRET,
        "events": ["device.token-dropped"]})
    assert status == 201, hook
    tokens = [os.urandom(32), os.urandom(32)]
    devices = []
    for number, token in enumerate(tokens):
        devices.append(hello_with(token, given, "carol"))
        conversation = backend.create("anna", "carol")
        assert backend.publish(conversation, "anna", f"line {number}")[0] == 201
        receiver.wait("the drop", lambda: len(receiver.events) > number)
    status, told = backend.call("GET", "/v1/push/feedback")
    assert status == 200 and len(told["dropped"]) == 2, told
    for event, row, device, token in zip(receiver.events, told["dropped"], devices, tokens):
        assert event["kind"] == "device.token-dropped", event
        assert event["device_id"] == device and event["user"] == "carol", (event, device)
        assert event["dropped_token"] == row and "conversation_id" not in event, (event, row)
        assert row["token_sha256"] == hashlib.sha256(token).hexdigest(), row
        assert row["status"] == 400 and row["reason"] == "BadDeviceToken", row
        assert not any(token.hex().encode() in body.lower() for body in receiver.bodies)
    assert not receiver.problems, receiver.problems
    receiver.stop()
    print("told what was dropped: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

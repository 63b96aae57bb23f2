#!/usr/bin/python3
"""Plays a story in which every secret there is passes through the server, by good ways and bad
ones, and writes each down for whoever searches the server's files for it.

usage: secrets.py TOKEN --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
                  --folder DIR

TOKEN is a push token the simulator knows, in hex. DIR/secrets.json becomes a list of
{"name", "kind", "hex"}.
"""
import json
import os
import sys
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from client import Backend, Client, arguments, identity_token, pb
from webhooks import Receiver

TOPIC = "org.example.chat"
FOUND = []


def secret(kind, name, value):
    """Notes a secret and gives it back."""
    content = value.encode() if isinstance(value, str) else bytes(value)
    FOUND.append({"kind": kind, "name": name, "hex": content.hex()})
    return value


def noted_token(name, token):
    """Each part of a JWT is looked for by itself; the header says nothing secret."""
    for part, what in zip(token.split(".")[1:], ("claims", "signature")):
        if part:
            secret("identity token", f"{name}, {what}", part)
    return token


def main(given, push_token):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()).decode()
    place = dict(port=given.port, ca=given.ca, app=given.app, host=given.host)
    secret("API key", "the app's", given.api_key)

    def signer(user, name, **changes):
        return lambda nonce: noted_token(
            name, identity_token(changes.get("key", key), given.kid, given.app, user, nonce))

    # Logins: good, refused, too old, and with session tokens right and wrong.
    anna = Client(**place, features=["live"])
    anna.login(signer("anna", "anna's"))
    secret("session token", "anna's", anna.token)
    for name, make in [
            ("signed with another key", signer("anna", "another key's", key=other)),
            ("expired", lambda nonce: noted_token("expired", identity_token(
                key, given.kid, given.app, "anna", nonce, exp=int(time.time()) - 600))),
            ("cut short", lambda nonce: signer("anna", "cut short")(nonce)[:-5]),
            ("no token", lambda nonce: secret("identity token", "no token", "tellnobody" * 5))]:
        refused = Client(**place)
        try:
            refused.login(make)
            raise AssertionError(f"let in: {name}")
        except RuntimeError:
            pass
    wrong = Client(**place)
    wrong.token = secret("session token", "one nobody has", os.urandom(32))
    wrong.login(signer("anna", "after a wrong session token"))
    secret("session token", "anna's second device's", wrong.token)
    again = Client(**place, device=anna.device, features=["live"])
    again.token, again.cursor, again.objects = anna.token, anna.cursor, anna.objects
    again.login(signer("anna", "never asked for"))
    anna = again
    secret("session token", "anna's next", anna.token)

    # Phones with a push token that is known, and one that is not.
    phones = []
    for user, token in [("bob", bytes.fromhex(push_token)), ("carol", os.urandom(32))]:
        secret("push token", user, token)
        phone = Client(**place)
        phone.connect()
        hello = phone.hello()
        hello.push.token, hello.push.topic = token, TOPIC
        hello.push.environment = pb.PUSH_ENVIRONMENT_PRODUCTION
        phone.send(hello)
        challenge, _ = phone.read()
        phone.send(pb.Authenticate(identity_token=signer(user, f"{user}'s")(challenge.nonce)))
        welcome = phone.expect(pb.Welcome)
        assert welcome.push_token_held, welcome
        secret("session token", f"{user}'s", welcome.session_token)
        phone.send(pb.Close(code=5000))
        phone.socket.close()
        phones.append(phone)

    # A webhook with a secret that was given, and from then on with one that was drawn; and one
    # with a receiver that is not there. A URL may hold a secret of the receiver's.
    backend = Backend(given)
    receiver = Receiver()
    receiver.start()
    hooks = []
    for port, name in [(receiver.port, "of a receiver"), (9, "of nobody")]:
        inside = secret("webhook secret", f"in the URL {name}", os.urandom(12).hex())
        signs = secret("webhook secret", name, "whs-" + os.urandom(20).hex())
        status, hook = backend.call("POST", "/v1/webhooks", {
            "url": f"http://127.0.0.1:{port}/?key={inside}", "secret": signs})
        assert status == 201, hook
        status, rotated = backend.call("POST", f"/v1/webhooks/{hook['id']}/secrets", {})
        assert status == 201, rotated
        hooks.append([secret("webhook secret", f"drawn, {name}", rotated["secret"]), signs])
    receiver.secrets = hooks[0]

    # Messages by a device and by the backend, taken and refused.
    words = [secret("message text", name, f"{name} {os.urandom(12).hex()}") for name in (
        "text of a device", "push title of a device", "push body of a device",
        "text of the backend", "push body of the backend", "text of a refused mutation",
        "text of a refused publish", "text with a wrong key", "text that is no JSON")]
    conversation = backend.create("anna", "bob", "carol")
    name = bytes.fromhex(conversation.replace("-", ""))
    sent = anna.mutate(send_message=pb.SendMessage(
        conversation=name, message=os.urandom(16),
        parts=[pb.Part(mime_type="text/plain", content=words[0].encode())],
        push=pb.PushText(title=words[1], body=words[2])))
    assert sent.code == 0, sent
    refused = anna.mutate(send_message=pb.SendMessage(
        conversation=os.urandom(16), message=os.urandom(16),
        parts=[pb.Part(mime_type="text/plain", content=words[5].encode())]))
    assert refused.code == 4004, refused
    body = {"sender": "anna", "parts": [{"mime_type": "text/plain", "text": words[3]}],
            "push": {"body": words[4]}}
    path = f"/v1/conversations/{conversation}/messages"
    assert backend.call("POST", path, body)[0] == 201
    assert backend.publish(conversation, "nobody", words[6])[0] == 403
    stranger = Backend(given)
    stranger.key = secret("API key", "one nobody has", "rk_" + os.urandom(24).hex())
    assert stranger.publish(conversation, "anna", words[7])[0] == 401
    backend.connection.request(
        "POST", path, words[8], {"authorization": f"Bearer {given.api_key}",
                                 "content-type": "application/json"})
    answer = backend.connection.getresponse()
    answer.read()
    assert answer.status == 400, answer.status

    # Bytes that are no frames, and frames that hold a secret where none belongs.
    for content in (b"GET /" + bytes(given.api_key, "ascii") + b" HTTP/1.1\r\n\r\n",
                    bytes([0, 0, 43, 0x10, 0, 0, 0, 1]) + bytes(given.api_key, "ascii")):
        stray = Client(**place)
        stray.connect()
        stray.socket.sendall(content)
        while stray.read() is not None:
            pass

    # The silent pushes: one is taken, one refused; then grace passes, and there are alerts.
    end = time.monotonic() + 60
    while time.monotonic() < end:
        kinds = set()
        for phone in phones:
            status, list_of = backend.call("GET", f"/v1/devices/{device_id(phone)}/wakes")
            assert status == 200, list_of
            kinds |= {(w["kind"], w["outcome"]) for w in list_of["wakes"]}
        if {kind for kind, _ in kinds} >= {"silent", "alert"}:
            break
        time.sleep(0.2)
    else:
        raise AssertionError(f"no silent push and alert: {kinds}")
    anna.close()
    receiver.wait("the drop of the token that is not known", lambda: any(
        event["kind"] == "device.token-dropped" for event in receiver.events))
    assert not receiver.problems, receiver.problems
    with open(os.path.join(given.folder, "secrets.json"), "w", encoding="utf-8") as file:
        json.dump(FOUND, file)
    print(f"{len(FOUND)} secrets passed through: ok")


def device_id(client):
    text = client.device.hex()
    return "-".join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


if __name__ == "__main__":
    PUSH_TOKEN = sys.argv.pop(1)
    main(arguments(__doc__), PUSH_TOKEN)

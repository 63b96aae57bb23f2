#!/usr/bin/python3
"""A device that goes on where it was, whatever the store was moved to meanwhile.

usage: kept.py begin|go-on ... --folder FOLDER

begin: logs in, gets two messages, and keeps token, cursor and what it has in FOLDER. go-on: comes
back with these; nothing is reset or told again, and what is published now is the next message.
"""
import base64
import json
import os
import sys

from client import Backend, Client, arguments, identity_token, pb

step = sys.argv.pop(1)
given = arguments(__doc__)
KEPT = os.path.join(given.folder, "kept.json")
with open(given.key, encoding="utf-8") as file:
    KEY = file.read()


def texts(client, room):
    raw = bytes.fromhex(room.replace("-", ""))
    return [m.parts[0].content.decode() for m in client.messages(raw)]


def keep(client, room, said):
    with open(KEPT, "w", encoding="utf-8") as file:
        json.dump({
            "device": client.device.hex(), "token": client.token.hex(), "room": room,
            "epoch": base64.b64encode(client.cursor[0]).decode(), "seq": client.cursor[1],
            "said": said}, file)


def publish(client, room, text):
    status, answer = Backend(given).publish(room, "bob", text)
    assert status == 201, answer
    while text not in texts(client, room):
        client.expect(pb.Delta)


if step == "begin":
    anna = Client(given.port, given.ca, given.app, given.host, features=["live"])
    anna.login(lambda nonce: identity_token(KEY, given.kid, given.app, "anna", nonce))
    room = Backend(given).create("anna", "bob")
    for line in ("one", "two"):
        publish(anna, room, line)
    keep(anna, room, ["one", "two"])
else:
    with open(KEPT, encoding="utf-8") as file:
        kept = json.load(file)
    anna = Client(given.port, given.ca, given.app, given.host,
                  device=bytes.fromhex(kept["device"]), features=["live"])
    anna.token = bytes.fromhex(kept["token"])
    anna.cursor = (base64.b64decode(kept["epoch"]), kept["seq"])

    def refuse(_):
        raise AssertionError("the session token was not taken")

    anna.login(refuse)
    assert texts(anna, kept["room"]) == [], "something was told again"
    line = f"line {len(kept['said']) + 1}"
    publish(anna, kept["room"], line)
    assert texts(anna, kept["room"]) == [line], texts(anna, kept["room"])
    raw = bytes.fromhex(kept["room"].replace("-", ""))
    assert anna.messages(raw)[0].position == len(kept["said"]) + 1
    keep(anna, kept["room"], kept["said"] + [line])
anna.close()
print(f"{step}: ok")

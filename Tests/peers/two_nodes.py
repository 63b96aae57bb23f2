#!/usr/bin/python3
"""Two nodes on one store: a device hears at once of what is published through the other node, a
session that moves to the other node ends on the first, and what one node revokes the other ends.

usage: two_nodes.py --port P --other-port P ... --api PORT --other-api PORT
"""
import argparse
import copy
import sys
import time

from client import Backend, Client, arguments, identity_token, pb

# The turn over heads would find what moved within 10 s: a hint has to be much quicker.
SOON = 5


def others():
    """The other node's ports, and the rest of the command line."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--other-port", type=int, required=True)
    parser.add_argument("--other-api", type=int, required=True)
    parser.add_argument("--other-ca", required=True)
    known, sys.argv[1:] = parser.parse_known_args(sys.argv[1:])
    return known


other = others()
first = arguments(__doc__)
second = copy.copy(first)
second.port, second.api, second.ca = other.other_port, other.other_api, other.other_ca
with open(first.key, encoding="utf-8") as file:
    KEY = file.read()


def device(node, user, known=None):
    """A connected device; `known`: the same one, which was connected before."""
    client = Client(node.port, node.ca, node.app, node.host,
                    device=known and known.device, features=["live"])
    if known:
        client.token, client.cursor, client.objects = known.token, known.cursor, known.objects
    client.login(lambda nonce: identity_token(KEY, node.kid, node.app, user, nonce))
    return client


def hears(client, conversation, text):
    """Waits until the device has the message; returns the seconds it took."""
    started = time.monotonic()
    raw = conversation.replace("-", "")
    while text not in [m.parts[0].content.decode()
                       for m in client.messages(bytes.fromhex(raw))]:
        client.expect(pb.Delta)
    return time.monotonic() - started


def ended(client):
    """Reads until the server ends the connection; returns its code."""
    while True:
        frame = client.read()
        if frame is None:
            return None
        if isinstance(frame[0], (pb.Close, pb.Error)):
            return frame[0].code


def publish(node, room, text):
    """As a backend does: again, under the same key, where the other node was in the way."""
    key = {"Idempotency-Key": text.replace(" ", "-")}
    for _ in range(20):
        status, answer = Backend(node).publish(room, "anna", text, **key)
        if status != 503:
            break
        time.sleep(0.5)
    assert status == 201, answer


anna, bob = device(first, "anna"), device(second, "bob")
room = Backend(first).create("anna", "bob")
for number, node in enumerate([first, second, first, second]):
    publish(node, room, f"line {number}")
    for client in (anna, bob):
        took = hears(client, room, f"line {number}")
        assert took < SOON, f"heard after {took:.1f} s"
print("both heard of what was published through either node")

moved = device(first, "bob", known=bob)
code = ended(bob)
print(f"the session that moved ended on the first node with {code}")
publish(second, room, "after the move")
assert hears(moved, room, "after the move") < SOON

started = time.monotonic()
status, _ = Backend(second).call("POST", "/v1/users/bob/sessions/revoke")
assert status in (200, 202, 204), status
code = ended(moved)
took = time.monotonic() - started
assert took < SOON, f"ended after {took:.1f} s"
print(f"revoked through the other node: ended with {code}")
print("two nodes: ok")

#!/usr/bin/python3
"""Two nodes on one store: a device hears at once of what is published through the other node, and
of who types there, unless it blocks them; a session that moves to the other node ends on the first,
and what one node revokes the other ends.

usage: two_nodes.py --port P --other-port P ... --api PORT --other-api PORT [--unheard]
    --unheard   only what holds where the nodes hear nothing of each other
"""
import argparse
import copy
import os
import sys
import threading
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
    parser.add_argument("--unheard", action="store_true")
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
                    device=known and known.device, features=["live", "signal"])
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


def signals(client, room):
    """Reads up to the answer to a PING; returns who signalled in the conversation before it."""
    client.send(pb.Ping(next_ms=60000), 77)
    told = []
    while True:
        body, _ = client.read()
        if isinstance(body, pb.Pong):
            return told
        if isinstance(body, pb.Signal) and body.conversation == room:
            told.append((body.user, body.kind))
        if isinstance(body, pb.Delta):
            client.apply(body)


def types(client, room, listener):
    """Signals until the listener was told: a signal may be lost. Returns who was told of."""
    for _ in range(10):
        client.send(pb.Signal(conversation=room, kind=pb.SIGNAL_KIND_TYPING))
        for _ in range(20):
            told = signals(listener, room)
            if told:
                return told
            time.sleep(0.05)
    raise AssertionError("no signal came from the other node")


def typing():
    """Typing through one node is seen on the other, by whom it concerns."""
    raw = bytes.fromhex(room.replace("-", ""))
    for sender, listener, name in [(anna, bob, "anna"), (bob, anna, "bob")]:
        assert types(sender, raw, listener)[0] == (name, pb.SIGNAL_KIND_TYPING)
    zoe, carl, dora = device(first, "zoe"), device(first, "carl"), device(second, "dora")
    text = Backend(first).create("anna", "bob", "dora", "zoe")
    group = bytes.fromhex(text.replace("-", ""))
    assert types(bob, group, zoe)[0] == ("bob", pb.SIGNAL_KIND_TYPING)
    assert ("bob", pb.SIGNAL_KIND_TYPING) in signals(anna, group)
    assert not signals(carl, group)
    # SIG-5: bob's node has read just now who gets his signals, and anna blocks him through hers.
    blocked = anna.mutate(block_user=pb.BlockUser(user="bob", blocked=True))
    assert blocked.code == 0, blocked
    signals(anna, group)
    for _ in range(3):
        types(bob, group, zoe)
    assert not signals(anna, group)
    # And so for who is on bob's node and blocks him through the other one, once that was told.
    assert ("bob", pb.SIGNAL_KIND_TYPING) in signals(dora, group)
    other = device(first, "dora")
    blocked = other.mutate(block_user=pb.BlockUser(user="bob", blocked=True))
    assert blocked.code == 0, blocked
    publish(first, text, "after the block")
    hears(dora, text, "after the block")
    signals(dora, group)
    for _ in range(3):
        types(bob, group, zoe)
    assert not signals(dora, group)
    allowed = anna.mutate(block_user=pb.BlockUser(user="bob", blocked=False))
    assert allowed.code == 0, allowed
    for client in (zoe, carl, dora, other):
        client.close()
    print("typing was seen on the other node, and not by who blocks the sender")


def writes_until_ended(client):
    """Keeps three mutations on the way; returns the code with which the server ends it."""
    def write():
        client.ask(pb.Mutation(
            number=client.welcome.mutation_floor + 1,
            create_conversation=pb.CreateConversation(
                conversation=os.urandom(16), participants=["bob"])))
    for _ in range(3):
        write()
    while True:
        frame = client.read()
        if frame is None:
            return None
        if isinstance(frame[0], (pb.Close, pb.Error)):
            return frame[0].code
        if isinstance(frame[0], pb.MutationResult):
            write()


def writing():
    """SES-23: a device whose requests are on their way while it is revoked through the other node
    is told so, and not that another took its place: its own node may hear of it from the store
    before it hears of it from the other node."""
    for number in range(12):
        client = device(second, f"writer-{number}")
        revoking = threading.Thread(target=lambda name=f"writer-{number}": Backend(first).call(
            "POST", f"/v1/users/{name}/sessions/revoke"))
        revoking.start()
        code = writes_until_ended(client)
        revoking.join()
        assert code == 2004, f"round {number}: ended with {code}"
        client.close()
    print("who writes while being revoked is told 2004")


if other.unheard:
    writing()
    print("unheard: ok")
    sys.exit()
anna, bob = device(first, "anna"), device(second, "bob")
room = Backend(first).create("anna", "bob")
for number, node in enumerate([first, second, first, second]):
    publish(node, room, f"line {number}")
    for client in (anna, bob):
        took = hears(client, room, f"line {number}")
        assert took < SOON, f"heard after {took:.1f} s"
print("both heard of what was published through either node")
typing()

moved = device(first, "bob", known=bob)
code = ended(bob)
assert code == 5002, f"the session that moved ended on the first node with {code}"
publish(second, room, "after the move")
assert hears(moved, room, "after the move") < SOON

started = time.monotonic()
status, _ = Backend(second).call("POST", "/v1/users/bob/sessions/revoke")
assert status in (200, 202, 204), status
code = ended(moved)
took = time.monotonic() - started
assert took < SOON, f"ended after {took:.1f} s"
assert code == 2004, f"revoked through the other node: ended with {code}"
print("two nodes: ok")

#!/usr/bin/python3
"""A node is drained and takes devices again, and nodes are rebalanced, by `rouse node`.

usage: drained.py --rouse PROGRAM --set KEY=VALUE ... --names NAME,NAME --ports P,P --apis P,P
    and what client.py takes
"""
import argparse
import http.client
import json
import select
import subprocess
import sys
import time

from client import Client, arguments, identity_token, pb

parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--rouse", required=True)
parser.add_argument("--set", action="append")
parser.add_argument("--names")
parser.add_argument("--ports")
parser.add_argument("--apis")
parser.add_argument("--cas")
extra, sys.argv[1:] = parser.parse_known_args(sys.argv[1:])
given = arguments(__doc__)
NAMES = extra.names.split(",")
PORTS = [int(port) for port in extra.ports.split(",")]
APIS = [int(port) for port in extra.apis.split(",")]
CAS = extra.cas.split(",")
with open(given.key, encoding="utf-8") as file:
    KEY = file.read()


def rouse(*words):
    """What a command of `rouse node` answers, as JSON."""
    command = [extra.rouse, "node", *words, "--json"]
    for setting in extra.set:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return {node["name"]: node for node in json.loads(done.stdout)["nodes"]}


def until(what, holds):
    """Waits for something that the next beats bring."""
    for _ in range(200):
        found = holds()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(what)


def is_ready(index):
    connection = http.client.HTTPConnection("127.0.0.1", APIS[index], timeout=10)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200 or b"draining" in body, body
    return answer.status == 200


class Phone(Client):
    """A device that remembers the DRAIN it was told, whatever else it waits for."""

    drain = None
    drains = 0

    def read(self):
        frame = super().read()
        if frame and isinstance(frame[0], pb.Drain):
            self.drain = frame[0]
            self.drains += 1
        return frame


def device(index, user):
    client = Phone(PORTS[index], CAS[index], given.app, given.host, features=["live"])
    client.login(lambda nonce: identity_token(KEY, given.kid, given.app, user, nonce))
    return client


def told(client):
    """The DRAIN that came so far; the answer to a PING shows that nothing more was on the way."""
    client.send(pb.Ping(next_ms=60000), 77)
    while True:
        body, _ = client.read()
        assert not isinstance(body, (pb.Close, pb.Error)), body
        if isinstance(body, pb.Pong):
            return client.drain


# --- drain, and go on
here, there = device(0, "anna"), device(1, "bob")
nodes = until("both nodes tell their connections", lambda: (
    lambda list: list if [list[n].get("connections") for n in NAMES] == [1, 1] else None)(
        rouse("list")))
for name in NAMES:
    node = nodes[name]
    assert node["is_there"] and not node["is_draining"] and node["sessions"] == 1, node
    assert node["version"] and node["last_beat"] >= node["started_at"], node
assert rouse("drain", NAMES[0])[NAMES[0]]["is_draining"]
drain = here.expect(pb.Drain)
assert drain.slot_ms < 3000 < drain.deadline_ms, drain
assert drain.place == pb.DRAIN_PLACE_SAME_ADDRESS_AT_SLOT, drain
assert not is_ready(0) and is_ready(1)
assert told(there) is None
assert rouse("list")[NAMES[0]]["is_draining"]
# It goes on: who comes all the same is served, and told, too.
late = device(0, "zoe")
assert until("told, too", lambda: told(late)).slot_ms < 3000
assert not rouse("resume", NAMES[0])[NAMES[0]]["is_draining"]
until("ready again", lambda: is_ready(0))
for client in (here, there, late):
    client.close()
print("drained, and went on")

# --- rebalance
crowd = [device(0, f"user {number}") for number in range(7)]
assert not any(told(client) for client in crowd)
until("the node tells its connections", lambda: [
    node.get("connections") for node in rouse("list").values()] in ([7, 0], [0, 7]))
ordered = rouse("rebalance")
assert [node["surplus"] for node in ordered.values()] == [3], ordered
assert list(ordered) == [NAMES[0]]
sent = []
deadline = time.monotonic() + 10
while len(sent) < 3 and time.monotonic() < deadline:
    sent += [client for client in crowd if client not in sent and told(client)]
    time.sleep(0.5)  # PINGs have a rate
assert len(sent) == 3, f"{len(sent)} were sent away"
# Asked again before they have gone, it asks nobody a second time, and no others.
rouse("rebalance")
# No more of them with later beats: two have passed when the list has told so.
first = rouse("list")[NAMES[0]]["last_beat"]
until("another beat", lambda: rouse("list")[NAMES[0]]["last_beat"] > first)
assert not any(told(client) for client in crowd if client not in sent)
assert [client.drains for client in sent] == [1, 1, 1], [client.drains for client in sent]
assert [node["surplus"] for node in rouse("list").values()] == [0, 0]
print("drained.py: ok")

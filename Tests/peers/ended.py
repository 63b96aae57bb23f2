#!/usr/bin/python3
"""Nodes are told to end: their devices are sent to others only where others stay.

usage: ended.py --other-port P --other-ca FILE --other-server PID --how one|both
    and what client.py takes; the drain takes 6 s
"""
import argparse
import os
import signal
import sys

from client import Client, arguments, identity_token, pb

parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
parser.add_argument("--other-port", type=int, required=True)
parser.add_argument("--other-ca", required=True)
parser.add_argument("--other-server", type=int, required=True)
parser.add_argument("--how", choices=["one", "both"], required=True)
extra, sys.argv[1:] = parser.parse_known_args(sys.argv[1:])
given = arguments(__doc__)
with open(given.key, encoding="utf-8") as file:
    KEY = file.read()


def device(port, ca, user):
    client = Client(port, ca, given.app, given.host, features=["live"])
    client.login(lambda nonce: identity_token(KEY, given.kid, given.app, user, nonce))
    return client


clients = [device(given.port, given.ca, "anna"), device(extra.other_port, extra.other_ca, "bob")]
servers = [given.server, extra.other_server]
if extra.how == "one":
    del clients[1], servers[1]
for server in servers:
    os.kill(server, signal.SIGTERM)
for client in clients:
    drain = client.expect(pb.Drain)
    if extra.how == "both":
        # Whoever came back sooner would find nobody, or somebody who ends.
        assert drain.slot_ms > drain.deadline_ms, drain
    else:
        assert drain.slot_ms < 3000 < drain.deadline_ms, drain
print(f"ended {extra.how}: ok")

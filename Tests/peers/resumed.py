#!/usr/bin/python3
"""TLS sessions are gone on with on any node, by openssl's own client.

usage: resumed.py HOW --ca FILE --session FILE --to PORT [--to PORT ...]

Connects to each port in turn, each time with the session that the file holds, and leaves the new
one there. HOW says what is expected of them: `w` a whole handshake, `r` one that goes on, as `wrr`.
Each connection says HELLO and is answered.
"""
import argparse
import os
import re
import subprocess
import sys

from client import pb

HELLO = pb.Hello(version_min=1, version_max=1, app="chat", device=bytes(16), role=pb.ROLE_APP,
                 client_name="resumed", client_version="1").SerializeToString()
FRAME = len(HELLO).to_bytes(3, "big") + bytes([1, 0, 0]) + (1).to_bytes(2, "big") + HELLO


def connect(port, given):
    """A connection of openssl's own client; returns whether it went on with a session."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-servername", "localhost",
               "-alpn", "rouse/1", "-CAfile", given.ca, "-verify_return_error", "-tls1_3",
               "-sess_out", given.session]
    if os.path.exists(given.session):
        command += ["-sess_in", given.session]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    client.stdin.write(FRAME)
    client.stdin.flush()
    said = b""
    # The CHALLENGE: the frame's type and, in its body, a nonce.
    while not re.search(rb"\x00\x00.\x02\x00\x00\x00\x01", said, re.DOTALL):
        chunk = client.stdout.read1()
        if not chunk:
            sys.exit(f"no CHALLENGE: {said[-1500:]}")
        said += chunk
    client.stdin.close()
    said += client.stdout.read()
    client.wait()
    found = re.search(rb"^(New|Reused), TLSv1.3", said, re.MULTILINE)
    assert found, said[-1500:]
    return found.group(1) == b"Reused"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("how")
    parser.add_argument("--ca", required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--to", action="append", type=int)
    given, _ = parser.parse_known_args()
    found = "".join("r" if connect(port, given) else "w" for port in given.to)
    assert found == given.how, f"{given.how} was expected, {found} happened"
    print(f"resumed {found}: ok")


if __name__ == "__main__":
    main()

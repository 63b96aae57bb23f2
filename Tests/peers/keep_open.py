"""A peer that breaks the protocol, is told CLOSE and keeps its socket open.

Another peer of the same loop must still be served once the server has stopped waiting for the
first one.
"""

import argparse
import socket
import ssl
import time


def connect(arguments):
    context = ssl.create_default_context(cafile=arguments.ca)
    context.set_alpn_protocols(["rouse/1"])
    plain = socket.create_connection(("127.0.0.1", arguments.port), timeout=20)
    return context.wrap_socket(plain, server_hostname="localhost")


parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--ca", required=True)
arguments, _ = parser.parse_known_args()

first = connect(arguments)
# Frames of no known type. Nothing is read, so the CLOSE stays in the kernel.
first.sendall(b"\x00\x00\x00\x05\xff\xff\xff\xff\xff" * 20)
# The server waits 2 s for the end of a connection it has told CLOSE.
time.sleep(3)
connect(arguments).close()
print("served: ok")

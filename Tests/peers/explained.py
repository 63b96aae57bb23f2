#!/usr/bin/python3
"""A phone is woken for a message. Prints the message's id and the device's, for whoever asks why.

usage: explained.py TOKEN --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY

TOKEN is a push token the simulator knows, in hex.
"""
import sys
import time

from client import Backend, arguments
from dropped import hello_with


def main(given, token):
    backend = Backend(given)
    device = hello_with(bytes.fromhex(token), given, "carol")
    conversation = backend.create("anna", "carol")
    status, message = backend.publish(conversation, "anna", "why?")
    assert status == 201, message
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status, found = backend.call("GET", f"/v1/devices/{device}/wakes")
        assert status == 200, found
        if any(wake.get("accepted_at") for wake in found["wakes"]):
            break
        time.sleep(0.1)
    else:
        raise AssertionError(f"no push was accepted: {found}")
    print(message["id"], device)


if __name__ == "__main__":
    TOKEN = sys.argv.pop(1)
    main(arguments(__doc__), TOKEN)

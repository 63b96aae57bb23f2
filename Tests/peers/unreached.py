#!/usr/bin/python3
"""A phone with a push token goes to sleep, and a message for it comes.

usage: unreached.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
"""
import os

from client import Backend, arguments
from dropped import hello_with


def main(given):
    backend = Backend(given)
    hello_with(os.urandom(32), given, "carol")
    status, message = backend.publish(backend.create("anna", "carol"), "anna", "are you there?")
    assert status == 201, message
    print("a push is due: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

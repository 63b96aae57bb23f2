#!/usr/bin/python3
"""Google's protobuf as the other side of WireTests.

  peer.py read < lines of "FRAME hex-of-body"
      answers each line with "ok hex-of-canonical-body json" or "refused code"
  peer.py random SEED COUNT
      writes lines of "FRAME hex-of-body json"
"""

import json
import random
import sys

import schema


def main():
    module = schema.load()
    kinds = {name: getattr(module, message) for name, (_, message) in schema.frames().items()}
    if sys.argv[1] == "read":
        for line in sys.stdin:
            name, _, data = line.rstrip("\n").partition(" ")
            try:
                message = schema.read(module, kinds[name], bytes.fromhex(data))
            except schema.Refused as refused:
                print("refused", refused.args[0])
                continue
            print("ok", schema.canonical(message).hex() or "-", json.dumps(schema.to_json(message)))
    else:
        draw = random.Random(int(sys.argv[2]))
        names = sorted(kinds)
        for _ in range(int(sys.argv[3])):
            name = draw.choice(names)
            message = schema.fill(kinds[name](), draw)
            print(name, schema.canonical(message).hex() or "-", json.dumps(schema.to_json(message)))


main()

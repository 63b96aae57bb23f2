#!/usr/bin/python3
"""Has tshark read the golden frames with Protocol/wireshark/rouse.lua.

  dissect.py                all frames of Protocol/vectors, in TCP segments cut anywhere
  dissect.py CAPTURE PORT   a capture of a plain listener

Prints how many frames of each name were found, and fails if one is not named, is malformed, or
(of the golden frames) is missing. Needs Debian's tshark.
"""

import collections
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

PROTOCOL = pathlib.Path(__file__).resolve().parents[2] / "Protocol"
PORT = 7443


def golden():
    """[(name, bytes)] of every frame of the vectors."""
    found = []
    for path in sorted((PROTOCOL / "vectors").glob("*.json")):
        data = json.loads(path.read_text())
        for case in data.get("cases", []) if "frame" in data else []:
            found.append((data["frame"], bytes.fromhex(case["frame"])))
    return found


def packet(source, target, sequence, acknowledged, flags, payload=b""):
    """An IPv4 packet with a TCP segment; checksums are left at 0."""
    tcp = struct.pack("!HHIIBBHHH", source, target, sequence, acknowledged, 5 << 4, flags,
                      65535, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0,
                     bytes([127, 0, 0, 1]), bytes([127, 0, 0, 2]))
    return ip + tcp


def write_capture(path, stream, draw):
    packets = [packet(40000, PORT, 0, 0, 2), packet(PORT, 40000, 0, 1, 0x12),
               packet(40000, PORT, 1, 1, 0x10)]
    at = 0
    while at < len(stream):
        piece = stream[at:at + draw.choice([1, 5, 8, 100, 1400])]
        packets.append(packet(40000, PORT, 1 + at, 1, 0x18, piece))
        at += len(piece)
    with open(path, "wb") as out:
        # LINKTYPE_RAW
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101))
        for number, data in enumerate(packets):
            out.write(struct.pack("<IIII", number, 0, len(data), len(data)) + data)


def dissect(path, port):
    """(counts by name, lines of what is wrong)"""
    text = subprocess.run(
        ["tshark", "-r", path, "-X", f"lua_script:{PROTOCOL / 'wireshark' / 'rouse.lua'}",
         "-d", f"tcp.port=={port},rouse",
         "-o", f'uat:protobuf_search_paths:"{PROTOCOL}","TRUE"',
         "-T", "fields", "-e", "frame.number", "-e", "rouse.frame", "-e", "_ws.malformed",
         "-e", "rouse.bad_flags", "-e", "rouse.bad_reserved", "-e", "rouse.unknown_type",
         "-e", "rouse.too_large", "-e", "_ws.lua.error", "-Y", "rouse"],
        check=True, capture_output=True, text=True).stdout
    counts, wrong = collections.Counter(), []
    for line in text.splitlines():
        columns = line.split("\t")
        for name in filter(None, columns[1].split(",")):
            counts[name] += 1
            if not re.fullmatch(r"[A-Z_]+", name):
                wrong.append(f"packet {columns[0]}: no name for {name}")
        wrong += [f"packet {columns[0]}: {column}" for column in columns[2:] if column]
    return counts, wrong


def main():
    expected = None
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) == 3:
            path, port = sys.argv[1], int(sys.argv[2])
        else:
            frames = golden()
            random.Random(1).shuffle(frames)
            path, port = f"{folder}/golden.pcap", PORT
            write_capture(path, b"".join(data for _, data in frames), random.Random(2))
            expected = collections.Counter(name for name, _ in frames)
        counts, wrong = dissect(path, port)
    for name, count in sorted(counts.items()):
        print(f"{name} {count}")
    if expected is not None and counts != expected:
        wrong.append(f"expected {dict(expected - counts)} more, {dict(counts - expected)} fewer")
    for line in wrong[:20]:
        print(f"wrong: {line}", file=sys.stderr)
    print(f"{sum(counts.values())} frames, {len(wrong)} wrong")
    sys.exit(1 if wrong or not counts else 0)


if __name__ == "__main__":
    main()

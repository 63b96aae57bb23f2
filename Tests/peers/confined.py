#!/usr/bin/python3
"""What the server asks the system for, under strace with traffic of every kind, against what the
unit of systemd allows: system calls, families of addresses, and no memory that is written and run.
Prints `confined: ok`.

usage: confined.py --rouse PROGRAM --unit FILE --folder EMPTY-FOLDER
"""
import argparse
import os
import re
import subprocess
import time

import watched

# What only a server asks that runs as root, which the unit's does not.
OF_ROOT = {"fchown": "SQLite gives its journal to the owner of the store"}


def calls_of(group):
    """The system calls of one of systemd's groups."""
    shown = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", group], capture_output=True,
        text=True, check=True).stdout
    found = set()
    for line in shown.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            found |= calls_of(word)
        elif word and not word.startswith("#"):
            found.add(word)
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("--rouse", "--unit", "--folder"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    with open(arguments.unit, encoding="utf-8") as file:
        unit = file.read()
    allowed, families = set(), set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.M):
        for word in line.lstrip("~").split():
            allowed = allowed - calls_of(word) if line.startswith("~") else allowed | calls_of(word)
    for line in re.findall(r"^RestrictAddressFamilies=(.*)$", unit, re.M):
        families |= set(line.split())
    scene = watched.Scene(
        os.path.abspath(arguments.rouse), arguments.folder,
        tracer=("/usr/bin/strace", "-f", "-qq", "-o", "calls", "-e", "signal=none"))
    try:
        scene.begin()
        scene.tell(cmd="device_suspend", device="ben")
        for number in range(5):
            scene.post(f"/v1/conversations/{scene.room}/messages", {
                "sender": "anna", "parts": [{"mime_type": "text/plain", "text": f"{number}"}],
                "push": {"body": f"{number}"}, "urgency": "urgent"})
        end = time.monotonic() + watched.PATIENCE
        known = ""
        while "rouse_pushes_total{" not in known or "rouse_webhook_deliveries_total{" not in known:
            if time.monotonic() > end:
                raise watched.Failure("no push, or no delivery")
            time.sleep(0.2)
            known = watched.text_of(scene)
        # The server goes by itself: strace would let it go, not end it.
        scene.processes[0].stdin.close()
        scene.processes[0].wait(watched.PATIENCE)
    finally:
        scene.stop()
    with open("calls", encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    used = {match.group(1) for line in lines if (match := re.match(r"\d+ +(\w+)\(", line))}
    assert len(used) > 30 and {"fdatasync", "accept4", "openat"} <= used, used
    beyond = used - allowed - (OF_ROOT.keys() if os.geteuid() == 0 else set())
    assert not beyond, f"the unit does not allow {sorted(beyond)}"
    asked = {match.group(1) for line in lines if (match := re.search(r" socket\((AF_\w+)", line))}
    assert {"AF_INET", "AF_UNIX"} <= asked <= families, f"{asked} of {families}"
    unsafe = [line for line in lines
              if re.search(r" mmap\(.*PROT_WRITE\|PROT_EXEC| mprotect\(.*PROT_EXEC", line)]
    assert not unsafe, unsafe[:5]
    print(f"system calls: {len(used)} used, {len(allowed)} allowed; families: {sorted(asked)}")
    print("confined: ok")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""The program in the root of the container image, with nothing but the packages that the image has:
it starts as the image's user with the image's settings, serves, is administered, and drains. The
libraries of Swift are put beside it, which a release build holds in itself. Needs root. Prints
`contained: ok`.

usage: contained.py --rouse PROGRAM --deploy FOLDER --base TAR --folder EMPTY-FOLDER
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import urllib.request

USER = 10001


def main():
    parser = argparse.ArgumentParser()
    for name in ("--rouse", "--deploy", "--base", "--folder"):
        parser.add_argument(name, required=True)
    arguments = parser.parse_args()
    root = os.path.join(arguments.folder, "root")
    os.makedirs(root)
    subprocess.run(
        ["tar", "--numeric-owner", "--exclude=./dev/*", "-xf", arguments.base, "-C", root],
        check=True)
    os.mkdir(f"{root}/usr/local/lib/swift")
    linked = subprocess.run(
        ["ldd", arguments.rouse], capture_output=True, text=True, check=True).stdout
    for line in linked.splitlines():
        path = line.split()[2] if "=>" in line else ""
        if path and not path.startswith(("/lib/", "/usr/lib/x86", "/usr/lib/aarch", "/lib64/")):
            shutil.copy(path, f"{root}/usr/local/lib/swift")
    shutil.copy(arguments.rouse, f"{root}/usr/local/bin/rouse")
    os.chmod(f"{root}/usr/local/bin/rouse", 0o755)
    shutil.copy(f"{arguments.deploy}/container/rouse.conf", f"{root}/etc/rouse/rouse.conf")
    # As whoever runs the container gives it these.
    os.makedirs(f"{root}/etc/rouse/tls")
    os.chown(f"{root}/etc/rouse/tls", USER, USER)
    # The folder of a test is its owner's alone.
    os.chmod(arguments.folder, 0o755)

    def inside(*words):
        # Swift reads a program's arguments in /proc, which every container has.
        return ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec "$@"', root,
                "chroot", f"--userspec={USER}:{USER}", root, "/usr/bin/env", "-i",
                "LD_LIBRARY_PATH=/usr/local/lib/swift", "PATH=/usr/bin:/bin", *words]

    def rouse(*words):
        done = subprocess.run(
            inside("/usr/local/bin/rouse", *words), capture_output=True, text=True, timeout=120)
        if done.returncode:
            sys.exit(f"rouse {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    print(rouse("--version").strip())
    rouse("dev", "certificates", "/etc/rouse/tls")
    for before, after in (("server.pem", "tls.crt"), ("server.key", "tls.key")):
        os.rename(f"{root}/etc/rouse/tls/{before}", f"{root}/etc/rouse/tls/{after}")
    config = ("--config", "/etc/rouse/rouse.conf")
    free = ("--set", "listen.port=0", "--set", "api.port=0", "--set", "timers.drain=1s")
    rouse("serve", *config, "--check-config")
    with open(f"{arguments.folder}/server.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            inside("/usr/local/bin/rouse", "serve", *config, *free, "--json"),
            stdout=subprocess.PIPE, stderr=log)
    line = server.stdout.readline().decode()
    if "api_port" not in line:
        sys.exit(open(f"{arguments.folder}/server.log", encoding="utf-8").read())
    try:
        place = f"http://127.0.0.1:{json.loads(line)['api_port']}"
        assert urllib.request.urlopen(f"{place}/readyz", timeout=30).status == 200
        rouse("app", "create", "shop", *config)
        assert "shop" in rouse("app", "list", *config)
    finally:
        server.terminate()
        status = server.wait(120)
    assert status == 0, f"the server ended with {status}"
    assert os.stat(f"{root}/var/lib/rouse/rouse.db").st_uid == USER
    with open(f"{arguments.folder}/server.log", encoding="utf-8") as log:
        events = [json.loads(one)["event"] for one in log]
    assert "server.started" in events and events[-1] == "server.stopped", events
    print("contained: ok")


if __name__ == "__main__":
    main()

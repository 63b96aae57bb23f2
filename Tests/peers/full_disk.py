#!/usr/bin/python3
"""Fills the server's disk, looks at what is answered and shown meanwhile, makes space, and sees it
go on by itself.

usage: full_disk.py --port P --ca FILE --app APP --key FILE --kid KID --api PORT --api-key KEY
                    --folder DISK

DISK is the file system of the store, and small.
"""
import os
import time

from client import Backend, Client, arguments, identity_token, pb

TEXT_BYTES = 30_000
REFUSED = 5
PATIENCE_S = 60


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()

    def signer(user):
        return lambda nonce: identity_token(key, given.kid, given.app, user, nonce)

    backend = Backend(given)
    bob = Client(given.port, given.ca, given.app, given.host)
    bob.login(signer("bob"))
    conversation = backend.create("anna", "bob")
    name = bytes.fromhex(conversation.replace("-", ""))
    assert backend.call("GET", "/readyz")[0] == 200

    def shown():
        return [m.parts[0].content[:8].decode().strip() for m in bob.messages(name)]

    def sync_to(count):
        """Bob syncs until he holds so many messages."""
        end = time.monotonic() + PATIENCE_S
        while len(shown()) < count and time.monotonic() < end:
            bob.sync()

    accepted = []
    refused = []
    ballast = os.path.join(given.folder, "ballast")
    space = os.statvfs(given.folder)
    with open(ballast, "wb") as file:
        # Room for some messages and a journal is left.
        file.write(bytes(space.f_bavail * space.f_frsize - (1 << 20)))
    while len(refused) < REFUSED and len(accepted) < 1000:
        text = f"m{len(accepted) + len(refused)}"
        status, answer = backend.publish(
            conversation, "anna", text.ljust(TEXT_BYTES), **{"idempotency-key": text})
        if status == 201:
            accepted.append(text)
        else:
            assert status == 507, (status, answer)
            refused.append(text)
            time.sleep(0.3)
            status, health = backend.call("GET", "/readyz")
            assert status == 503, (status, health)
            assert health["reasons"] == ["the store has no space left"], health
    assert accepted and len(refused) == REFUSED, (accepted, refused)
    assert backend.call("GET", "/livez")[0] == 200
    bob.socket.settimeout(2)
    try:
        while True:
            bob.expect(pb.SyncRequest)
            bob.sync()
    except TimeoutError:
        pass
    except RuntimeError as refusal:
        # A SYNC is written, too, and what was left may be gone by then.
        assert "storage_busy" in str(refusal), refusal
    bob.socket.settimeout(20)
    extra = set(shown()) - set(accepted)
    assert not extra, f"shown and never acknowledged: {extra}"
    print(f"{len(accepted)} published, then 507 and /readyz 503, {len(shown())} shown")

    os.remove(ballast)
    end = time.monotonic() + PATIENCE_S
    while backend.call("GET", "/readyz")[0] != 200:
        assert time.monotonic() < end, "it did not get ready by itself"
        time.sleep(0.1)
    # The same requests again: each has its one effect now.
    for text in refused:
        status, answer = backend.publish(
            conversation, "anna", text.ljust(TEXT_BYTES), **{"idempotency-key": text})
        assert status == 201, (status, answer)
        accepted.append(text)
    try:
        sync_to(len(accepted))
    except (OSError, EOFError, RuntimeError):
        # A session whose write failed may have been ended; it comes back where it was.
        back = Client(given.port, given.ca, given.app, given.host, device=bob.device)
        back.token, back.cursor, back.objects = bob.token, bob.cursor, bob.objects
        bob = back
        bob.login(signer("bob"))
        sync_to(len(accepted))
    assert shown() == accepted, (shown(), accepted)
    positions = [m.position for m in bob.messages(name)]
    assert positions == list(range(1, len(accepted) + 1)), positions
    print("ready again by itself; every acknowledged message once and in order: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

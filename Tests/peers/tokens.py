#!/usr/bin/python3
"""Identity tokens made by another library: the good one lets in, each bad one is refused with its
code (session.md, SES-9 to SES-11).

usage: tokens.py --port P --ca FILE --app APP --key FILE --kid KID [--host H]
"""
import base64
import json
import os
import time

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from client import Client, arguments, identity_token, pb


def unsigned(header, claims, signature=b""):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    return ".".join([
        part(json.dumps(header).encode()), part(json.dumps(claims).encode()), part(signature)])


def main(given):
    with open(given.key, encoding="utf-8") as file:
        key = file.read()
    public = serialization.load_pem_private_key(key.encode(), None).public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption()).decode()
    now = int(time.time())

    def good(nonce, **changes):
        return identity_token(key, given.kid, given.app, "tester", nonce, **changes)

    def claims(nonce):
        return {"iss": "t", "sub": "tester", "aud": given.app, "exp": now + 300,
                "nonce": base64.urlsafe_b64encode(nonce).rstrip(b"=").decode()}

    def hs256(nonce):
        # PyJWT refuses a PEM as HMAC key, so the attacker's token is put together by hand.
        import hashlib
        import hmac
        head = unsigned({"alg": "HS256", "kid": given.kid}, claims(nonce)).rsplit(".", 1)[0]
        mac = hmac.new(public, head.encode(), hashlib.sha256).digest()
        return head + "." + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()

    cases = [
        ("alg none", lambda n: unsigned({"alg": "none", "kid": given.kid}, claims(n)), 2001),
        ("HS256 with the public key", hs256, 2001),
        ("another key under our kid", lambda n: identity_token(
            other, given.kid, given.app, "tester", n), 2001),
        ("a kid nobody knows", lambda n: identity_token(
            key, "nobody", given.app, "tester", n), 2001),
        ("wrong audience", lambda n: good(n, aud="other-app"), 2001),
        ("no subject", lambda n: good(n, sub=None), 2001),
        ("not yet valid", lambda n: good(n, nbf=now + 600), 2001),
        ("expired", lambda n: good(n, exp=now - 120), 2002),
        ("another connection's nonce", lambda n: good(os.urandom(32)), 2003),
        ("a signature cut short", lambda n: good(n)[:-4], 2001),
        ("no token at all", lambda n: "x", 2001),
    ]
    for name, make, code in cases:
        client = Client(given.port, given.ca, given.app, given.host)
        client.connect()
        client.send(client.hello())
        challenge, _ = client.read()
        client.send(pb.Authenticate(identity_token=make(challenge.nonce)))
        answer, _ = client.read()
        assert isinstance(answer, pb.Error) and answer.code == code, f"{name}: {answer}"
        # The socket stays: the right token still lets in.
        client.send(pb.Authenticate(identity_token=good(challenge.nonce)))
        answer, _ = client.read()
        assert isinstance(answer, pb.Welcome), f"after {name}: {answer}"
        # A nonce is good for one login: nobody gets in with this token again.
        late = Client(given.port, given.ca, given.app, given.host)
        late.connect()
        late.send(late.hello())
        late.read()
        late.send(pb.Authenticate(identity_token=good(challenge.nonce)))
        answer, _ = late.read()
        assert isinstance(answer, pb.Error) and answer.code == 2003, f"replay: {answer}"
        print(f"{name}: {code}")
    print("every bad token was refused: ok")


if __name__ == "__main__":
    main(arguments(__doc__))

"""Whether a delivery is the server's own (Protocol/webhooks.md, WHK-3)."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

#: Secrets are 24 to 128 visible ASCII characters (WHK-4).
_SECRET = re.compile(rb"[!-~]{24,128}")
_TIME = re.compile(r"[0-9]{1,15}")
_MAC = re.compile(r"[0-9a-f]{64}")
#: Two secrets may be live; more leave room for what is to come.
_MACS_MAX = 8

Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class BadDelivery(Exception):
    """What came is no delivery of the server, or an old one: answer it with 400."""


def verify_webhook(
    body: bytes | str, headers: Headers, secrets: str | bytes | Iterable[str | bytes], *,
    tolerance: float = 300.0, now: float | None = None,
) -> dict[str, Any]:
    """The delivery that a webhook was sent, once its `rouse-signature` was found right.

        delivery = verify_webhook(request.get_data(), request.headers, secret)

    `body`: as it came, before anything has read it as JSON. `headers`: those of the request, by
    any framework, with names in any case. `secrets`: the webhook's, or both during a rotation.
    `tolerance`: seconds that the time of the attempt may be away from `now`, which is this
    machine's clock if it is left out.

    Raises `BadDelivery` for whatever came with the request, and `ValueError` where no secret is
    given, or what is none: that is a fault of the program's own settings.
    """
    keys = _keys(secrets)
    if isinstance(body, str):
        body = body.encode("utf-8", "surrogatepass")
    if not isinstance(body, (bytes, bytearray, memoryview)):
        raise BadDelivery(f"the body is {type(body).__name__}: give the bytes as they came")
    body = bytes(body)
    moment, macs = _signature(headers)
    # Every one with every secret, so that the time it takes tells nothing.
    right = [
        hmac.compare_digest(_mac(key, moment, body), mac.encode("ascii"))
        for key in keys for mac in macs]
    if not any(right):
        raise BadDelivery("the signature is of another secret or another body")
    away = (time.time() if now is None else now) - int(moment)
    if not -tolerance <= away <= tolerance:
        raise BadDelivery(f"it was signed {away:.0f} s ago; {tolerance:.0f} are allowed")
    try:
        delivery = json.loads(body)
    except ValueError as error:
        raise BadDelivery(f"it is signed, and no JSON: {error}") from error
    if not isinstance(delivery, dict):
        raise BadDelivery("it is signed, and no delivery")
    return delivery


def _keys(secrets: Any) -> list[bytes]:
    given = [secrets] if isinstance(secrets, (str, bytes)) else secrets
    try:
        keys = [one.encode() if isinstance(one, str) else bytes(one) for one in given]
    except TypeError as error:
        raise ValueError(f"no secrets: {type(secrets).__name__}") from error
    # Without the secret: errors come into logs.
    if not keys or not all(_SECRET.fullmatch(key) for key in keys):
        raise ValueError("a webhook's secret is 24 to 128 visible ASCII characters")
    return keys


def _mac(key: bytes, moment: str, body: bytes) -> bytes:
    signed = moment.encode("ascii") + b"." + body
    return hmac.new(key, signed, hashlib.sha256).hexdigest().encode("ascii")


def _signature(headers: Any) -> tuple[str, list[str]]:
    """The time and the codes of the one `rouse-signature` there is."""
    try:
        items = list(headers.items() if hasattr(headers, "items") else headers)
        found = [value for name, value in items if _text(name).lower() == "rouse-signature"]
    except (TypeError, ValueError) as error:
        raise BadDelivery(f"the headers cannot be read: {error}") from error
    if len(found) != 1:
        raise BadDelivery(f"{len(found)} rouse-signature headers")
    parts = [part.strip().partition("=") for part in _text(found[0]).split(",")]
    times = [value for name, _, value in parts if name == "t"]
    # Other names are of later ways to sign.
    macs = [value for name, _, value in parts if name == "v1"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]):
        raise BadDelivery("rouse-signature names no single time")
    if not 1 <= len(macs) <= _MACS_MAX or not all(_MAC.fullmatch(mac) for mac in macs):
        raise BadDelivery("rouse-signature has no code of the kind v1")
    return times[0], macs


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)

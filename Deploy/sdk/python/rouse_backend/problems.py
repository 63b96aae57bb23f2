"""Why a request came to nothing."""

from __future__ import annotations

import json
from email.message import Message


class Problem(Exception):
    """A request came to nothing, after every try that was due to it."""


class Unreachable(Problem):
    """No answer came, or one that broke off: the cause is the OSError or HTTPException behind it.

    `is_carried_out` is False where the request cannot have reached the server, and None where
    nobody knows. Ask again with the same `idempotency_key`: it has one effect.
    """

    def __init__(self, text: str, is_carried_out: bool | None, idempotency_key: str | None) -> None:
        super().__init__(text)
        self.is_carried_out = is_carried_out
        self.idempotency_key = idempotency_key


class Refused(Problem):
    """The server refused it (RFC 9457). Nothing was changed, unless it is a `TryLater`."""

    def __init__(
        self, status: int, name: str, code: int, detail: str, request_id: str | None,
        retry_after: float | None, idempotency_key: str | None,
    ) -> None:
        super().__init__(f"{status} {name}: {detail}" + (f" ({request_id})" if request_id else ""))
        self.status = status
        #: What tells problems apart: the last word of `type`, such as `id_in_use`.
        self.name = name
        #: The number of the sync protocol's registry; 0 if the answer was not the server's own.
        self.code = code
        self.detail = detail
        #: The server's log names the request so, at the level `debug`.
        self.request_id = request_id
        self.retry_after = retry_after
        self.idempotency_key = idempotency_key


class Unauthorized(Refused):
    """401: the API key is unknown or was revoked."""


class Forbidden(Refused):
    """403: the app is suspended, or a user may not do this."""


class NotFound(Refused):
    """404: the app has no such object."""


class Conflict(Refused):
    """409: the id is in use, the version is another, or the key was used for another request."""


class Gone(Refused):
    """410: it was deleted."""


class OverLimit(Refused):
    """413 and 422: too large, or too many."""


class TryLater(Refused):
    """429, 500, 503 and 507, after the last try. With the same `idempotency_key` it has one effect,
    however often you ask."""


_BY_STATUS = {
    401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 413: OverLimit,
    422: OverLimit, 429: TryLater, 500: TryLater, 502: TryLater, 503: TryLater, 504: TryLater,
    507: TryLater,
}


def refused(status: int, headers: Message, body: bytes, key: str | None) -> Refused:
    """The problem of an answer; a balancer's own page is one, too."""
    try:
        told = json.loads(body)
        name = str(told["type"]).rsplit(":", 1)[-1]
        code, detail = int(told["code"]), str(told["detail"])
    except (ValueError, KeyError, TypeError):
        name, code, detail = "unknown", 0, body[:200].decode("utf-8", "replace")
    after = headers.get("retry-after", "")
    kind = _BY_STATUS.get(status, Refused)
    return kind(
        status, name, code, detail, headers.get("x-request-id"),
        float(after) if after.isdigit() else None, key)

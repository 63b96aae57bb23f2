"""Sends the requests: one connection a thread, repetition by the API's retry classes."""

from __future__ import annotations

import dataclasses
import http.client
import inspect
import json
import os
import random
import selectors
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from email.message import Message
from typing import Any

from .operations import Operations
from .problems import Problem, Refused, Unreachable, refused

#: Of the registry's codes, those of the classes `retry` and `retry_after`: 10xx is temporary. A
#: balancer's own 502, 503 and 504 have no code.
_TEMPORARY = (429, 500, 502, 503, 504, 507)
#: Whatever is repeated of these has the effect of one (RFC 9110, 9.2.2).
_IDEMPOTENT = ("GET", "PUT", "DELETE")
_ANSWER_BYTES_MAX = 64 << 20


@dataclasses.dataclass(frozen=True)
class Retries:
    """How often and how long a request is tried."""

    #: Tries in all; 1: none is repeated.
    tries: int = 6
    #: The pause before the second try is up to so many seconds, and doubles with each.
    first_pause: float = 0.2
    longest_pause: float = 5.0
    #: No try begins later than so many seconds after the first.
    within: float = 30.0

    def pause(self, tried: int, asked: float | None, chance: float) -> float:
        """Seconds until the next try: by chance, so that many callers do not come back at once,
        and never before the server asks for it."""
        most = min(self.longest_pause, self.first_pause * 2.0 ** (tried - 1))
        return max(most * chance, asked or 0.0)


class _Own(threading.local):
    """What a thread has: its connection, and the process that opened it."""

    connection: http.client.HTTPConnection | None = None
    process = 0


class Client(Operations):
    """Rouse's backend API, as one app.

        client = Client("http://127.0.0.1:7480", api_key)
        room = client.create_conversation({"participants": ["anna", "ben"]})
        client.publish_message(room["id"], {
            "sender": "anna",
            "parts": [{"mime_type": "text/plain", "text": "Dinner at eight?"}],
            "push": {"title": "Anna", "body": "Dinner at eight?"},
        })

    Every request that takes an `Idempotency-Key` gets one, the same for each of its tries: however
    often it is tried, it has one effect. Give your own `idempotency_key` (a job's id, say) where
    your program may itself begin again. What fails raises a `Problem`. Any number of threads may
    use one client.
    """

    def __init__(
        self, url: str, api_key: str, *, timeout: float = 10.0, retries: Retries = Retries(),
    ) -> None:
        """`timeout`: seconds without a byte of an answer until a try counts as lost."""
        place = urllib.parse.urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname or place.query:
            raise ValueError(f"not the address of a server: {url}")
        if not _is_word(api_key):
            # Without the key: errors come into logs.
            raise ValueError("the API key is empty, or has a character that no key has")
        self._is_secure = place.scheme == "https"
        # Without a port http.client takes the last part of an IPv6 address for one.
        self._host = place.hostname.replace("%25", "%")
        self._port = place.port or (443 if self._is_secure else 80)
        self._base = place.path.rstrip("/")
        self._key, self._timeout, self._retries = api_key, timeout, retries
        self._own = _Own()

    def __repr__(self) -> str:
        return f"Client({self._host!r})"

    def every(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Iterator[Any]:
        """All rows of a list, piece by piece: `every(client.list_messages, room)`.

        What else the method takes is asked of each piece. Given a `cursor` (or an `after`, for
        `list_dropped_tokens`) it goes on from there.
        """
        place = _place(method)
        asked = named.pop(place, None) if place else None
        while True:
            piece = method(*arguments, **named, **({place: asked} if place else {}))
            rows = _rows(piece)
            yield from rows
            coming = piece.get("next")
            # A list that grows later, too, tells where to go on when it has nothing more now.
            if place is None or coming is None or (place == "after" and not rows):
                return
            if coming == asked:
                raise Problem(f"the list does not go on: after {asked} comes {asked} again")
            asked = coming

    def close(self) -> None:
        """Ends this thread's connection; the next request opens another."""
        connection = self._own.connection
        if connection is not None:
            connection.close()

    def _ask(
        self, method: str, path: str, places: dict[str, str] = {}, *,
        query: dict[str, Any] = {}, body: Any = None, is_keyed: bool = False,
        key: str | None = None,
    ) -> Any:
        for name, value in places.items():
            path = path.replace("{" + name + "}", urllib.parse.quote(value, safe=""))
        asked = {name: _word(value) for name, value in query.items() if value is not None}
        target = self._base + path + ("?" + urllib.parse.urlencode(asked) if asked else "")
        headers = {"Authorization": f"Bearer {self._key}"}
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        if is_keyed:
            key = str(uuid.uuid4()) if key is None else key
            if not _is_word(key):
                raise ValueError(f"not an idempotency key: {key!r}")
            headers["Idempotency-Key"] = key
        may_repeat = is_keyed or method in _IDEMPOTENT
        return self._try(method, target, data, headers, key, may_repeat)

    def _try(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str],
        key: str | None, may_repeat: bool,
    ) -> Any:
        start, tried = time.monotonic(), 0
        while True:
            tried += 1
            problem: Problem
            try:
                status, told, answer = self._send(method, target, data, headers, key)
            except Unreachable as error:
                problem, again, asked = error, may_repeat or error.is_carried_out is False, None
            else:
                if 200 <= status < 300:
                    return answer
                refusal: Refused = refused(status, told, answer, key)
                # 429 is said before anything is carried out.
                again = status == 429 or (may_repeat and status in _TEMPORARY)
                problem, asked = refusal, refusal.retry_after
            pause = self._retries.pause(tried, asked, random.random())
            late = time.monotonic() - start + pause > self._retries.within
            if not again or late or tried >= self._retries.tries:
                raise problem
            time.sleep(pause)

    def _send(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str],
        key: str | None,
    ) -> tuple[int, Message, Any]:
        """The status, the header and what was answered: its value, or the bytes of a refusal."""
        connection = self._connection()
        is_sent = False
        try:
            if connection.sock is None:
                connection.connect()
            is_sent = True
            connection.request(method, target, data, headers)
            answer = connection.getresponse()
            body = answer.read(_ANSWER_BYTES_MAX + 1)
            if len(body) > _ANSWER_BYTES_MAX:
                raise http.client.HTTPException("the answer is too long")
            if answer.length:
                # `read` with a limit passes over the end of a connection in the midst of a body.
                raise http.client.IncompleteRead(body, answer.length)
            if not 200 <= answer.status < 300:
                return answer.status, answer.headers, body
            return answer.status, answer.headers, _value(answer.headers, body)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            text = f"{method} {target.split('?')[0]}: {error or type(error).__name__}"
            raise Unreachable(text, None if is_sent else False, key) from error

    def _connection(self) -> http.client.HTTPConnection:
        connection = self._own.connection
        if connection is not None and self._own.process == os.getpid():
            if connection.sock is not None and _is_readable(connection.sock):
                # Nothing was asked, so there is nothing to read but its end: the server closed it.
                connection.close()
            return connection
        # The first, or one of the process that this one was forked from: its socket is both's.
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        made: http.client.HTTPConnection = kind(self._host, self._port, timeout=self._timeout)
        self._own.connection, self._own.process = made, os.getpid()
        return made


def _place(method: Callable[..., Any]) -> str | None:
    """The parameter that says where a list goes on; None: it is one piece."""
    known = inspect.signature(method).parameters
    return next((name for name in ("cursor", "after") if name in known), None)


def _rows(piece: Any) -> list[Any]:
    lists = [rows for rows in piece.values() if isinstance(rows, list)] if piece else []
    if len(lists) != 1:
        raise TypeError("every: the method gives no list")
    return lists[0]


def _is_word(text: str) -> bool:
    """Whether it can stand in a header as it is."""
    return text != "" and all("!" <= character <= "~" for character in text)


def _is_readable(sock: Any) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(headers: Message, body: bytes) -> Any:
    is_json = headers.get("content-type", "").startswith("application/json")
    if not body and not is_json:
        return None
    try:
        return json.loads(body) if is_json else body.decode()
    except ValueError as error:
        # A body without a length that was cut looks so, and what is not the server's own.
        raise http.client.HTTPException(f"the answer cannot be read: {error}") from error

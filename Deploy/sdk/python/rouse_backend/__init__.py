"""A client of Rouse's backend API: see `Client`."""

from . import types
from .client import Client, Retries
from .problems import (
    Conflict, Forbidden, Gone, NotFound, OverLimit, Problem, Refused, TryLater, Unauthorized,
    Unreachable)

__all__ = [
    "Client", "Conflict", "Forbidden", "Gone", "NotFound", "OverLimit", "Problem", "Refused",
    "Retries", "TryLater", "Unauthorized", "Unreachable", "types",
]

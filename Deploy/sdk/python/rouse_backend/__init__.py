"""A client of Rouse's backend API: see `Client`; and `verify_webhook` for what it is told."""

from . import types
from .client import Client, Retries
from .problems import (
    Conflict, Forbidden, Gone, NotFound, OverLimit, Problem, Refused, TryLater, Unauthorized,
    Unreachable)
from .webhooks import BadDelivery, verify_webhook

__all__ = [
    "BadDelivery", "Client", "Conflict", "Forbidden", "Gone", "NotFound", "OverLimit", "Problem",
    "Refused", "Retries", "TryLater", "Unauthorized", "Unreachable", "types", "verify_webhook",
]

"""Trace context (W3C): the ``traceparent`` of a served request continues in the calls that it causes."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

_current: ContextVar[str | None] = ContextVar("plat_sdk_traceparent", default=None)


def valid_traceparent(value: str | None) -> str | None:
    """Return a well-formed ``traceparent``, and None for anything else."""
    return value if value is not None and _TRACEPARENT.fullmatch(value) else None


def current_traceparent() -> str | None:
    """Return the ``traceparent`` of this context; calls carry it unless the client sets its own."""
    return _current.get()


@contextmanager
def use_traceparent(value: str | None) -> Generator[None, None, None]:
    """Calls within the block carry this ``traceparent``. A malformed one is ignored."""
    reset = _current.set(valid_traceparent(value))
    try:
        yield
    finally:
        _current.reset(reset)

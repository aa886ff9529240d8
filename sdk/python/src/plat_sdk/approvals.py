"""Waiting until a person has decided."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ._refusals import denied_by
from .denied import ApprovalPendingError

T = TypeVar("T")

DEFAULT_PAUSE = 5.0
"""Seconds before a call with a pending approval is repeated, if the gateway names no time."""


def until_approved(
    call: Callable[[], T],
    *,
    on_pending: Callable[[ApprovalPendingError], object] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """
    Repeat a call until its approval is decided. Repeated calls wait for the same approval and use it once.

    Raise DeniedError if it is refused, by an error or by its result, and other errors of ``call``.
    """
    while True:
        pending: ApprovalPendingError
        try:
            result = call()
        except Exception as error:
            pending = _pending(error)
        else:
            if denied_by(result) is None:
                return result
            pending = _pending(result)
        if on_pending is not None:
            on_pending(pending)
        sleep(DEFAULT_PAUSE if pending.retry_after is None else pending.retry_after)


async def until_approved_async(
    call: Callable[[], Awaitable[T]],
    *,
    on_pending: Callable[[ApprovalPendingError], object] | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """As ``until_approved``, for coroutines. Cancel it to stop waiting."""
    while True:
        pending: ApprovalPendingError
        try:
            result = await call()
        except Exception as error:
            pending = _pending(error)
        else:
            if denied_by(result) is None:
                return result
            pending = _pending(result)
        if on_pending is not None:
            on_pending(pending)
        await sleep(DEFAULT_PAUSE if pending.retry_after is None else pending.retry_after)


def _pending(value: object) -> ApprovalPendingError:
    """Return the pending approval in a result or an error. Raise the refusal, or the error itself."""
    denied = denied_by(value)
    if isinstance(denied, ApprovalPendingError):
        return denied
    if denied is not None and denied is not value:
        raise denied from (value if isinstance(value, BaseException) else None)
    if isinstance(value, BaseException):
        raise value
    raise TypeError("neither a result nor an error")

"""Errors that this package raises by itself. No message contains a token."""

from __future__ import annotations

from typing import Literal

TokenFaultReason = Literal[
    "missing", "malformed", "signature", "expired", "audience", "issuer", "typ", "binding", "kid"
]


class PlatError(Exception):
    """Base class of every error of this package."""


class TokenUnavailableError(PlatError):
    """There is no valid token. ``retryable``: a retry may help, after ``retry_after`` seconds if it is known."""

    def __init__(self, message: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class IdentityRefusedError(PlatError):
    """The identity broker refused. ``code``: ``invalid_grant``, ``session_revoked``, …; for a mint the error text."""

    def __init__(self, status: int, code: str, description: str | None, retry_after: float | None) -> None:
        super().__init__(f"the identity broker refused: {code}" + ("" if description is None else f": {description}"))
        self.status = status
        self.code = code
        self.retry_after = retry_after


class TokenRefusedError(PlatError):
    """A verifier refused a token: respond with 401."""

    def __init__(self, reason: TokenFaultReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason

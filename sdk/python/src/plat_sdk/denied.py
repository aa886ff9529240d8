"""Refusals of the gateway as typed errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeGuard, get_args

from .errors import PlatError

DenialCode = Literal[
    "invalid_request", "header_mismatch", "unsupported_version", "unauthenticated", "dpop_required",
    "invalid_dpop_proof", "insufficient_scope", "revoked", "suspended", "policy_denied", "approval_denied",
    "approval_expired", "approval_stale", "dlp_denied", "guard_blocked", "tainted_sink", "tool_pin_mismatch",
    "residency_denied", "provider_hosted_tool", "caller_not_allowed", "delegation_too_deep", "model_not_allowed",
    "price_unknown", "offline", "forbidden", "unknown_server", "unknown_tool", "unknown_skill", "unknown_route",
    "unknown_agent", "unknown_session", "unknown_method", "not_found", "method_not_allowed", "request_timeout",
    "ambiguous_server", "conflict", "body_too_large", "unsupported_media_type", "budget_exceeded", "rate_limited",
    "backlog_full", "internal", "not_built", "upstream_error", "upstream_credential", "guard_unavailable",
    "revocations_unavailable", "audit_unavailable", "state_unavailable", "approval_pending", "overloaded",
    "upstream_timeout",
]  # fmt: skip
"""Every code by which the gateway refuses a call. A later gateway may have others."""

DENIAL_CODES: frozenset[str] = frozenset(get_args(DenialCode))


def is_denial_code(word: object) -> TypeGuard[DenialCode]:
    """Return whether an error's word is one of the gateway's: those of upstreams are not."""
    return isinstance(word, str) and word in DENIAL_CODES


@dataclass(frozen=True)
class DenialFacts:
    """Content of a refusal, for every protocol."""

    code: DenialCode
    message: str
    status: int = 0
    """HTTP status of the refusal, also if it is a JSON-RPC error on HTTP 200; 0 if unknown."""
    policy: str | None = None
    rule: str | None = None
    decision_id: str | None = None
    """ID of the call in the ledger."""
    retry_after: float | None = None
    """When to retry, in seconds; None if a retry does not help, or the time is unknown."""
    approval_id: str | None = None
    scopes: tuple[str, ...] = ()
    """Missing scopes."""
    connect_url: str | None = None
    provider: str | None = None


class DeniedError(PlatError):
    """The gateway refused the call. ``facts`` has everything that it said; the attributes are the same."""

    def __init__(self, facts: DenialFacts) -> None:
        super().__init__(facts.message)
        self.facts = facts
        self.code = facts.code
        self.message = facts.message
        self.status = facts.status
        self.policy = facts.policy
        self.rule = facts.rule
        self.decision_id = facts.decision_id
        self.retry_after = facts.retry_after
        self.approval_id = facts.approval_id
        self.scopes = facts.scopes
        self.connect_url = facts.connect_url
        self.provider = facts.provider


class ApprovalPendingError(DeniedError):
    """The call has a pending approval, ``approval_id``. Repeat the call to get the result: see ``until_approved``."""


class ApprovalRefusedError(DeniedError):
    """The approval was denied, has expired, or no longer covers the call."""


class ScopeMissingError(DeniedError):
    """The token lacks ``scopes``; request a token with them."""


class RevokedError(DeniedError):
    """The token, session, agent, user or all callers are revoked or suspended. A retry does not help."""


class BudgetExceededError(DeniedError):
    """A budget of money or tokens is exhausted; ``retry_after`` is the end of its window, if it has one."""


class AccountNeededError(DeniedError):
    """The user must first connect an account at ``connect_url``."""


_KINDS: dict[DenialCode, type[DeniedError]] = {
    "approval_pending": ApprovalPendingError,
    "approval_denied": ApprovalRefusedError,
    "approval_expired": ApprovalRefusedError,
    "approval_stale": ApprovalRefusedError,
    "insufficient_scope": ScopeMissingError,
    "revoked": RevokedError,
    "suspended": RevokedError,
    "budget_exceeded": BudgetExceededError,
}


def denial_of(facts: DenialFacts) -> DeniedError:
    """Return the error of a refusal, of the class for its code."""
    kind = AccountNeededError if facts.connect_url is not None else _KINDS.get(facts.code, DeniedError)
    return kind(facts)

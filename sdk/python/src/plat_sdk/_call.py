"""A call to the gateway: its token and proof, and when it is sent again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from ._flow import Clock, Flow, Pause
from ._keeper import LiveToken, TokenKeeper
from ._refusals import facts_of_response
from ._retry_after import retry_after_in
from .denied import DenialFacts, denial_of
from .errors import PlatError
from .trace import current_traceparent

MAX_SENDS = 4
LONGEST_PAUSE = 30.0
MAX_NONCE_CHARS = 512

Refusals = Literal["raise", "return", "json-rpc"]
"""
How a refusal reaches the client. ``raise``: DeniedError. ``return``: the response; the client retries by itself.
``json-rpc``: the response, as a JSON-RPC error, which MCP clients read.
"""

FOR_CLIENTS = frozenset((400, 404, 405))
"""Statuses that protocol clients handle: negotiation, an ended session, an unsupported stream."""

_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_UNDONE_STATUSES = frozenset((408, 429, 503))
_NOT_FORWARDED = frozenset(("request_timeout", "rate_limited", "backlog_full", "upstream_credential", "overloaded"))
"""
Codes that the gateway uses only before it forwards a call. ``revocations_unavailable`` can also end a running call, and
``approval_pending`` is returned to callers that requested it.
"""

_NONCE_REQUIRED = re.compile(r"\buse_dpop_nonce\b")


@dataclass(frozen=True)
class Sendable:
    """A call. ``repeatable``: its body can be sent again."""

    method: str
    url: str
    repeatable: bool


@dataclass(frozen=True)
class Send:
    """Send the call with these headers in place of those of the client. Result: ``Answer``."""

    headers: Mapping[str, str | None]
    """None removes a header."""

    def __repr__(self) -> str:
        return "Send()"


@dataclass(frozen=True)
class Answer:
    """Status and headers of a response."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Peek:
    """Read the body of the last response, and leave it to be read. Result: bytes, or None if it is too long or compressed."""


@dataclass(frozen=True)
class Discard:
    """Free the connection of the last response."""


class GovernedCalls:
    """Sends calls of one session with its token and proof, and repeats those that had no effect."""

    def __init__(self, keeper: TokenKeeper | None, clock: Clock, gateway_url: str, public_url: str | None) -> None:
        self._keeper = keeper
        self._clock = clock
        self._gateway_url = gateway_url
        self._public_url = public_url
        self._bases = [_with_slash(base) for base in (gateway_url, public_url) if base is not None]
        self._nonce: str | None = None

    def check(self, url: str) -> None:
        """Raise PlatError if the URL is not below the gateway: the token is sent only there."""
        target = _with_slash(url)
        if not any(target.startswith(base) for base in self._bases):
            parts = urlsplit(url)
            place = f"{parts.scheme}://{parts.hostname}"
            raise PlatError(f"the session calls only the gateway, not {place}: use another client there")

    def send(self, call: Sendable, refusals: Refusals) -> Flow[Answer]:
        """Send, and repeat a call that was refused before it was forwarded. Raise DeniedError if ``refusals`` is ``raise``."""
        self.check(call.url)
        if refusals == "return":
            return (yield from self.authorized(call))
        sends = 1
        while True:
            answer = yield from self.authorized(call)
            pause = self._pause_of(answer) if call.repeatable and sends < MAX_SENDS else None
            if pause is None:
                break
            facts = yield from _facts_of(answer)
            if not _is_undone(call, answer, facts):
                break
            yield Discard()
            yield Pause(pause)
            sends += 1
        if refusals == "json-rpc" or answer.status < 400 or answer.status in FOR_CLIENTS:
            return answer
        facts = yield from _facts_of(answer)
        if facts is not None:
            raise denial_of(facts)
        return answer

    def authorized(self, call: Sendable) -> Flow[Answer]:
        """Send once, and again if a nonce is required or a newer token may be accepted."""
        self.check(call.url)
        if self._keeper is None:
            answer: Answer = yield Send(_trace())
            return answer
        token = yield from self._keeper.current()
        answer = yield from self._sent(call, token)
        if answer.status != 401 or not call.repeatable:
            return answer
        facts = yield from _facts_of(answer)
        if _requires_nonce(answer) and self._nonce is not None and facts is not None:
            return (yield from self._sent(call, token))
        if facts is None or facts.code != "unauthenticated":
            return answer
        other = yield from self._keeper.instead(token)
        if other.text == token.text:
            return answer
        return (yield from self._sent(call, other))

    def _sent(self, call: Sendable, token: LiveToken) -> Flow[Answer]:
        prover = None if self._keeper is None or token.claims.jkt is None else self._keeper.prover
        headers: dict[str, str | None] = {**_trace(), "x-api-key": None, "dpop": None}
        headers["authorization"] = f"{'Bearer' if prover is None else 'DPoP'} {token.text}"
        if prover is not None:
            headers["dpop"] = prover.proof(call.method, self._proven_url(call.url), token.text, self._nonce)
        answer: Answer = yield Send(headers)
        nonce = answer.headers.get("dpop-nonce", "")
        if 0 < len(nonce) <= MAX_NONCE_CHARS:
            self._nonce = nonce
        return answer

    def _proven_url(self, url: str) -> str:
        """The URL in a proof: the gateway's public URL may differ from the one that is called."""
        if self._public_url is None or not url.startswith(self._gateway_url):
            return url
        return self._public_url + url[len(self._gateway_url) :]

    def _pause_of(self, answer: Answer) -> float | None:
        if answer.headers.get("x-should-retry") == "false":
            return None
        pause = retry_after_in(answer.headers, self._clock.now())
        return pause if pause is not None and pause <= LONGEST_PAUSE else None


def _facts_of(answer: Answer) -> Flow[DenialFacts | None]:
    body: bytes | None = yield Peek()
    return facts_of_response(answer.status, answer.headers, body)


def _is_undone(call: Sendable, answer: Answer, facts: DenialFacts | None) -> bool:
    """Return whether the call had no effect. Only the gateway knows that; of others only reads are repeated."""
    if facts is not None:
        return facts.code in _NOT_FORWARDED
    return call.method.upper() in _SAFE_METHODS and answer.status in _UNDONE_STATUSES


def _requires_nonce(answer: Answer) -> bool:
    challenge = answer.headers.get("www-authenticate", "")
    return "dpop-nonce" in answer.headers and _NONCE_REQUIRED.search(challenge) is not None


def _trace() -> Mapping[str, str | None]:
    traceparent = current_traceparent()
    return {} if traceparent is None else {"traceparent": traceparent}


def _with_slash(url: str) -> str:
    """Scheme, host, port and path, normalized, with a trailing slash."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.hostname is None:
        return ""
    if any(segment in (".", "..") for segment in parts.path.replace("%2e", ".").replace("%2E", ".").split("/")):
        return ""
    if "\\" in url:
        return ""
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{parts.hostname}:{port or default}{parts.path.rstrip('/')}/"


def json_rpc_refusal(facts: DenialFacts, code: object) -> dict[str, object]:
    """
    The same refusal as a JSON-RPC error, so that MCP clients keep every member, also those that are in headers. ``code``: that
    of the original, if it is a JSON-RPC error.
    """
    data: dict[str, object] = {
        "error": facts.code,
        "decisionId": facts.decision_id,
        "policy": facts.policy,
        "rule": facts.rule,
        "retryAfterMs": None if facts.retry_after is None else round(facts.retry_after * 1000),
        "approvalId": facts.approval_id,
        "connectURL": facts.connect_url,
        "provider": facts.provider,
        "scopes": list(facts.scopes) or None,
    }
    members = {name: value for name, value in data.items() if value is not None}
    number = code if isinstance(code, int) else facts.status
    error = {"code": number, "message": facts.message, "data": members}
    return {"jsonrpc": "2.0", "id": None, "error": error}

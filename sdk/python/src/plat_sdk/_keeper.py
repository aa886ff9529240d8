"""Keeps the token of a session valid."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ._broker import as_unavailable
from ._flow import Clock, Flow, Handle, Pause, Wait
from .claims import SessionClaims, read_claims
from .errors import TokenUnavailableError
from .proof import Prover
from .sources import AnySource, IssuedToken, TokenRequirements, issued_by

FRESH_SHARE = 2 / 3
"""Fraction of its lifetime after which a token is renewed."""
LAST_SECONDS = 5.0
"""Minimum remaining lifetime for sending a token: it could expire in transit."""
TRIES = 4
FIRST_PAUSE = 0.25
"""Seconds after the first failed attempt; each further pause is twice as long."""
LONGEST_PAUSE = 30.0
"""Longest requested pause that a waiting call retries after, in seconds."""
NEXT_ROUND = 5.0
"""Seconds until the next attempts, while a token that is still valid stays in use."""
LEAST_AGE = 5.0
"""Minimum age of a refused token for replacing it. Otherwise a gateway that trusts another broker would cause a mint per call."""


@dataclass(frozen=True)
class LiveToken:
    """The token of calls. Times are those of the monotonic clock."""

    text: str = field(repr=False)
    claims: SessionClaims
    since: float
    fresh_until: float
    usable_until: float


@dataclass(frozen=True)
class KeeperParts:
    """``spawn`` runs a flow in the background, ``bind`` binds a token to a key."""

    source: AnySource
    clock: Clock
    spawn: Callable[[Flow[LiveToken]], Handle]
    bind: Callable[[str, Prover], Flow[str]]


class TokenKeeper:
    """
    Renews the token of a session before it expires, with one request at a time for all threads or tasks. Holds it in memory
    only. Its lifetime is counted on the monotonic clock, so that a clock that is set does not make it expire.
    """

    def __init__(self, parts: KeeperParts, prover: Prover | None) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        self._live: LiveToken | None = None
        self._renewing: Handle | None = None
        self._not_before = float("-inf")
        self._is_closed = False
        self.prover = prover
        self.env: Mapping[str, str] = {}

    @property
    def claims(self) -> SessionClaims | None:
        """Claims of the last token, also if it has expired."""
        return None if self._live is None else self._live.claims

    def current(self) -> Flow[LiveToken]:
        """Return a valid token. After two thirds of its lifetime it is renewed in the background."""
        with self._lock:
            live, now = self._live, self._parts.clock.monotonic()
            if live is not None and now < live.usable_until:
                if now >= live.fresh_until and now >= self._not_before:
                    self._start()
                return live
            handle = self._start()
        renewed: LiveToken = yield Wait(handle)
        return renewed

    def instead(self, refused: LiveToken) -> Flow[LiveToken]:
        """Return another token than the refused one, or the same if there is no other."""
        with self._lock:
            if self._live is not None and self._live is not refused:
                return self._live
            now = self._parts.clock.monotonic()
            if now < refused.since + LEAST_AGE and now < refused.fresh_until:
                return refused
            handle = self._start()
        try:
            renewed: LiveToken = yield Wait(handle)
        except TokenUnavailableError:
            return refused
        return renewed

    def with_source(self, source: AnySource) -> TokenKeeper:
        """Return a keeper of other tokens for the same key."""
        parts = self._parts
        return TokenKeeper(KeeperParts(source, parts.clock, parts.spawn, parts.bind), self.prover)

    def bind_to(self, prover: Prover) -> Flow[None]:
        """Bind every token to the prover's key from now on."""
        with self._lock:
            if self.prover is not None:
                raise TokenUnavailableError("the session already has a key")
            self.prover = prover
        try:
            live = yield from self.current()
            if live.claims.jkt is None:
                self._live = yield from self._accepted(IssuedToken(live.text))
        except BaseException:
            self.prover = None
            raise

    def close(self) -> None:
        """Drop the token and request no other."""
        with self._lock:
            self._is_closed = True
            self._live = None

    def _start(self) -> Handle:
        """Caller must hold the lock."""
        if self._is_closed:
            raise TokenUnavailableError("the session is closed")
        if self._renewing is None or self._renewing.done():
            self._renewing = self._parts.spawn(self._renewed())
        return self._renewing

    def _renewed(self) -> Flow[LiveToken]:
        source, clock = self._parts.source, self._parts.clock
        tries = 1
        while True:
            try:
                wanted = TokenRequirements(None if self.prover is None else self.prover.jkt)
                issued = yield from issued_by(source, wanted)
                live = yield from self._accepted(issued)
                break
            except Exception as error:
                failed = as_unavailable(error)
                wait = failed.retry_after or 0.0
                if self._is_closed or not failed.retryable or tries == TRIES or wait > LONGEST_PAUSE:
                    self._not_before = clock.monotonic() + max(NEXT_ROUND, wait)
                    message = f"no session token of {source.name}: {failed}"
                    raise TokenUnavailableError(
                        message, retryable=failed.retryable, retry_after=failed.retry_after
                    ) from _cause(error)
                backoff = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * (1 - clock.jitter() / 2)
                yield Pause(max(backoff, wait))
                tries += 1
        with self._lock:
            if self._is_closed:
                raise TokenUnavailableError("the session is closed")
            self._live = live
        return live

    def _accepted(self, issued: IssuedToken) -> Flow[LiveToken]:
        claims = read_claims(issued.token)
        clock = self._parts.clock
        if clock.now() >= claims.expires_at:
            raise TokenUnavailableError("the token has expired by the clock of this machine", retryable=True)
        if issued.env is not None:
            self.env = issued.env
        prover, token = self.prover, issued.token
        if claims.jkt is None and prover is not None:
            token = yield from self._parts.bind(token, prover)
            claims = read_claims(token)
        if claims.jkt != (None if prover is None else prover.jkt):
            raise TokenUnavailableError("the token is bound to another key: give the private key as dpop")
        since = clock.monotonic()
        # With a clock that is behind, a token would seem to last longer than it was issued for.
        left = float(min(claims.expires_at - clock.now(), claims.expires_at - claims.issued_at))
        return LiveToken(
            token, claims, since, since + left * FRESH_SHARE, since + left - min(LAST_SECONDS, left / 10)
        )


def _cause(error: Exception) -> Exception | None:
    """Errors of this package never quote a token; those of other sources may."""
    return error if type(error).__module__.startswith("plat_sdk") else None

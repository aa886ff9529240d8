"""Opens the session of this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from ._broker import Exchanger
from ._flow import AsyncRunner, Clock, Flow, SyncRunner
from ._keeper import KeeperParts, TokenKeeper
from .errors import PlatError
from .proof import Prover
from .session import AsyncSession, Session, SessionParts
from .sources import AnySource, bootstrap, token_file

_NO_GATEWAY = "set PLAT_GATEWAY_URL, or give gateway_url: the address of the gateway"
_NO_SOURCE = (
    "no source of session tokens: pass source, set PLAT_TOKEN_FILE or PLAT_BOOTSTRAP_URL, or start the agent with plat run"
)


@dataclass(frozen=True)
class _Settings:
    env: Mapping[str, str]
    gateway_url: str | None
    public_url: str | None
    identity_url: str | None
    source: AnySource | None
    dpop: bool | str | bytes
    clock: Clock


def connect(
    *,
    gateway_url: str | None = None,
    public_url: str | None = None,
    identity_url: str | None = None,
    source: AnySource | None = None,
    dpop: bool | str | bytes = False,
    env: Mapping[str, str] | None = None,
    transport: httpx.BaseTransport | None = None,
    clock: Clock | None = None,
) -> Session:
    """
    Return the session of this process, after fetching its first token, so that configuration errors are reported here.

    Every argument defaults to the environment. ``gateway_url``: ``PLAT_GATEWAY_URL``, or the value from the bootstrap endpoint.
    ``public_url``: public URL of the gateway, if agents call it by another one (``PLAT_PUBLIC_URL``). ``identity_url``: for
    ``bind``, ``exchange`` and ``delegate`` (``PLAT_IDENTITY_URL``). ``source``: the file in ``PLAT_TOKEN_FILE``; else the
    bootstrap endpoint in ``PLAT_BOOTSTRAP_URL``; else none, if ``PLAT_GATEWAY_URL`` is the forwarder of ``plat run``.
    ``dpop``: bind every token to a key of this process, or to the given one (PKCS8 in PEM, Ed25519 or P-256).
    ``transport``: sends every request; the default verifies TLS with the system's roots and uses no proxy.

    Raise PlatError with the missing setting, TokenUnavailableError if there is no token.
    """
    settings = _settings(env, gateway_url, public_url, identity_url, source, dpop, clock)
    runner = SyncRunner(transport or httpx.HTTPTransport(), settings.clock)
    try:
        return Session(runner.run(_opened(settings, runner)), runner)
    except BaseException:
        runner.close()
        raise


async def connect_async(
    *,
    gateway_url: str | None = None,
    public_url: str | None = None,
    identity_url: str | None = None,
    source: AnySource | None = None,
    dpop: bool | str | bytes = False,
    env: Mapping[str, str] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
    clock: Clock | None = None,
) -> AsyncSession:
    """As ``connect``, for asyncio. Cancel the call to stop waiting for the first token."""
    settings = _settings(env, gateway_url, public_url, identity_url, source, dpop, clock)
    runner = AsyncRunner(transport or httpx.AsyncHTTPTransport(), settings.clock)
    try:
        return AsyncSession(await runner.run(_opened(settings, runner)), runner)
    except BaseException:
        await runner.close()
        raise


def _settings(
    env: Mapping[str, str] | None,
    gateway_url: str | None,
    public_url: str | None,
    identity_url: str | None,
    source: AnySource | None,
    dpop: bool | str | bytes,
    clock: Clock | None,
) -> _Settings:
    given = os.environ if env is None else env
    return _Settings(
        env=given,
        gateway_url=_address("gateway_url", gateway_url or given.get("PLAT_GATEWAY_URL")),
        public_url=_address("public_url", public_url or given.get("PLAT_PUBLIC_URL")),
        identity_url=_address("identity_url", identity_url or given.get("PLAT_IDENTITY_URL")),
        source=source or _source_in(given),
        dpop=dpop,
        clock=clock or Clock(),
    )


def _source_in(env: Mapping[str, str]) -> AnySource | None:
    if env.get("PLAT_TOKEN_FILE"):
        return token_file(env["PLAT_TOKEN_FILE"])
    return bootstrap(env["PLAT_BOOTSTRAP_URL"]) if env.get("PLAT_BOOTSTRAP_URL") else None


def _opened(settings: _Settings, runner: SyncRunner | AsyncRunner) -> Flow[SessionParts]:
    keeper: TokenKeeper | None = None
    route: str | None = None
    gateway_url = settings.gateway_url
    if settings.source is None:
        if gateway_url is None:
            raise PlatError(_NO_GATEWAY)
        if not _is_forwarder(gateway_url):
            raise PlatError(_NO_SOURCE)
        if settings.dpop is not False:
            raise PlatError("dpop: not possible with plat run, whose forwarder holds the token")
        route = _route_in(settings.env, gateway_url)
    else:
        keeper = _keeper_of(settings, settings.source, runner)
        yield from keeper.current()
        gateway_url = gateway_url or _address("gateway_url", keeper.env.get("PLAT_GATEWAY_URL"))
        if gateway_url is None:
            raise PlatError(_NO_GATEWAY)
    return SessionParts(
        gateway_url=gateway_url,
        public_url=settings.public_url,
        identity_url=settings.identity_url,
        keeper=keeper,
        name=settings.env.get("PLAT_SESSION") or None,
        route=route,
        clock=settings.clock,
    )


def _keeper_of(settings: _Settings, source: AnySource, runner: SyncRunner | AsyncRunner) -> TokenKeeper:
    dpop, clock = settings.dpop, settings.clock
    prover = None if dpop is False else Prover(clock, None if isinstance(dpop, bool) else dpop)

    def bind(token: str, by: Prover) -> Flow[str]:
        if settings.identity_url is None:
            raise PlatError("to bind a token set PLAT_IDENTITY_URL, or give identity_url: the address of the broker")
        return (yield from Exchanger(settings.identity_url, clock).bind(token, by))

    spawn: Any = runner.spawn
    return TokenKeeper(KeeperParts(source, clock, spawn, bind), prover)


def _is_forwarder(url: str) -> bool:
    """The forwarder of ``plat run`` listens on loopback, and its path is a secret."""
    parts = urlsplit(url)
    return parts.hostname in ("127.0.0.1", "localhost") and len(parts.path) > 1


def _route_in(env: Mapping[str, str], gateway_url: str) -> str | None:
    """The agent's model route, from the URL that ``plat run`` sets for OpenAI clients."""
    base, prefix = env.get("OPENAI_BASE_URL", ""), f"{gateway_url}/llm/"
    if not base.startswith(prefix):
        return None
    return base[len(prefix) :].removesuffix("/").removesuffix("/v1") or None


def _address(name: str, text: str | None) -> str | None:
    """Return the URL without a trailing slash. The error does not repeat it, since a URL of ``plat run`` is secret."""
    if not text:
        return None
    try:
        url = httpx.URL(text)
        is_valid = url.scheme in ("http", "https") and url.host != "" and not (url.query or url.fragment or url.userinfo)
    except httpx.InvalidURL:
        is_valid = False
    if not is_valid:
        raise PlatError(f"{name} must be an http or https URL without query, fragment and user")
    return str(httpx.URL(text)).rstrip("/")

"""A governed session of an agent: its identity and its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Literal, TypedDict
from urllib.parse import quote

import httpx

from ._broker import Exchanged, Exchanger
from ._call import GovernedCalls, Refusals
from ._flow import AsyncRunner, Clock, Flow, SyncRunner
from ._json import read_json
from ._keeper import TokenKeeper
from ._refusals import denial_in
from ._transport import AsyncGovernedTransport, GovernedTransport, SessionAuth
from .claims import SessionClaims
from .errors import PlatError
from .proof import Prover
from .sources import fixed_token

MAX_RESULT_BYTES = 64 * 1024 * 1024
_PLACEHOLDER = "in-place-of-the-session-token"
_TIMEOUT = httpx.Timeout(10, read=600)


@dataclass(frozen=True)
class McpAddress:
    """Where an MCP server is, and the headers of every request to it."""

    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class A2aAddress:
    """Where another agent is, for ``a2a-sdk``."""

    url: str
    card_path: str


@dataclass(frozen=True)
class ExecResult:
    """Result of code in the session's sandbox; ``status`` is the sandbox's, below 500."""

    status: int
    result: Any


class OpenAIOptions(TypedDict):
    """Arguments of ``OpenAI`` and ``AsyncOpenAI``."""

    base_url: str
    api_key: str
    http_client: Any


class AnthropicOptions(TypedDict):
    """Arguments of ``Anthropic`` and ``AsyncAnthropic``."""

    base_url: str
    auth_token: str
    http_client: Any


@dataclass(frozen=True)
class SessionParts:
    """Parts of a session, assembled by ``connect``. URLs have no trailing slash."""

    gateway_url: str
    public_url: str | None
    identity_url: str | None
    keeper: TokenKeeper | None
    """None: a forwarder adds the token."""
    name: str | None
    route: str | None
    clock: Clock


class _SessionCore:
    """Everything but the I/O, for ``Session`` and ``AsyncSession``."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._calls = GovernedCalls(parts.keeper, parts.clock, parts.gateway_url, parts.public_url)
        self.gateway_url = parts.gateway_url
        """URL of every call, without a trailing slash."""

    def __repr__(self) -> str:
        claims = self.claims
        return f"{type(self).__name__}({self._parts.name if claims is None else claims.subject})"

    @property
    def env(self) -> Mapping[str, str]:
        """Variables from the bootstrap endpoint; empty without it."""
        return {} if self._parts.keeper is None else self._parts.keeper.env

    @property
    def claims(self) -> SessionClaims | None:
        """Claims of the session's token. None under ``plat run``, which holds the token."""
        return None if self._parts.keeper is None else self._parts.keeper.claims

    def mcp(
        self,
        server: str,
        *,
        approval_wait_seconds: int | None = None,
        refusals: Literal["result", "error"] | None = None,
    ) -> McpAddress:
        """
        Address of an MCP server, ``notes`` or ``<namespace>/notes``. ``approval_wait_seconds``: a call with a pending approval
        is refused after this time. ``refusals``: ``error`` makes refused tool calls raise instead of return a result.
        """
        headers: dict[str, str] = {}
        if approval_wait_seconds is not None:
            headers["prefer"] = f"wait={approval_wait_seconds}"
        if refusals is not None:
            headers["x-plat-refusals"] = refusals
        path = "/".join(_segment(part) for part in server.split("/"))
        return McpAddress(f"{self.gateway_url}/mcp/{path}", headers)

    def a2a(self, namespace: str, agent: str) -> A2aAddress:
        """Address of another agent."""
        url = f"{self.gateway_url}/a2a/{_segment(namespace)}/{_segment(agent)}/"
        return A2aAddress(url, ".well-known/agent-card.json")

    def model_url(self, route: str | None = None) -> str:
        """URL of a model route; by default the agent's own."""
        claims = self.claims
        own = self._parts.route if claims is None else f"{claims.namespace}.{claims.agent}"
        name = own if route is None else route
        if name is None:
            raise PlatError("pass the model route: the agent is not known from a token")
        return f"{self.gateway_url}/llm/{_segment(name)}"

    def _openai(self, route: str | None, client: Any) -> OpenAIOptions:
        return {"base_url": f"{self.model_url(route)}/v1", "api_key": _PLACEHOLDER, "http_client": client}

    def _anthropic(self, route: str | None, client: Any) -> AnthropicOptions:
        return {"base_url": self.model_url(route), "auth_token": _PLACEHOLDER, "http_client": client}

    def _keeper(self, what: str) -> TokenKeeper:
        if self._parts.keeper is None:
            raise PlatError(f"{what} is not available with plat run, whose forwarder holds the token")
        return self._parts.keeper

    def _exchanger(self) -> Exchanger:
        if self._parts.identity_url is None:
            raise PlatError("the address of the identity broker is missing: set PLAT_IDENTITY_URL or identity_url")
        return Exchanger(self._parts.identity_url, self._parts.clock)

    def _token(self) -> Flow[str]:
        return (yield from self._keeper("the token").current()).text

    def _exchange(self, audience: str, narrowed: Mapping[str, str]) -> Flow[Exchanged]:
        keeper = self._keeper("the token")
        live = yield from keeper.current()
        return (yield from self._exchanger().exchange(live.text, audience, narrowed, keeper.prover))

    def _delegate(self, subject: tuple[str | None, str | None], narrowed: Mapping[str, str]) -> Flow[SessionParts]:
        keeper = self._keeper("the token")
        live = yield from keeper.current()
        issued = yield from self._exchanger().delegate(live.text, subject, narrowed, keeper.prover)
        acting = keeper.with_source(fixed_token(issued.token))
        yield from acting.current()
        parts = self._parts
        return SessionParts(
            parts.gateway_url, parts.public_url, parts.identity_url, acting, parts.name, parts.route, parts.clock
        )

    def _bind(self, private_key: str | bytes | None) -> Flow[None]:
        yield from self._keeper("binding").bind_to(Prover(self._parts.clock, private_key))

    def _exec_url(self) -> str:
        claims = self.claims
        name = self._parts.name if claims is None else claims.session
        if name is None:
            raise PlatError("the session has no name: set PLAT_SESSION")
        return f"{self.gateway_url}/v1/sessions/{_segment(name)}/exec"


class Session(_SessionCore):
    """A session for threads. Created by ``connect``; safe to use from several threads."""

    def __init__(self, parts: SessionParts, runner: SyncRunner, *, owns_runner: bool = True) -> None:
        super().__init__(parts)
        self._runner = runner
        self._owns_runner = owns_runner

    @cached_property
    def http(self) -> httpx.Client:
        """
        A client for calls to the gateway only, with the session's token, and a proof if the token is bound to a key. A refusal
        raises DeniedError, except for the statuses 400, 404 and 405, which protocol clients handle.
        """
        return self.http_client("raise")

    @property
    def auth(self) -> SessionAuth:
        """The token and the proof for any ``httpx.Client``; refusals stay responses."""
        return SessionAuth(self._calls, self._runner, None)

    def http_client(self, refusals: Refusals = "raise") -> httpx.Client:
        """Return a new client for calls to the gateway."""
        return httpx.Client(transport=self.transport(refusals), timeout=_TIMEOUT, trust_env=False)

    def transport(self, refusals: Refusals = "raise") -> GovernedTransport:
        """Return a transport for calls to the gateway."""
        return GovernedTransport(self._calls, self._runner, refusals)

    def openai(self, route: str | None = None) -> OpenAIOptions:
        """Arguments of ``OpenAI`` for a model route; by default the agent's. The client retries by itself."""
        return self._openai(route, _bridged(self))

    def anthropic(self, route: str | None = None) -> AnthropicOptions:
        """Arguments of ``Anthropic`` for a model route; by default the agent's."""
        return self._anthropic(route, _bridged(self))

    def token(self) -> str:
        """Return a currently valid token. A bound token needs a proof with each use."""
        return self._runner.run(self._token())

    def exec(self, code: Mapping[str, Any]) -> ExecResult:
        """Run code in the session's sandbox. Raise DeniedError if the gateway refuses."""
        with self.http.stream("POST", self._exec_url(), json=dict(code)) as response:
            chunks, size = list[bytes](), 0
            for chunk in response.iter_bytes():
                size += len(chunk)
                chunks.append(_within(chunk, size))
        return _exec_result(response, b"".join(chunks))

    def exchange(
        self, audience: str, *, scopes: Sequence[str] | None = None, ttl_seconds: int | None = None
    ) -> Exchanged:
        """Exchange the token for one of another audience, or for a cloud credential. Raise IdentityRefusedError."""
        return self._runner.run(self._exchange(audience, _narrowed(scopes, ttl_seconds)))

    def delegate(
        self,
        *,
        transaction: str | None = None,
        session: str | None = None,
        scopes: Sequence[str] | None = None,
        ttl_seconds: int | None = None,
    ) -> Session:
        """
        Return a session that acts for the caller of this agent and its user: ``transaction`` is the header ``Txn-Token``,
        ``session`` the token that the caller handed over. It expires with the delegated token and closes with this session.
        """
        parts = self._runner.run(self._delegate((transaction, session), _narrowed(scopes, ttl_seconds)))
        return Session(parts, self._runner, owns_runner=False)

    def bind(self, private_key: str | bytes | None = None) -> None:
        """Bind the session to a key from now on (DPoP), so that a leaked token is useless."""
        self._runner.run(self._bind(private_key))

    def close(self) -> None:
        """Drop the token and request no other."""
        if self._parts.keeper is not None:
            self._parts.keeper.close()
        if self._owns_runner:
            self._runner.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncSession(_SessionCore):
    """A session for tasks of one event loop. Created by ``connect_async``."""

    def __init__(self, parts: SessionParts, runner: AsyncRunner, *, owns_runner: bool = True) -> None:
        super().__init__(parts)
        self._runner = runner
        self._owns_runner = owns_runner

    @cached_property
    def http(self) -> httpx.AsyncClient:
        """As ``Session.http``."""
        return self.http_client("raise")

    @property
    def auth(self) -> SessionAuth:
        """The token and the proof for any ``httpx.AsyncClient``; refusals stay responses."""
        return SessionAuth(self._calls, None, self._runner)

    def http_client(self, refusals: Refusals = "raise") -> httpx.AsyncClient:
        """Return a new client for calls to the gateway."""
        return httpx.AsyncClient(transport=self.transport(refusals), timeout=_TIMEOUT, trust_env=False)

    def transport(self, refusals: Refusals = "raise") -> AsyncGovernedTransport:
        """Return a transport for calls to the gateway."""
        return AsyncGovernedTransport(self._calls, self._runner, refusals)

    def openai(self, route: str | None = None) -> OpenAIOptions:
        """Arguments of ``AsyncOpenAI`` for a model route; by default the agent's. The client retries by itself."""
        return self._openai(route, _bridged(self))

    def anthropic(self, route: str | None = None) -> AnthropicOptions:
        """Arguments of ``AsyncAnthropic`` for a model route; by default the agent's."""
        return self._anthropic(route, _bridged(self))

    async def token(self) -> str:
        """As ``Session.token``."""
        return await self._runner.run(self._token())

    async def exec(self, code: Mapping[str, Any]) -> ExecResult:
        """As ``Session.exec``."""
        async with self.http.stream("POST", self._exec_url(), json=dict(code)) as response:
            chunks, size = list[bytes](), 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                chunks.append(_within(chunk, size))
        return _exec_result(response, b"".join(chunks))

    async def exchange(
        self, audience: str, *, scopes: Sequence[str] | None = None, ttl_seconds: int | None = None
    ) -> Exchanged:
        """As ``Session.exchange``."""
        return await self._runner.run(self._exchange(audience, _narrowed(scopes, ttl_seconds)))

    async def delegate(
        self,
        *,
        transaction: str | None = None,
        session: str | None = None,
        scopes: Sequence[str] | None = None,
        ttl_seconds: int | None = None,
    ) -> AsyncSession:
        """As ``Session.delegate``."""
        parts = await self._runner.run(self._delegate((transaction, session), _narrowed(scopes, ttl_seconds)))
        return AsyncSession(parts, self._runner, owns_runner=False)

    async def bind(self, private_key: str | bytes | None = None) -> None:
        """As ``Session.bind``."""
        await self._runner.run(self._bind(private_key))

    async def close(self) -> None:
        """Drop the token and request no other."""
        if self._parts.keeper is not None:
            self._parts.keeper.close()
        if self._owns_runner:
            await self._runner.close()

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _segment(text: str) -> str:
    return quote(text, safe="")


def _narrowed(scopes: Sequence[str] | None, ttl_seconds: int | None) -> Mapping[str, str]:
    narrowed = {} if scopes is None else {"scope": " ".join(scopes)}
    return narrowed if ttl_seconds is None else {**narrowed, "requested_ttl_seconds": str(ttl_seconds)}


def _within(chunk: bytes, size: int) -> bytes:
    if size > MAX_RESULT_BYTES:
        raise PlatError(f"the result is larger than {MAX_RESULT_BYTES} bytes")
    return chunk


def _exec_result(response: httpx.Response, content: bytes) -> ExecResult:
    denied = denial_in(httpx.Response(response.status_code, headers=_plain(response), content=content))
    if denied is not None:
        raise denied
    try:
        return ExecResult(response.status_code, read_json(content))
    except ValueError:
        raise PlatError("the result is not JSON") from None


def _plain(response: httpx.Response) -> dict[str, str]:
    """Headers of the same response after its body was decoded."""
    return {name: value for name, value in response.headers.items() if name not in ("content-encoding", "content-length")}


def _bridged(session: Session | AsyncSession) -> Any:
    """The HTTP client of model clients: of ``httpx2``, which they use, if it is installed."""
    try:
        from . import httpx2_clients
    except ImportError:
        return session.http_client("return")
    if isinstance(session, Session):
        return httpx2_clients.client(session, "return")
    return httpx2_clients.async_client(session, "return")

"""ASGI middleware for servers behind the gateway, such as MCP servers of FastMCP."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from .claims import SessionClaims
from .errors import PlatError, TokenRefusedError
from .trace import use_traceparent
from .verifier import AsyncTokenVerifier, AsyncTransactionVerifier, Transaction

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SCOPE_MEMBER = "plat.caller"
TRANSACTION_MEMBER = "plat.transaction"

_caller: ContextVar[SessionClaims | None] = ContextVar("plat_sdk_caller", default=None)


class App(Protocol):
    """An ASGI application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send, /) -> None: ...


def current_caller() -> SessionClaims:
    """Return the verified caller of the request that is being served. Raise PlatError outside of a request."""
    caller = _caller.get()
    if caller is None:
        raise PlatError("no verified caller: the request did not pass the middleware, or runs in another context")
    return caller


def caller_of(scope: Mapping[str, Any]) -> SessionClaims:
    """Return the verified caller of a request from its ASGI scope, such as ``request.scope``."""
    caller = scope.get(SCOPE_MEMBER)
    if not isinstance(caller, SessionClaims):
        raise PlatError("no verified caller: the request did not pass the middleware")
    return caller


class PlatMiddleware:
    """
    Refuses every request without a valid token, with 401. The caller is in ``current_caller()`` and in the scope of the request;
    the trace context of the request continues in calls of ``plat_sdk``.

    ``url``: public base URL of the server, without the path, for proofs. With ``transactions`` the header ``Txn-Token`` is verified
    in place of ``Authorization``. Requests to ``open_paths`` pass unverified, such as a health check.
    """

    def __init__(
        self,
        app: App,
        *,
        verifier: AsyncTokenVerifier | None = None,
        transactions: AsyncTransactionVerifier | None = None,
        url: str = "",
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        if (verifier is None) == (transactions is None):
            raise PlatError("PlatMiddleware: give either verifier or transactions")
        self._app = app
        self._verifier = verifier
        self._transactions = transactions
        self._url = url.rstrip("/")
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope.get("type")
        if kind == "lifespan" or (kind == "http" and scope.get("path") in self._open_paths):
            return await self._app(scope, receive, send)
        if kind != "http":
            raise PlatError(f"PlatMiddleware: connections of type {kind} are not served")
        headers = _headers_of(scope)
        try:
            caller, transaction = await self._verified(scope, headers)
        except TokenRefusedError as error:
            return await _refuse(send, error)
        scope[SCOPE_MEMBER] = caller
        if transaction is not None:
            scope[TRANSACTION_MEMBER] = transaction
        trace = next((value for name, value in headers if name == "traceparent"), None)
        with _serving(caller), use_traceparent(trace):
            await self._app(scope, receive, send)

    async def _verified(
        self, scope: Scope, headers: list[tuple[str, str]]
    ) -> tuple[SessionClaims, Transaction | None]:
        if self._verifier is not None:
            url = self._url + str(scope.get("path", "/"))
            return await self._verifier.verify_request(str(scope["method"]), url, headers), None
        if self._transactions is None:
            raise PlatError("PlatMiddleware: no verifier")
        tokens = [value for name, value in headers if name == "txn-token"]
        if len(tokens) > 1:
            raise TokenRefusedError("malformed", "the header Txn-Token must occur once")
        transaction = await self._transactions.verify(tokens[0] if tokens else None)
        return transaction.caller, transaction


def _headers_of(scope: Scope) -> list[tuple[str, str]]:
    raw: list[tuple[bytes, bytes]] = list(scope.get("headers", ()))
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


@contextmanager
def _serving(caller: SessionClaims) -> Generator[None, None, None]:
    reset = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(reset)


async def _refuse(send: Send, error: TokenRefusedError) -> None:
    body = json.dumps({"error": "invalid_token", "error_description": str(error)}).encode()
    # RFC 6750, section 3.1: without a token the challenge has no error.
    code = "" if error.reason == "missing" else ', error="invalid_token"'
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", f'Bearer realm="plat"{code}'.encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})

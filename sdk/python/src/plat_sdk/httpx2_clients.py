"""Clients of ``httpx2`` for a session: the libraries of MCP, OpenAI and Anthropic use them. Needs the extra ``httpx2``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from typing import cast

import httpx
import httpx2

from ._call import Refusals
from .session import AsyncSession, Session

_TIMEOUT = httpx2.Timeout(10, read=600)


def client(session: Session, refusals: Refusals = "raise") -> httpx2.Client:
    """Return a new client for calls of the session to the gateway."""
    return httpx2.Client(transport=_Transport(session.transport(refusals)), timeout=_TIMEOUT, trust_env=False)


def async_client(session: AsyncSession, refusals: Refusals = "raise") -> httpx2.AsyncClient:
    """As ``client``, for tasks."""
    transport = _AsyncTransport(session.transport(refusals))
    return httpx2.AsyncClient(transport=transport, timeout=_TIMEOUT, trust_env=False)


class _Out(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Body of a request that can be read only once."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        yield from cast(httpx2.SyncByteStream, self._stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in cast(httpx2.AsyncByteStream, self._stream):
            yield chunk


class _In(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Body of a response."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _errors():
            yield from cast(httpx.SyncByteStream, self._response.stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors():
            async for chunk in cast(httpx.AsyncByteStream, self._response.stream):
                yield chunk

    def close(self) -> None:
        self._response.close()

    async def aclose(self) -> None:
        await self._response.aclose()


class _Transport(httpx2.BaseTransport):
    def __init__(self, inner: httpx.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        with _errors():
            return _response(self._inner.handle_request(_request(request)))


class _AsyncTransport(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        with _errors():
            return _response(await self._inner.handle_async_request(_request(request)))


def _request(request: httpx2.Request) -> httpx.Request:
    body = request.stream
    stream = httpx.ByteStream(b"".join(body)) if isinstance(body, httpx2.ByteStream) else _Out(body)
    return httpx.Request(
        request.method,
        str(request.url),
        headers=request.headers.raw,
        stream=stream,
        extensions=dict(request.extensions),
    )


def _response(response: httpx.Response) -> httpx2.Response:
    return httpx2.Response(
        response.status_code, headers=response.headers.raw, stream=_In(response), extensions=dict(response.extensions)
    )


@contextmanager
def _errors() -> Generator[None, None, None]:
    """Errors of ``httpx`` as those of the same name of ``httpx2``."""
    try:
        yield
    except httpx.TransportError as error:
        kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
        raise kind(str(error)) from error

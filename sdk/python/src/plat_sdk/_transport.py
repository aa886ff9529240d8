"""Transports and auth classes for ``httpx``: the two drivers of a governed call."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from functools import partial
from typing import Any, cast

import httpx

from ._call import Answer, Discard, GovernedCalls, Peek, Refusals, Send, Sendable, json_rpc_refusal
from ._flow import AsyncRunner, Flow, SyncRunner, is_plain
from ._json import is_object, read_object
from ._refusals import MAX_REFUSAL_BYTES, facts_in, is_json

_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class _Replayed(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body of which some was read: first that again, then the rest."""

    def __init__(self, chunks: list[bytes], rest: Iterator[bytes] | AsyncIterator[bytes] | None, origin: object) -> None:
        self._chunks = chunks
        self._rest = rest
        self._origin = origin

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        if isinstance(self._rest, Iterator):
            yield from self._rest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield chunk
        if isinstance(self._rest, AsyncIterator):
            async for chunk in self._rest:
                yield chunk

    def close(self) -> None:
        cast(httpx.SyncByteStream, self._origin).close()

    async def aclose(self) -> None:
        await cast(httpx.AsyncByteStream, self._origin).aclose()


def is_peekable(response: httpx.Response) -> bool:
    """Return whether a refusal may be in the body: JSON without compression."""
    return is_json(response.headers) and is_plain(response.headers)


def peek(response: httpx.Response) -> bytes | None:
    """Read a body of at most ``MAX_REFUSAL_BYTES``, and leave it to be read."""
    if not is_peekable(response):
        return None
    origin = cast(httpx.SyncByteStream, response.stream)
    rest, chunks, size = iter(origin), list[bytes](), 0
    for chunk in rest:
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_REFUSAL_BYTES:
            response.stream = _Replayed(chunks, rest, origin)
            return None
    response.stream = _Replayed(chunks, None, origin)
    return b"".join(chunks)


async def peek_async(response: httpx.Response) -> bytes | None:
    """The same for tasks."""
    if not is_peekable(response):
        return None
    origin = cast(httpx.AsyncByteStream, response.stream)
    rest, chunks, size = aiter(origin), list[bytes](), 0
    async for chunk in rest:
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_REFUSAL_BYTES:
            response.stream = _Replayed(chunks, rest, origin)
            return None
    response.stream = _Replayed(chunks, None, origin)
    return b"".join(chunks)


def sendable(request: httpx.Request) -> Sendable:
    """The call that a request makes."""
    return Sendable(request.method, str(request.url), isinstance(request.stream, httpx.ByteStream))


def with_headers(request: httpx.Request, send: Send) -> httpx.Request:
    """The request with the token and the proof of this attempt."""
    headers = httpx.Headers(request.headers)
    for name, value in send.headers.items():
        headers.pop(name, None)
        if value is not None:
            headers[name] = value
    if "traceparent" in request.headers:
        headers["traceparent"] = request.headers["traceparent"]
    return httpx.Request(
        request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
    )


def _answer_of(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers)


def _without_redirect(response: httpx.Response) -> httpx.Response:
    """The gateway never redirects, so a redirect comes from another server, which must not get the token."""
    if response.status_code in _REDIRECTS:
        response.headers.pop("location", None)
    return response


def _as_json_rpc(request: httpx.Request, response: httpx.Response, body: bytes | None) -> httpx.Response:
    """Turn a refusal at the level of HTTP into a JSON-RPC error of the same status."""
    document = read_object(body)
    facts = facts_in(document, response.status_code, response.headers)
    # Clients recognize an ended session by the status alone.
    if document is None or facts is None or response.status_code == 404:
        return response
    error = document.get("error")
    code = error.get("code") if is_object(error) else None
    headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-length"]
    content = json.dumps(json_rpc_refusal(facts, code)).encode()
    return httpx.Response(response.status_code, headers=headers, content=content, request=request)


class GovernedTransport(httpx.BaseTransport):
    """Sends the calls of a session to the gateway. Closing it leaves the session open."""

    def __init__(self, calls: GovernedCalls, runner: SyncRunner, refusals: Refusals) -> None:
        self._calls = calls
        self._runner = runner
        self._refusals: Refusals = refusals

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        last: httpx.Response | None = None

        def perform(step: object) -> object:
            nonlocal last
            if isinstance(step, Peek):
                return None if last is None else peek(last)
            if last is not None:
                last.close()
            if isinstance(step, Discard):
                return None
            if not isinstance(step, Send):
                raise TypeError("unknown step")
            last = self._runner.transport.handle_request(with_headers(request, step))
            return _answer_of(last)

        try:
            self._runner.run(self._calls.send(sendable(request), self._refusals), perform)
        except BaseException:
            if last is not None:
                last.close()
            raise
        response = _without_redirect(cast(httpx.Response, last))
        if self._refusals == "json-rpc" and response.status_code >= 400:
            return _as_json_rpc(request, response, peek(response))
        return response


class AsyncGovernedTransport(httpx.AsyncBaseTransport):
    """The same for tasks."""

    def __init__(self, calls: GovernedCalls, runner: AsyncRunner, refusals: Refusals) -> None:
        self._calls = calls
        self._runner = runner
        self._refusals: Refusals = refusals

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        last: httpx.Response | None = None

        async def perform(step: object) -> object:
            nonlocal last
            if isinstance(step, Peek):
                return None if last is None else await peek_async(last)
            if last is not None:
                await last.aclose()
            if isinstance(step, Discard):
                return None
            if not isinstance(step, Send):
                raise TypeError("unknown step")
            last = await self._runner.transport.handle_async_request(with_headers(request, step))
            return _answer_of(last)

        try:
            await self._runner.run(self._calls.send(sendable(request), self._refusals), perform)
        except BaseException:
            if last is not None:
                await last.aclose()
            raise
        response = _without_redirect(cast(httpx.Response, last))
        if self._refusals == "json-rpc" and response.status_code >= 400:
            return _as_json_rpc(request, response, await peek_async(response))
        return response


class SessionAuth(httpx.Auth):
    """
    The session's token and proof for any ``httpx.Client`` or ``httpx.AsyncClient`` of the program; refusals stay responses,
    and only a token that is no longer valid or a required nonce causes a second request.
    """

    def __init__(self, calls: GovernedCalls, runner: SyncRunner | None, runner_async: AsyncRunner | None) -> None:
        self._calls = calls
        self._sync = runner
        self._async = runner_async

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._sync is None:
            raise TypeError("the auth of connect_async is for httpx.AsyncClient")
        position, last = _Position(self._calls.authorized(sendable(request))), None
        while (step := position.step) is not None:
            if isinstance(step, Send):
                _update(request, step)
                last = yield request
                position.resume(_answer_of(last))
                continue
            try:
                if isinstance(step, Peek):
                    result: Any = None if last is None else peek(last)
                else:
                    result = self._sync.run(_single(step))
            except Exception as error:
                position.fail(error)
            else:
                position.resume(result)

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if self._async is None:
            raise TypeError("the auth of connect is for httpx.Client")
        position, last = _Position(self._calls.authorized(sendable(request))), None
        while (step := position.step) is not None:
            if isinstance(step, Send):
                _update(request, step)
                last = yield request
                position.resume(_answer_of(last))
                continue
            try:
                if isinstance(step, Peek):
                    result: Any = None if last is None else await peek_async(last)
                else:
                    result = await self._async.run(_single(step))
            except Exception as error:
                position.fail(error)
            else:
                position.resume(result)


class _Position:
    """The position of a flow. ``step``: what the flow waits for; None after its end."""

    def __init__(self, flow: Flow[Any]) -> None:
        self._flow = flow
        self.step: Any = None
        self._advance(partial(next, flow))

    def resume(self, result: Any) -> None:
        self._advance(partial(self._flow.send, result))

    def fail(self, error: Exception) -> None:
        self._advance(partial(self._flow.throw, error))

    def _advance(self, advance: Callable[[], Any]) -> None:
        try:
            self.step = advance()
        except StopIteration:
            self.step = None


def _single(step: Any) -> Flow[Any]:
    return (yield step)


def _update(request: httpx.Request, send: Send) -> None:
    for name, value in send.headers.items():
        if name == "traceparent" and name in request.headers:
            continue
        request.headers.pop(name, None)
        if value is not None:
            request.headers[name] = value

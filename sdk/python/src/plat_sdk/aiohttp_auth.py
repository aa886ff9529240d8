"""Client middleware for aiohttp, with the session's token. Needs the extra ``aiohttp``."""

from __future__ import annotations


from aiohttp import ClientHandlerType, ClientMiddlewareType, ClientRequest, ClientResponse
from aiohttp.payload import BytesPayload

from ._call import Answer, Peek, Send, Sendable
from ._flow import is_plain
from ._refusals import MAX_REFUSAL_BYTES, is_json
from .session import AsyncSession


def middleware(session: AsyncSession) -> ClientMiddlewareType:
    """
    Return a middleware for ``aiohttp.ClientSession(middlewares=[...])`` that adds the session's token and proof to calls to the
    gateway; calls elsewhere raise PlatError. Refusals stay responses. Use it with ``allow_redirects=False``: the gateway never
    redirects.
    """
    calls, runner = session._calls, session._runner  # pyright: ignore[reportPrivateUsage]

    async def handle(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        body = request.body
        repeatable = isinstance(body, (bytes, BytesPayload))
        last: ClientResponse | None = None

        async def perform(step: object) -> object:
            nonlocal last
            if isinstance(step, Peek):
                return None if last is None else await _peek(last)
            if not isinstance(step, Send):
                raise TypeError("unknown step")
            if last is not None:
                last.release()
            _update(request, step)
            last = await handler(request)
            return Answer(last.status, last.headers)

        flow = calls.authorized(Sendable(request.method, str(request.url), repeatable))
        await runner.run(flow, perform)
        if last is None:
            raise TypeError("the call was not sent")
        return last

    return handle


async def _peek(response: ClientResponse) -> bytes | None:
    """Read a short refusal; aiohttp keeps a body that was read."""
    length = response.content_length
    if not is_json(response.headers) or not is_plain(response.headers) or length is None:
        return None
    return await response.read() if length <= MAX_REFUSAL_BYTES else None


def _update(request: ClientRequest, send: Send) -> None:
    for name, value in send.headers.items():
        if name == "traceparent" and name in request.headers:
            continue
        request.headers.popall(name, None)
        if value is not None:
            request.headers[name] = value

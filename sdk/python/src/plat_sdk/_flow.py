"""
Steps of the core, which does no I/O, and the two runners that carry them out.

A flow is a generator: it yields a step and is resumed with the result. The logic is written once; only the runners
know whether the program waits in threads or in tasks.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import random
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import httpx

from .errors import PlatError, TokenUnavailableError

T = TypeVar("T")


@dataclass(frozen=True)
class Fetch:
    """One request to the identity broker or for a key document. Result: ``Reply``."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes
    timeout: float
    """Seconds for the whole exchange."""
    max_bytes: int

    def __repr__(self) -> str:
        return f"Fetch({self.method})"


@dataclass(frozen=True)
class Reply:
    """A response; ``body`` is None if it is longer than ``max_bytes``, compressed, or was cut."""

    status: int
    headers: httpx.Headers
    body: bytes | None


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Call:
    """Call a function that may block or return an awaitable. Result: its result."""

    function: Callable[[], object]


Handle = concurrent.futures.Future[Any] | asyncio.Task[Any]


@dataclass(frozen=True)
class Wait:
    """Wait for a flow that runs in the background. Result: its result."""

    handle: Handle


Flow = Generator[Any, Any, T]


class Clock:
    """The machine's clocks. Tests replace them."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def jitter(self) -> float:
        """A number from 0 to 1."""
        return random.random()

    def sleep(self, seconds: float, closed: threading.Event) -> None:
        closed.wait(seconds)

    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FetchFailedError(Exception):
    """The server did not respond."""


class SyncRunner:
    """Carries out steps in the calling thread."""

    def __init__(self, transport: httpx.BaseTransport, clock: Clock) -> None:
        self.transport = transport
        self.clock = clock
        self._closed = threading.Event()

    def run(self, flow: Flow[T], other: Callable[[Any], object] | None = None) -> T:
        """Run a flow to its end. ``other`` carries out the steps that a runner does not know."""
        try:
            step = next(flow)
            while True:
                try:
                    result = self._perform(step, other)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as done:
            return cast(T, done.value)

    def spawn(self, flow: Flow[T]) -> concurrent.futures.Future[T]:
        """Run a flow in a thread of the background, which does not keep the process alive."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def work() -> None:
            try:
                future.set_result(self.run(flow))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=work, name="plat-sdk", daemon=True).start()
        return future

    def close(self) -> None:
        self._closed.set()
        self.transport.close()

    def _perform(self, step: object, other: Callable[[Any], object] | None) -> object:
        if self._closed.is_set():
            raise TokenUnavailableError("the session is closed")
        if isinstance(step, Fetch):
            return self._fetch(step)
        if isinstance(step, Pause):
            self.clock.sleep(step.seconds, self._closed)
            return None
        if isinstance(step, Wait) and isinstance(step.handle, concurrent.futures.Future):
            return step.handle.result()
        if isinstance(step, Call):
            result = step.function()
            if inspect.isawaitable(result):
                _discard(result)
                raise PlatError("the source of tokens is asynchronous: use connect_async")
            return result
        if other is None:
            raise TypeError("unknown step")
        return other(step)

    def _fetch(self, fetch: Fetch) -> Reply:
        ends = time.monotonic() + fetch.timeout
        try:
            response = self.transport.handle_request(_request_of(fetch))
            try:
                collected = _Collected(fetch, response, ends)
                if collected.is_wanted:
                    for chunk in cast(httpx.SyncByteStream, response.stream):
                        if not collected.add(chunk):
                            break
                return collected.reply()
            finally:
                response.close()
        except (httpx.TransportError, OSError) as error:
            raise FetchFailedError(type(error).__name__) from None


class AsyncRunner:
    """Carries out steps in tasks of asyncio."""

    def __init__(self, transport: httpx.AsyncBaseTransport, clock: Clock) -> None:
        self.transport = transport
        self.clock = clock
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, flow: Flow[T], other: Callable[[Any], Awaitable[object]] | None = None) -> T:
        """Run a flow to its end. ``other`` carries out the steps that a runner does not know."""
        try:
            step = next(flow)
            while True:
                try:
                    result = await self._perform(step, other)
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(result)
        except StopIteration as done:
            return cast(T, done.value)

    def spawn(self, flow: Flow[T]) -> asyncio.Task[T]:
        """Run a flow in a task of the background."""
        task = asyncio.get_running_loop().create_task(self.run(flow))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        self._closed = True
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self.transport.aclose()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        # An error of the background is reported by the next call that needs a token.
        if not task.cancelled():
            task.exception()

    async def _perform(self, step: object, other: Callable[[Any], Awaitable[object]] | None) -> object:
        if self._closed:
            raise TokenUnavailableError("the session is closed")
        if isinstance(step, Fetch):
            return await self._fetch(step)
        if isinstance(step, Pause):
            await self.clock.sleep_async(step.seconds)
            return None
        if isinstance(step, Wait) and isinstance(step.handle, asyncio.Task):
            return await self._joined(step.handle)
        if isinstance(step, Call):
            if inspect.iscoroutinefunction(step.function):
                return await step.function()
            result = await asyncio.to_thread(step.function)
            return await result if inspect.isawaitable(result) else result
        if other is None:
            raise TypeError("unknown step")
        return await other(step)

    async def _joined(self, task: asyncio.Task[Any]) -> object:
        """Wait without cancelling: other calls wait for the same token."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise TokenUnavailableError("the session is closed") from None
            raise

    async def _fetch(self, fetch: Fetch) -> Reply:
        try:
            return await asyncio.wait_for(self._exchanged(fetch), fetch.timeout)
        except (httpx.TransportError, OSError, asyncio.TimeoutError) as error:
            raise FetchFailedError(type(error).__name__) from None

    async def _exchanged(self, fetch: Fetch) -> Reply:
        response = await self.transport.handle_async_request(_request_of(fetch))
        try:
            collected = _Collected(fetch, response, float("inf"))
            if collected.is_wanted:
                async for chunk in cast(httpx.AsyncByteStream, response.stream):
                    if not collected.add(chunk):
                        break
            return collected.reply()
        finally:
            await response.aclose()


class _Collected:
    """The body of a response, up to the limit and the end of its time."""

    def __init__(self, fetch: Fetch, response: httpx.Response, ends: float) -> None:
        self._fetch = fetch
        self._response = response
        self._ends = ends
        self._chunks: list[bytes] = []
        self._size = 0
        # A compressed body could be a million times longer than its bytes.
        self.is_wanted = is_plain(response.headers)

    def add(self, chunk: bytes) -> bool:
        if time.monotonic() > self._ends:
            raise httpx.ReadTimeout("")
        self._size += len(chunk)
        self._chunks.append(chunk)
        return self._size <= self._fetch.max_bytes

    def reply(self) -> Reply:
        is_whole = self.is_wanted and self._size <= self._fetch.max_bytes
        return Reply(self._response.status_code, self._response.headers, b"".join(self._chunks) if is_whole else None)


def is_plain(headers: Mapping[str, str]) -> bool:
    """Return whether a body is sent without compression."""
    return headers.get("content-encoding", "identity").strip().lower() == "identity"


def _request_of(fetch: Fetch) -> httpx.Request:
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), fetch.timeout)
    headers = {"accept-encoding": "identity", **fetch.headers}
    return httpx.Request(
        fetch.method, fetch.url, headers=headers, content=fetch.content, extensions={"timeout": timeout}
    )


def _discard(result: object) -> None:
    """Close a coroutine that is not awaited."""
    if inspect.iscoroutine(result):
        result.close()

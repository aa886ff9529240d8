"""The ASGI middleware, aiohttp, and clients of httpx2."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from conftest import GATEWAY, Fixture, Issuer, ManualClock, refusing
from test_verifier import JWKS, transaction

from plat_sdk import (
    AsyncTokenVerifier,
    AsyncTransactionVerifier,
    DeniedError,
    PlatError,
    Trust,
    current_traceparent,
    denied_by,
)
from plat_sdk.asgi import PlatMiddleware, caller_of, current_caller

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Served:
    """An application behind the middleware, which returns who calls."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.issuer = Issuer(self.clock)
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=self.issuer.jwks()))
        trust = Trust(jwks_url=JWKS)
        self.verifier = AsyncTokenVerifier(trust, "plat-gateway", transport=transport, clock=self.clock)
        self.transactions = AsyncTransactionVerifier(
            trust, audience="plat.local", namespace="default", agent="helper", transport=transport, clock=self.clock
        )

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        body = "open"
        if "plat.caller" in scope:
            body = f"{current_caller().user} {caller_of(scope).agent} {current_traceparent()}"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body.encode()})

    def get(self, middleware: PlatMiddleware, path: str = "/mcp", **headers: str) -> httpx.Response:
        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(app=middleware)  # type: ignore[arg-type]
            async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
                return await client.get(path, headers={name.replace("_", "-"): one for name, one in headers.items()})

        return asyncio.run(call())


def test_the_middleware_serves_verified_callers_only() -> None:
    served = Served()
    middleware = PlatMiddleware(served.app, verifier=served.verifier, open_paths=frozenset(["/healthz"]))
    response = served.get(middleware, authorization=f"Bearer {served.issuer.token()}", traceparent=TRACE)
    assert response.text == f"ada assistant {TRACE}"
    refused = served.get(middleware)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="plat"')
    refused = served.get(middleware, authorization=f"Bearer {served.issuer.token(aud='x')}")
    assert refused.headers["www-authenticate"] == 'Bearer realm="plat", error="invalid_token"'
    assert served.get(middleware, "/healthz").text == "open"
    with pytest.raises(PlatError, match="no verified caller"):
        current_caller()


def test_the_middleware_verifies_transactions_of_called_agents() -> None:
    served = Served()
    middleware = PlatMiddleware(served.app, transactions=served.transactions)
    assert served.get(middleware, txn_token=transaction(served.issuer)).text == "ada planner None"
    assert served.get(middleware, authorization=f"Bearer {served.issuer.token()}").status_code == 401


def test_the_middleware_refuses_connections_that_it_cannot_verify() -> None:
    served = Served()
    middleware = PlatMiddleware(served.app, verifier=served.verifier)

    async def unused(*_: Any) -> Any:
        raise AssertionError("not called")

    with pytest.raises(PlatError, match="type websocket"):
        asyncio.run(middleware({"type": "websocket", "headers": []}, unused, unused))
    with pytest.raises(PlatError, match="either verifier or transactions"):
        PlatMiddleware(served.app)


def test_aiohttp_sends_the_token_to_the_gateway_only() -> None:
    aiohttp = pytest.importorskip("aiohttp")
    from aiohttp import web

    from plat_sdk.aiohttp_auth import middleware

    fixture = Fixture("async")
    seen: list[tuple[str, bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["authorization"], await request.read()))
        if len(seen) == 1:
            return web.json_response({"error": "unauthenticated", "message": "m", "requestId": "r"}, status=401)
        return web.json_response({"error": "policy_denied", "message": "no", "requestId": "r"}, status=403)

    async def call() -> None:
        app = web.Application()
        app.router.add_post("/mcp/notes", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        session = await _connected(fixture, url)
        fixture.clock.time += 6
        async with aiohttp.ClientSession(middlewares=[middleware(session)]) as client:
            response = await client.post(f"{url}/mcp/notes", json={"a": 1})
            assert (response.status, (await response.json())["error"]) == (403, "policy_denied")
            with pytest.raises(PlatError, match="calls only the gateway"):
                await client.post("http://127.0.0.1:9/other")
        await runner.cleanup()
        await session.close()

    fixture.run(call())
    assert [body for _, body in seen] == [b'{"a": 1}'] * 2
    assert seen[0][0] != seen[1][0]
    fixture.close()


async def _connected(fixture: Fixture, url: str) -> Any:
    from plat_sdk import connect_async

    return await connect_async(gateway_url=url, source=fixture.source, clock=fixture.clock, env={})


def test_clients_of_httpx2_are_governed_too(fixture: Fixture) -> None:
    httpx2 = pytest.importorskip("httpx2")
    from plat_sdk import httpx2_clients

    session = fixture.connect()
    make: Any = httpx2_clients.client if fixture.kind == "sync" else httpx2_clients.async_client
    client = make(session)
    limited = refusing(429, "rate_limited", retry_after="1")
    fixture.handler = lambda request: limited(request) if len(fixture.sent) == 1 else httpx.Response(200, text="yes")
    assert fixture.run(client.post(f"{GATEWAY}/mcp/notes", json={"a": 1})).text == "yes"
    assert [json.loads(request.content) for request in fixture.sent] == [{"a": 1}] * 2
    fixture.handler = refusing(403, "policy_denied")
    with pytest.raises(DeniedError):
        fixture.run(client.get(f"{GATEWAY}/x"))

    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("away")

    fixture.handler = away
    with pytest.raises(httpx2.ConnectError):
        fixture.run(client.get(f"{GATEWAY}/x"))


def test_an_mcp_client_gets_a_refused_request_as_json_rpc(fixture: Fixture) -> None:
    session = fixture.connect()
    client = session.http_client("json-rpc")
    challenge = 'Bearer error="insufficient_scope", scope="tools:notes"'
    fixture.handler = refusing(403, "insufficient_scope", www_authenticate=challenge)
    response = fixture.run(client.post(f"{GATEWAY}/mcp/notes", content=b"{}"))
    denied = denied_by(response.json()["error"])
    assert denied is not None
    assert (response.status_code, denied.code, denied.scopes) == (403, "insufficient_scope", ("tools:notes",))
    fixture.handler = refusing(404, "unknown_session")
    assert fixture.run(client.post(f"{GATEWAY}/mcp/notes")).json()["error"] == "unknown_session"


def test_an_error_of_a_model_client_is_read(fixture: Fixture) -> None:
    openai = pytest.importorskip("openai")
    session = fixture.connect()
    error = {"message": "used up", "type": "x", "param": None, "code": "budget_exceeded"}
    headers = {"x-plat-decision-id": "d3", "retry-after": "7", "x-should-retry": "false"}
    fixture.handler = lambda _: httpx.Response(429, json={"error": error}, headers=headers)
    kind = openai.OpenAI if fixture.kind == "sync" else openai.AsyncOpenAI
    client = kind(**session.openai())
    with pytest.raises(openai.RateLimitError) as raised:
        fixture.run(client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}]))
    denied = denied_by(raised.value)
    assert denied is not None
    assert (denied.code, denied.decision_id, denied.retry_after) == ("budget_exceeded", "d3", 7.0)
    assert str(fixture.sent[0].url) == f"{GATEWAY}/llm/default.assistant/v1/chat/completions"
    assert fixture.sent[0].headers["authorization"] == f"Bearer {fixture.run(session.token())}"

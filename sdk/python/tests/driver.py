"""Carries out the operations of ``sdk/behaviour/scenarios.json``: one JSON line in, one out. Argument: ``threads`` or ``tasks``."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from plat_sdk import (
    DeniedError,
    IdentityRefusedError,
    TokenUnavailableError,
    bootstrap,
    broker,
    connect,
    connect_async,
    denial_in,
    denied_by,
    until_approved,
    until_approved_async,
)
from plat_sdk._flow import Clock

Operation = dict[str, Any]


class SkewedClock(Clock):
    """A wall clock that is wrong by some seconds."""

    def __init__(self, skew: float) -> None:
        self._skew = skew

    def now(self) -> float:
        return super().now() + self._skew


class Driver:
    """Runs every operation with a session of one kind."""

    def __init__(self, kind: str) -> None:
        self._loop = asyncio.new_event_loop() if kind == "tasks" else None
        self._session: Any = None

    def perform(self, operation: Operation) -> Operation:
        try:
            return self._performed(operation)
        except DeniedError as error:
            return {
                "denied": error.code,
                "kind": type(error).__name__,
                "status": error.status,
                "rule": error.rule,
                "scopes": error.scopes,
            }
        except IdentityRefusedError as error:
            return {"error": type(error).__name__, "code": error.code}
        except TokenUnavailableError as error:
            return {"error": type(error).__name__, "retryable": error.retryable}

    def close(self) -> None:
        if self._session is not None:
            self._run(self._session.close())
        self._session = None

    def _run(self, result: Any) -> Any:
        return result if self._loop is None or not asyncio.iscoroutine(result) else self._loop.run_until_complete(result)

    def _performed(self, operation: Operation) -> Operation:
        if "open" in operation:
            self.close()
            options = options_of(operation["open"])
            self._session = connect(**options) if self._loop is None else self._run(connect_async(**options))
            return {"ok": True}
        if "tool" in operation:
            return self._call(operation["tool"], operation)
        if "untilApproved" in operation:
            return self._until_approved(operation["untilApproved"])
        if "model" in operation:
            return self._complete(operation["model"])
        if "exchange" in operation:
            return {"ok": True, "scopes": self._run(self._session.exchange(operation["exchange"])).scopes}
        if "renewals" in operation:
            return self._renew(operation["renewals"])
        return {"session": self._session.claims.session, "user": self._session.claims.user}

    def _post(self, url: str, headers: dict[str, str], body: Operation) -> Any:
        return self._run(self._session.http.post(url, headers=headers, json={"jsonrpc": "2.0", **body}))

    def _call(self, tool: str, operation: Operation) -> Operation:
        seconds = operation.get("approvalWaitSeconds")
        address = self._session.mcp(operation.get("server", "fixture"), approval_wait_seconds=seconds)
        headers = {**address.headers, "accept": "application/json, text/event-stream"}
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        begun = self._post(address.url, headers, {"id": 1, "method": "initialize", "params": client})
        headers["mcp-protocol-version"] = "2025-06-18"
        if "mcp-session-id" in begun.headers:
            headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        self._post(address.url, headers, {"method": "notifications/initialized"})
        call = {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        response = self._post(address.url, headers, call)
        message = message_in(response.text)
        denied = denied_by(message.get("result", message.get("error")))
        if denied is not None:
            raise denied
        return {"ok": True} if "result" in message else {"status": response.status_code}

    def _until_approved(self, tool: str) -> Operation:
        if self._loop is None:
            return until_approved(lambda: self._call(tool, {}))

        async def call() -> Operation:
            # The loop is at rest between operations, so that the call runs in its own.
            return await asyncio.to_thread(self._call, tool, {})

        return asyncio.run(until_approved_async(call))

    def _complete(self, route: str) -> Operation:
        client = self._session.http_client("return")
        body = {"model": "small-1", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}
        url = f"{self._session.openai(route)['base_url']}/chat/completions"
        denied = denial_in(self._run(client.post(url, json=body)))
        if denied is not None:
            raise denied
        return {"ok": True}

    def _renew(self, count: int) -> Operation:
        tokens: set[str] = set()
        while len(tokens) < count:
            response = self._run(self._session.http.get(f"{self._session.gateway_url}/llm/small/v1/models"))
            if response.status_code != 200:
                return {"status": response.status_code}
            tokens.add(self._session.claims.jti)
        return {"ok": True}


def message_in(body: str) -> Operation:
    """The last message of a response in JSON or as events; empty without one."""
    events = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data: {")]
    try:
        message: Any = json.loads(events[-1] if events else body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def options_of(opening: Operation) -> Operation:
    """Arguments of ``connect``."""
    common = {
        "public_url": opening["publicURL"],
        "identity_url": opening["identityURL"],
        "dpop": opening["dpop"],
        "clock": SkewedClock(opening["skewSeconds"]),
        "env": {},
    }
    if opening["bootstrapURL"] is not None:
        file = opening["serviceAccountTokenFile"]
        return {**common, "source": bootstrap(opening["bootstrapURL"], service_account_token_file=file)}
    source = broker(
        opening["identityURL"],
        opening["brokerToken"],
        namespace="default",
        agent="assistant",
        session=opening["session"],
        user="ada",
        scopes=opening["scopes"],
        tier="tier-0",
        ttl_seconds=opening["ttlSeconds"],
    )
    return {**common, "gateway_url": opening["gatewayURL"], "source": source}


def main() -> None:
    driver = Driver(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(driver.perform(json.loads(line))), flush=True)
    driver.close()


main()

"""An issuer of tokens, clocks that a test moves, and sessions of both kinds."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from plat_sdk import AsyncSession, Session, broker, connect, connect_async
from plat_sdk._flow import Clock
from plat_sdk._jose import Signer, thumbprint
from plat_sdk.sources import IssuedToken, TokenRequirements

GATEWAY = "https://gateway.example"
VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "behaviour" / "vectors.json").read_text("utf-8"))

Handler = Callable[[httpx.Request], httpx.Response]


class ManualClock(Clock):
    """Time that only passes when a flow pauses or a test moves it."""

    def __init__(self, skew: float = 0) -> None:
        self.time = 1_700_000_000.0
        self.skew = skew
        self.pauses: list[float] = []

    def now(self) -> float:
        return self.time + self.skew

    def monotonic(self) -> float:
        return self.time

    def jitter(self) -> float:
        return 0.0

    def sleep(self, seconds: float, closed: threading.Event) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds, threading.Event())
        await asyncio.sleep(0)


class Issuer:
    """Signs session tokens that live 15 minutes, and counts them."""

    def __init__(self, clock: ManualClock) -> None:
        self.key = ed25519.Ed25519PrivateKey.generate()
        self.signer = Signer(self.key)
        self.kid = thumbprint(self.signer.jwk)
        self.clock = clock
        self.count = 0

    @property
    def pem(self) -> str:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def jwks(self, **members: Any) -> dict[str, Any]:
        return {"keys": [{**self.signer.jwk, "kid": self.kid, "use": "sig", "alg": "EdDSA"}], **members}

    def claims(self, **change: Any) -> dict[str, Any]:
        self.count += 1
        now = int(self.clock.time)
        claims = {
            "iss": "plat-identity",
            "sub": "spiffe://plat.local/ns/default/agent/assistant/session/s1",
            "aud": "plat-gateway",
            "iat": now,
            "exp": now + 900,
            "jti": f"jti-{self.count}",
            "act": {"sub": "user:ada"},
            "scope": "tools:notes",
            "plat_ns": "default",
            "plat_agent": "assistant",
            "plat_session": "s1",
            **change,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, header: dict[str, Any] | None = None, **change: Any) -> str:
        return self.signer.sign({"kid": self.kid, **(header or {})}, self.claims(**change))


class ScriptedSource:
    """A source that a test makes fail or wait."""

    name = "the test"

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.requests = 0
        self.claims: dict[str, Any] = {}
        self.failing: Exception | None = None
        self.open = threading.Event()
        self.open.set()

    def issue(self, wanted: TokenRequirements) -> IssuedToken:
        self.requests += 1
        self.open.wait(5)
        if self.failing is not None:
            raise self.failing
        bound = {} if wanted.jkt is None else {"cnf": {"jkt": wanted.jkt}}
        return IssuedToken(self.issuer.token(**{**bound, **self.claims}))


class Fixture:
    """A session of one kind, whose gateway is a function."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.clock = ManualClock()
        self.issuer = Issuer(self.clock)
        self.source = ScriptedSource(self.issuer)
        self.sent: list[httpx.Request] = []
        self.handler: Handler = lambda _: httpx.Response(200, json={})
        self._loop = asyncio.new_event_loop() if kind == "async" else None
        self._session: Any = None

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        return self.handler(request)

    def transport(self) -> Any:
        return httpx.MockTransport(self._answer)

    def run(self, result: Any) -> Any:
        """The result of a call, awaited if it has to be."""
        if self._loop is None or not (asyncio.iscoroutine(result) or asyncio.isfuture(result)):
            return result
        return self._loop.run_until_complete(result)

    def connect(self, **options: Any) -> Any:
        given = {
            "gateway_url": f"{GATEWAY}/",
            "source": self.source,
            "transport": self.transport(),
            "clock": self.clock,
            "env": {},
            **options,
        }
        opened = connect(**given) if self._loop is None else self.run(connect_async(**given))
        assert isinstance(opened, (Session, AsyncSession))
        self._session = opened
        return opened

    def post(self, session: Any, path: str = "/mcp/notes", **options: Any) -> httpx.Response:
        response: httpx.Response = self.run(session.http.post(GATEWAY + path, content=b"{}", **options))
        return response

    def settled(self, renewed: Callable[[], bool]) -> None:
        """Let the background work until something holds."""
        for _ in range(500):
            if renewed():
                return
            if self._loop is None:
                threading.Event().wait(0.01)
            else:
                self._loop.run_until_complete(asyncio.sleep(0.01))
        raise AssertionError("the background did not finish")

    def close(self) -> None:
        self.source.open.set()
        if self._session is not None:
            self.run(self._session.close())
        if self._loop is not None:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


@pytest.fixture(params=["sync", "async"])
def fixture(request: pytest.FixtureRequest) -> Iterator[Fixture]:
    opened = Fixture(request.param)
    yield opened
    opened.close()


def refusing(status: int, code: str, **headers: str) -> Handler:
    """A plain refusal of the gateway."""
    body = {"error": code, "message": f"{code}, says the gateway", "requestId": "r1"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: httpx.Response(status, json=body, headers=given)


def payload_of(token: str | None) -> dict[str, Any]:
    """The payload of a compact JWS, unverified."""
    from plat_sdk._jose import parse_jws

    assert token is not None
    return parse_jws(token).payload


@pytest.fixture(scope="session")
def world() -> dict[str, str]:
    """Addresses and secrets of a running plat, which ``npm run test:system`` starts."""
    file = os.environ.get("PLAT_TEST_WORLD")
    if file is None:
        pytest.skip("PLAT_TEST_WORLD names no file: npm run test:system starts a plat")
    opened: dict[str, str] = json.loads(Path(file).read_text("utf-8"))
    return opened


def settings(world: dict[str, str], session: str = "py", **change: Any) -> dict[str, Any]:
    """Arguments of ``connect`` for the running plat."""
    scopes = ["tools:fixture", "tools:plat-exec", "models:small", "models:claude", "agents:helper"]
    mint = {"namespace": "default", "agent": "assistant", "session": session, "user": "ada", "scopes": scopes}
    return {
        "gateway_url": world["gatewayURL"],
        "identity_url": world["identityURL"],
        "public_url": world["publicURL"],
        "source": broker(world["identityURL"], world["brokerToken"], **{**mint, "tier": "tier-0", **change}),
        "env": {},
    }

"""Opening a session: settings, sources, exchange."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from conftest import GATEWAY, Fixture, Handler, payload_of

from plat_sdk import (
    ApprovalPendingError,
    ApprovalRefusedError,
    IdentityRefusedError,
    PlatError,
    TokenUnavailableError,
    bootstrap,
    broker,
    fixed_token,
    read_claims,
    until_approved,
    until_approved_async,
)
from plat_sdk import sources as token_sources

IDENTITY = "https://identity.example"


def test_a_missing_setting_is_named_with_its_remedy(fixture: Fixture) -> None:
    token = fixture.issuer.token()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"gateway_url": None, "source": None}, "set PLAT_GATEWAY_URL, or give gateway_url"),
        ({"source": None}, "set PLAT_TOKEN_FILE or PLAT_BOOTSTRAP_URL"),
        ({"gateway_url": "gateway.example"}, "gateway_url must be an http or https URL"),
        ({"gateway_url": "https://u:p@gateway.example"}, "gateway_url must be an http or https URL"),
        ({"dpop": True, "source": fixed_token(token)}, "set PLAT_IDENTITY_URL"),
        ({"dpop": "secret"}, "dpop key is not a private key in PEM"),
    ]
    for options, message in cases:
        with pytest.raises(PlatError, match=message) as raised:
            fixture.connect(**options)
        assert "secret" not in str(raised.value)
    with pytest.raises(PlatError, match="set PLAT_IDENTITY_URL or identity_url"):
        fixture.run(fixture.connect().exchange("x"))


def test_under_plat_run_the_forwarder_has_the_token(fixture: Fixture) -> None:
    forwarder = "http://127.0.0.1:4000/abcdef"
    env = {"PLAT_GATEWAY_URL": forwarder, "PLAT_SESSION": "run-1", "OPENAI_BASE_URL": f"{forwarder}/llm/default.me/v1"}
    options = {"gateway_url": None, "source": None, "env": env}
    session = fixture.connect(**options)
    assert session.openai()["base_url"] == env["OPENAI_BASE_URL"]
    assert session.mcp("team/notes").url == f"{forwarder}/mcp/team/notes"
    fixture.run(session.exec({"code": "1"}))
    assert str(fixture.sent[0].url) == f"{forwarder}/v1/sessions/run-1/exec"
    assert "authorization" not in fixture.sent[0].headers
    assert session.claims is None
    with pytest.raises(PlatError, match="not available with plat run"):
        fixture.run(session.token())
    with pytest.raises(PlatError, match="not possible with plat run"):
        fixture.connect(**options, dpop=True)


class StoppedClock:
    def monotonic(self) -> float:
        return 0.0


def bootstrapping(*answers: httpx.Response) -> Handler:
    waiting = list(answers)
    return lambda _: waiting.pop(0)


def refusal(status: int, code: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"error": code, "error_description": "x"}, headers=headers)


def test_a_pod_of_a_warm_pool_waits_until_it_is_adopted(
    fixture: Fixture, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_sources, "Clock", StoppedClock)
    file = tmp_path / "sa-token"
    file.write_text("projected")
    env = {"PLAT_GATEWAY_URL": GATEWAY, "PLAT_SESSION": "s1", "PORT": 1}
    early = [refusal(425, "not_adopted") for _ in range(10)]
    busy = refusal(503, "temporarily_unavailable", **{"retry-after": "1"})
    adopted = httpx.Response(200, json={"token": fixture.issuer.token(), "attested": False, "env": env})
    fixture.handler = bootstrapping(*early, busy, refusal(425, "not_prepared"), adopted)
    source = bootstrap(f"{IDENTITY}:8083", service_account_token_file=file)
    session = fixture.connect(gateway_url=None, source=source)
    assert (session.gateway_url, session.env) == (GATEWAY, {"PLAT_GATEWAY_URL": GATEWAY, "PLAT_SESSION": "s1"})
    requests = {(str(one.url), one.headers["authorization"]) for one in fixture.sent}
    assert requests == {(f"{IDENTITY}:8083/v1/bootstrap?wait=20", "Bearer projected")}
    assert fixture.clock.pauses == [1.0] * 12, "a broker that does not wait before 425 is not called again at once"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_request"),
        (401, "invalid_token"),
        (403, "access_denied"),
        (403, "session_revoked"),
        (409, "already_bootstrapped"),
        (409, "session_suspended"),
        (410, "session_gone"),
    ],
)
def test_a_final_refusal_of_bootstrap_is_not_repeated(
    status: int, code: str, fixture: Fixture, tmp_path: Any
) -> None:
    file = tmp_path / "sa-token"
    file.write_text("projected")
    fixture.handler = lambda _: refusal(status, code)
    with pytest.raises(TokenUnavailableError, match=f"refused: {code}"):
        fixture.connect(source=bootstrap(IDENTITY, service_account_token_file=file))
    assert len(fixture.sent) == 1


def test_an_attested_session_gets_no_token_by_bootstrap(fixture: Fixture, tmp_path: Any) -> None:
    file = tmp_path / "sa-token"
    file.write_text("projected")
    fixture.handler = lambda _: httpx.Response(200, json={"attested": True})
    with pytest.raises(TokenUnavailableError, match="redeems a release"):
        fixture.connect(source=bootstrap(IDENTITY, service_account_token_file=file))


def test_a_server_mints_with_the_broker_token(fixture: Fixture, tmp_path: Any) -> None:
    secret = tmp_path / "broker-token"
    secret.write_text("secret\n")
    source = broker(
        IDENTITY, secret, namespace="default", agent="assistant", session="s1", scopes=["tools:notes"], user="ada"
    )

    def mint(request: httpx.Request) -> httpx.Response:
        jkt = json.loads(request.content)["dpopJkt"]
        return httpx.Response(200, json={"token": fixture.issuer.token(cnf={"jkt": jkt})})

    fixture.handler = mint
    session = fixture.connect(source=source, dpop=True)
    assert session.claims.jkt is not None
    wanted = json.loads(fixture.sent[0].content)
    assert (fixture.sent[0].headers["authorization"], wanted["user"]) == ("Bearer secret", "ada")
    assert "groups" not in wanted and "secret" not in repr(source)


@pytest.mark.parametrize("body", [b"[]", b'{"token": "a", "token": "b"}', b'{"token": 1}', b"{" + b" " * 70_000 + b"}", b"\xff"])
def test_a_response_of_the_broker_is_strict_json_of_64_kib(body: bytes, fixture: Fixture) -> None:
    source = broker(IDENTITY, "secret", namespace="n", agent="a", session="s", scopes=[])
    fixture.handler = lambda _: httpx.Response(200, content=body)
    with pytest.raises(TokenUnavailableError):
        fixture.connect(source=source)


def test_a_token_is_exchanged_and_refusals_are_typed(fixture: Fixture) -> None:
    session = fixture.connect(identity_url=IDENTITY)
    issued = {"access_token": "t", "expires_in": 60, "scope": "tools:notes"}
    fixture.handler = lambda _: httpx.Response(200, json=issued)
    exchanged = fixture.run(session.exchange("reports", scopes=["tools:notes"], ttl_seconds=60))
    assert (exchanged.token, exchanged.scopes) == ("t", ("tools:notes",))
    assert exchanged.expires_at == fixture.clock.time + 60
    assert "'t'" not in repr(exchanged)
    form = parse_qs(fixture.sent[-1].content.decode())
    assert (form["audience"], form["requested_ttl_seconds"]) == (["reports"], ["60"])
    fixture.handler = lambda _: refusal(400, "invalid_target")
    with pytest.raises(IdentityRefusedError, match="invalid_target: x") as raised:
        fixture.run(session.exchange("elsewhere"))
    assert (raised.value.code, raised.value.status) == ("invalid_target", 400)


def test_a_called_agent_acts_for_its_caller(fixture: Fixture) -> None:
    session = fixture.connect(identity_url=IDENTITY)
    planner = "spiffe://plat.local/ns/default/agent/planner/session/p1"
    delegated = fixture.issuer.token(act={"sub": planner, "act": {"sub": "user:bob"}})
    fixture.handler = lambda _: httpx.Response(200, json={"access_token": delegated, "expires_in": 900, "scope": ""})
    acting = fixture.run(session.delegate(transaction="of the call"))
    assert (acting.claims.user, acting.claims.actors) == ("bob", (planner,))
    form = parse_qs(fixture.sent[-1].content.decode())
    assert form["subject_token_type"] == ["urn:ietf:params:oauth:token-type:txn_token"]
    fixture.clock.time += 900
    with pytest.raises(TokenUnavailableError, match="cannot be renewed"):
        fixture.run(acting.token())
    for subject in ({}, {"transaction": "x", "session": "y"}):
        with pytest.raises(PlatError, match="either transaction or session"):
            fixture.run(session.delegate(**subject))


def test_a_proof_in_the_body_of_an_exchange_has_no_hash_of_a_token(fixture: Fixture) -> None:
    session = fixture.connect(identity_url=IDENTITY, dpop=True)
    fixture.handler = lambda _: httpx.Response(200, json={"access_token": "t", "expires_in": 60})
    fixture.run(session.exchange("reports"))
    proof = payload_of(fixture.sent[-1].headers["dpop"])
    assert (proof["htu"], proof.get("ath")) == (f"{IDENTITY}/v1/exchange", None)


def test_claims_have_the_user_innermost_and_the_delegating_agents_nearest_first(fixture: Fixture) -> None:
    planner = "spiffe://plat.local/ns/default/agent/planner/session/p1"
    act = {"sub": planner, "act": {"sub": "user:ada"}}
    claims = read_claims(fixture.issuer.token(act=act, plat_groups="staff on-call", plat_inherited_taints="secret"))
    assert (claims.user, claims.actors) == ("ada", (planner,))
    assert (claims.groups, claims.inherited_taints) == (("staff", "on-call"), ("secret",))


def test_a_call_that_waits_for_a_person_is_repeated_until_it_is_decided(fixture: Fixture) -> None:
    class RpcError(Exception):
        def __init__(self, code: str) -> None:
            super().__init__(code)
            self.code = 503
            self.data = {"error": code, "approvalId": "a1", "retryAfterMs": 5000}

    results: list[Any] = [RpcError("approval_pending"), RpcError("approval_pending"), "done"]
    pauses: list[float] = []
    pending: list[str | None] = []

    def call() -> Any:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    async def call_async() -> Any:
        return call()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def on_pending(error: ApprovalPendingError) -> None:
        pending.append(error.approval_id)

    def wait() -> Any:
        if fixture.kind == "sync":
            return until_approved(call, on_pending=on_pending, sleep=pauses.append)
        return fixture.run(until_approved_async(call_async, on_pending=on_pending, sleep=sleep))

    assert (wait(), pauses, pending) == ("done", [5.0, 5.0], ["a1", "a1"])
    results[:] = [RpcError("approval_denied")]
    with pytest.raises(ApprovalRefusedError) as raised:
        wait()
    assert isinstance(raised.value.__cause__, RpcError)
    other = ValueError("other")
    results[:] = [other]
    with pytest.raises(ValueError, match="other") as failed:
        wait()
    assert failed.value is other

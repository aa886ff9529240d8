"""Calls to the gateway: tokens, proofs, refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from conftest import GATEWAY, Fixture, payload_of, refusing

from plat_sdk import (
    BudgetExceededError,
    DeniedError,
    PlatError,
    RevokedError,
    TokenUnavailableError,
    denied_by,
    use_traceparent,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_call_carries_the_token_and_keys_of_clients_stay_behind(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.post(session, headers={"authorization": "Bearer client", "x-api-key": "client", "accept": "a/b"})
    headers = fixture.sent[0].headers
    assert headers["authorization"] == f"Bearer {fixture.run(session.token())}"
    assert ("x-api-key" in headers, "dpop" in headers, headers["accept"]) == (False, False, "a/b")


def test_a_refusal_is_an_error_except_for_the_statuses_that_clients_handle(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = refusing(429, "budget_exceeded", x_should_retry="false")
    with pytest.raises(BudgetExceededError) as raised:
        fixture.post(session)
    assert (raised.value.code, raised.value.status) == ("budget_exceeded", 429)
    for status, code in [(400, "unsupported_version"), (404, "unknown_session"), (405, "method_not_allowed")]:
        fixture.handler = refusing(status, code)
        assert fixture.post(session).status_code == status
    fixture.handler = lambda _: httpx.Response(500, json={"error": {"code": "of_the_upstream"}})
    response = fixture.post(session)
    assert (response.status_code, response.json()) == (500, {"error": {"code": "of_the_upstream"}})


def test_a_body_that_can_be_read_once_is_sent_once(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = refusing(429, "rate_limited", retry_after="1")

    def chunks() -> Any:
        yield b"x"

    async def chunks_async() -> Any:
        yield b"x"

    content = chunks() if fixture.kind == "sync" else chunks_async()
    with pytest.raises(DeniedError):
        fixture.run(session.http.post(f"{GATEWAY}/mcp/notes", content=content))
    assert len(fixture.sent) == 1


def test_a_token_that_is_no_longer_accepted_is_replaced_once(fixture: Fixture) -> None:
    session = fixture.connect()
    stale = refusing(401, "unauthenticated", www_authenticate='Bearer error="invalid_token"')
    fixture.handler = lambda request: stale(request) if len(fixture.sent) == 1 else httpx.Response(200)
    fixture.clock.time += 6
    assert fixture.post(session).status_code == 200
    assert fixture.source.requests == 2
    first, second = (request.headers["authorization"] for request in fixture.sent)
    assert first != second
    fixture.handler = stale
    fixture.clock.time += 6
    with pytest.raises(DeniedError, match="unauthenticated"):
        fixture.post(session)
    assert len(fixture.sent) == 4


def test_a_refused_token_that_is_new_is_not_replaced(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = refusing(401, "unauthenticated")
    for _ in range(5):
        with pytest.raises(DeniedError):
            fixture.post(session)
    assert (len(fixture.sent), fixture.source.requests) == (5, 1)


def test_a_refused_token_stays_the_error_if_there_is_no_other(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = refusing(401, "unauthenticated")
    fixture.clock.time += 6
    fixture.source.failing = TokenUnavailableError("never")
    with pytest.raises(DeniedError, match="unauthenticated"):
        fixture.post(session)


def test_a_revoked_session_requests_no_other_token(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = refusing(401, "revoked", www_authenticate="Bearer")
    fixture.clock.time += 6
    with pytest.raises(RevokedError):
        fixture.post(session)
    assert (len(fixture.sent), fixture.source.requests) == (1, 1)


def test_a_bound_session_proves_its_key_to_the_public_address(fixture: Fixture) -> None:
    session = fixture.connect(dpop=True, public_url="https://public.example/plat")
    fixture.post(session)
    fixture.run(session.http.get("https://public.example/plat/a2a/default/helper?x=1"))
    proofs = [payload_of(request.headers["dpop"]) for request in fixture.sent]
    assert fixture.sent[0].headers["authorization"] == f"DPoP {fixture.run(session.token())}"
    assert [(proof["htm"], proof["htu"], proof["iat"]) for proof in proofs] == [
        ("POST", "https://public.example/plat/mcp/notes", int(fixture.clock.time)),
        ("GET", "https://public.example/plat/a2a/default/helper", int(fixture.clock.time)),
    ]
    assert proofs[0]["jti"] != proofs[1]["jti"]


def test_a_required_nonce_is_in_this_proof_and_the_next_ones(fixture: Fixture) -> None:
    session = fixture.connect(dpop=True)
    challenge = 'DPoP error="use_dpop_nonce"'
    required = refusing(401, "invalid_dpop_proof", www_authenticate=challenge, dpop_nonce="n1")
    fixture.handler = lambda request: required(request) if len(fixture.sent) == 1 else httpx.Response(200)
    fixture.post(session)
    fixture.post(session)
    assert [payload_of(request.headers["dpop"]).get("nonce") for request in fixture.sent] == [None, "n1", "n1"]


def test_a_server_that_always_requires_a_nonce_ends_the_call(fixture: Fixture) -> None:
    session = fixture.connect(dpop=True)
    challenge = 'DPoP error="use_dpop_nonce"'
    fixture.handler = refusing(401, "invalid_dpop_proof", www_authenticate=challenge, dpop_nonce="n")
    with pytest.raises(DeniedError):
        fixture.post(session)
    assert len(fixture.sent) == 2


def test_redirects_are_not_followed(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = lambda _: httpx.Response(307, headers={"location": "https://elsewhere.example/"})
    response = fixture.post(session, follow_redirects=True)
    assert (response.status_code, len(fixture.sent)) == (307, 1)


def test_a_refusal_may_be_a_megabyte_and_a_longer_body_is_a_result(fixture: Fixture) -> None:
    session = fixture.connect()
    for length, is_refusal in [(1024, True), (2 * 1024 * 1024, False)]:
        body = {"error": "policy_denied", "message": "x" * length, "requestId": "r"}

        def answer(_: httpx.Request, body: dict[str, str] = body) -> httpx.Response:
            return httpx.Response(403, json=body)

        fixture.handler = answer
        if is_refusal:
            with pytest.raises(DeniedError):
                fixture.post(session)
        else:
            assert fixture.post(session).json() == body


def test_a_compressed_refusal_is_not_expanded(fixture: Fixture) -> None:
    import gzip

    session = fixture.connect()
    body = gzip.compress(b'{"error": "policy_denied", "message": "' + b"x" * 1_000_000 + b'", "requestId": "r"}')
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    fixture.handler = lambda _: httpx.Response(403, stream=httpx.ByteStream(body), headers=headers)
    assert fixture.post(session).status_code == 403


def test_a_client_of_the_program_gets_the_token_by_an_auth_class(fixture: Fixture) -> None:
    session = fixture.connect()
    client: Any = httpx.Client if fixture.kind == "sync" else httpx.AsyncClient
    theirs = client(transport=fixture.transport(), auth=session.auth)
    stale = refusing(401, "unauthenticated")
    fixture.handler = lambda request: stale(request) if len(fixture.sent) == 1 else httpx.Response(403, json={})
    fixture.clock.time += 6
    response = fixture.run(theirs.post(f"{GATEWAY}/mcp/notes", json={}))
    assert (response.status_code, fixture.source.requests) == (403, 2)
    assert fixture.sent[1].headers["authorization"] == f"Bearer {fixture.run(session.token())}"
    with pytest.raises(PlatError, match="calls only the gateway"):
        fixture.run(theirs.get("https://elsewhere.example/"))
    fixture.handler = stale
    fixture.clock.time += 6
    fixture.source.failing = TokenUnavailableError("never")
    assert fixture.run(theirs.get(f"{GATEWAY}/x")).status_code == 401
    close = theirs.close if fixture.kind == "sync" else theirs.aclose
    fixture.run(close())


def test_code_runs_in_the_session_of_the_token(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.handler = lambda _: httpx.Response(200, json={"stdout": "42"})
    result = fixture.run(session.exec({"code": "print(6 * 7)"}))
    assert (result.status, result.result) == (200, {"stdout": "42"})
    assert str(fixture.sent[0].url) == f"{GATEWAY}/v1/sessions/s1/exec"
    fixture.handler = lambda _: httpx.Response(422, json={"error": "syntax"})
    assert fixture.run(session.exec({"code": "("})).result == {"error": "syntax"}
    fixture.handler = refusing(404, "unknown_session")
    with pytest.raises(DeniedError, match="unknown_session"):
        fixture.run(session.exec({"code": ""}))
    fixture.handler = lambda _: httpx.Response(200, text="{'not': json}")
    with pytest.raises(PlatError, match="not JSON"):
        fixture.run(session.exec({"code": ""}))


def test_the_trace_context_of_a_request_continues_in_its_calls(fixture: Fixture) -> None:
    session = fixture.connect()
    with use_traceparent(TRACE):
        fixture.post(session)
        fixture.post(session, headers={"traceparent": "of the client"})
    with use_traceparent("made up"):
        fixture.post(session)
    assert [request.headers.get("traceparent") for request in fixture.sent] == [TRACE, "of the client", None]


def test_no_token_is_in_a_text_for_people(fixture: Fixture) -> None:
    session = fixture.connect(dpop=True)
    token = fixture.run(session.token())
    keeper = session._parts.keeper
    texts = [repr(session), repr(session.claims), repr(fixture.run(_live(fixture, session))), repr(keeper.prover)]
    texts += [repr(session._parts), repr(session.openai()), repr(session.mcp("notes"))]
    for text in texts:
        assert token[:40] not in text and token[-40:] not in text


def _live(fixture: Fixture, session: Any) -> Any:
    return session._runner.run(session._parts.keeper.current())


def test_errors_of_groups_and_causes_are_followed_to_an_end() -> None:
    denied = pytest.importorskip("plat_sdk").denied_by({"code": 403, "message": "m", "data": {"error": "revoked"}})
    assert isinstance(denied, RevokedError)
    outer = ValueError("outer")
    outer.__cause__ = denied
    assert denied_by(outer) is denied
    circle = ValueError("circle")
    circle.__cause__ = circle
    assert denied_by(circle) is None

    class Group(Exception):
        exceptions = (ValueError("x"), outer)

    assert denied_by(Group()) is denied
    for other in (None, "policy_denied", 7, [], {"error": None}, ValueError("x")):
        assert denied_by(other) is None

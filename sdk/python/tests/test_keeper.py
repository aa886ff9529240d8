"""Renewal of tokens."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import Fixture, Issuer, ManualClock

from plat_sdk import PlatError, TokenUnavailableError, connect, fixed_token, token_file
from plat_sdk.proof import Prover

MINUTE = 60.0


def unavailable() -> TokenUnavailableError:
    return TokenUnavailableError("away", retryable=True)


def test_a_token_is_renewed_in_the_background_after_two_thirds_of_its_lifetime(fixture: Fixture) -> None:
    session = fixture.connect()
    first = fixture.run(session.token())
    fixture.clock.time += 10 * MINUTE - 1
    assert fixture.run(session.token()) == first
    assert fixture.source.requests == 1
    fixture.clock.time += 1
    fixture.source.open.clear()
    assert fixture.run(session.token()) == first, "the old one serves meanwhile"
    assert fixture.run(session.token()) == first
    fixture.source.open.set()
    fixture.settled(lambda: session.claims.jti != "jti-1")
    assert fixture.run(session.token()) != first
    assert fixture.source.requests == 2


def test_while_the_source_is_unavailable_the_token_is_used_until_it_expires(fixture: Fixture) -> None:
    session = fixture.connect()
    first = fixture.run(session.token())
    fixture.clock.time += 10 * MINUTE
    fixture.source.failing = unavailable()
    assert fixture.run(session.token()) == first
    fixture.settled(lambda: fixture.source.requests == 5)
    for _ in range(10):
        assert fixture.run(session.token()) == first
    assert fixture.source.requests == 5, "four attempts, and then a pause"
    assert fixture.clock.pauses == [0.25, 0.5, 1.0]
    fixture.clock.time += 5 * MINUTE
    with pytest.raises(TokenUnavailableError, match="no session token of the test: away") as raised:
        fixture.run(session.token())
    assert raised.value.retryable
    fixture.source.failing = None
    assert fixture.run(session.token()) != first


def test_an_error_that_cannot_pass_is_tried_once(fixture: Fixture) -> None:
    fixture.source.failing = TokenUnavailableError("never")
    with pytest.raises(TokenUnavailableError, match="never"):
        fixture.connect()
    assert fixture.source.requests == 1


def test_a_longer_pause_than_half_a_minute_is_not_waited_for(fixture: Fixture) -> None:
    fixture.source.failing = TokenUnavailableError("later", retryable=True, retry_after=31)
    with pytest.raises(TokenUnavailableError, match="later"):
        fixture.connect()
    assert (fixture.source.requests, fixture.clock.pauses) == (1, [])


def test_an_error_of_a_source_never_quotes_a_token(fixture: Fixture) -> None:
    secret = fixture.issuer.token()
    fixture.source.failing = ValueError(f"cannot parse {secret}")
    with pytest.raises(TokenUnavailableError) as raised:
        fixture.connect()
    error: BaseException | None = raised.value
    while error is not None:
        assert secret[:40] not in str(error)
        error = error.__cause__


def test_an_expired_token_and_one_of_another_kind_or_key_are_not_sent(fixture: Fixture) -> None:
    for claims, message in [
        ({"exp": int(fixture.clock.time) - 1}, "expired by the clock of this machine"),
        ({"sub": "spiffe://elsewhere/x"}, 'not a session token: claim "sub" is not a session'),
        ({"cnf": {"jkt": Prover(fixture.clock).jkt}}, "bound to another key"),
    ]:
        fixture.source.claims = claims
        with pytest.raises(TokenUnavailableError, match=message):
            fixture.connect()


def test_a_clock_that_is_set_does_not_end_a_token(fixture: Fixture) -> None:
    session = fixture.connect()
    first = fixture.run(session.token())
    fixture.clock.skew = 3600
    assert fixture.run(session.token()) == first


def test_with_a_clock_that_is_behind_a_token_is_renewed_in_time(fixture: Fixture) -> None:
    fixture.clock.skew = -3600
    session = fixture.connect()
    fixture.run(session.token())
    fixture.clock.time += 15 * MINUTE
    fixture.run(session.token())
    assert fixture.source.requests == 2


def test_threads_share_one_request() -> None:
    clock = ManualClock()
    issuer = Issuer(clock)
    session = connect(gateway_url="https://g.example", source=_slow(issuer), env={}, clock=clock)
    clock.time += 15 * MINUTE
    barrier = threading.Barrier(16)

    def token(_: int) -> str:
        barrier.wait(5)
        return session.token()

    with ThreadPoolExecutor(16) as pool:
        tokens = set(pool.map(token, range(16)))
    session.close()
    assert (len(tokens), issuer.count) == (1, 2)


def _slow(issuer: Issuer) -> Any:
    from plat_sdk import IssuedToken

    class Slow:
        name = "a slow source"

        def issue(self, _: object) -> IssuedToken:
            threading.Event().wait(0.05)
            return IssuedToken(issuer.token())

    return Slow()


def test_tasks_share_one_request_and_a_cancelled_one_leaves_it_to_the_others() -> None:
    fixture = Fixture("async")
    session = fixture.connect()
    fixture.clock.time += 15 * MINUTE
    fixture.source.open.clear()

    async def calls() -> list[Any]:
        first, *others = [asyncio.ensure_future(session.token()) for _ in range(8)]
        await asyncio.sleep(0.02)
        first.cancel()
        fixture.source.open.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    results = fixture.run(calls())
    assert isinstance(results[0], asyncio.CancelledError)
    assert len(set(results[1:])) == 1
    assert fixture.source.requests == 2
    fixture.close()


def test_a_closed_session_drops_its_token(fixture: Fixture) -> None:
    session = fixture.connect()
    fixture.run(session.close())
    with pytest.raises(TokenUnavailableError, match="the session is closed"):
        fixture.run(session.token())
    assert session.claims is None
    assert fixture.source.requests == 1


def test_every_token_is_bound_from_a_later_moment(fixture: Fixture) -> None:
    session = fixture.connect(identity_url="https://identity.example")

    def bound(request: Any) -> Any:
        import httpx

        from conftest import payload_of
        from plat_sdk._jose import parse_jws, read_public_jwk

        key = read_public_jwk(parse_jws(request.headers["dpop"]).header["jwk"])
        assert key is not None
        token = payload_of(request.headers["authorization"].removeprefix("Bearer "))
        return httpx.Response(200, json={"token": fixture.issuer.token(**{**token, "cnf": {"jkt": key.kid}})})

    fixture.handler = bound
    fixture.run(session.bind())
    assert session.claims.jkt is not None
    assert fixture.source.requests == 1, "the same token, bound"
    with pytest.raises(TokenUnavailableError, match="already has a key"):
        fixture.run(session.bind())


def test_a_token_file_is_read_again_before_its_token_expires(fixture: Fixture, tmp_path: Any) -> None:
    file = tmp_path / "token"
    first = fixture.issuer.token()
    file.write_text(f"{first}\n")
    session = fixture.connect(source=None, env={"PLAT_TOKEN_FILE": str(file)})
    assert fixture.run(session.token()) == first
    fixture.clock.time += 15 * MINUTE
    second = fixture.issuer.token()
    file.write_text(second)
    assert fixture.run(session.token()) == second
    with pytest.raises(TokenUnavailableError, match=r"cannot be read \(FileNotFoundError\)"):
        fixture.connect(source=token_file(tmp_path / "none"))


def test_a_fixed_token_ends_the_session(fixture: Fixture) -> None:
    session = fixture.connect(source=fixed_token(fixture.issuer.token()))
    fixture.clock.time += 15 * MINUTE
    with pytest.raises(TokenUnavailableError, match="cannot be renewed"):
        fixture.run(session.token())


def test_a_source_may_be_a_coroutine_function_for_tasks_only(fixture: Fixture) -> None:
    from plat_sdk import IssuedToken

    class Source:
        name = "coroutines"

        async def issue(self, _: object) -> IssuedToken:
            return IssuedToken(fixture.issuer.token())

    if fixture.kind == "async":
        assert fixture.run(fixture.connect(source=Source()).token())
    else:
        with pytest.raises(PlatError, match="use connect_async"):
            fixture.connect(source=Source())

"""Verification of tokens and transactions by servers."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import Issuer, ManualClock

from plat_sdk import (
    AsyncTokenVerifier,
    AsyncTransactionVerifier,
    PlatError,
    TokenRefusedError,
    TokenVerifier,
    TransactionVerifier,
    Trust,
)
from plat_sdk.proof import MAX_PROOFS_OF_CALLER, Prover

SERVER = "https://server.example/mcp"
JWKS = "https://identity.example/.well-known/jwks.json"


class Setup:
    """A verifier of one kind; its key document is what a test sets."""

    def __init__(self, kind: str) -> None:
        self.clock = ManualClock()
        self.issuer = Issuer(self.clock)
        self.fetched = 0
        self.document: Any = None
        self.loop = asyncio.new_event_loop() if kind == "async" else None
        self._opened: list[Any] = []

    def _fetch(self, _: httpx.Request) -> httpx.Response:
        self.fetched += 1
        if isinstance(self.document, Exception):
            raise self.document
        document = self.issuer.jwks() if self.document is None else self.document
        return httpx.Response(200, content=document if isinstance(document, bytes) else json.dumps(document).encode())

    def _open(self, kinds: tuple[Any, Any], *args: Any, **options: Any) -> Any:
        kind = kinds[0] if self.loop is None else kinds[1]
        opened = kind(*args, transport=httpx.MockTransport(self._fetch), clock=self.clock, **options)
        self._opened.append(opened)
        return opened

    def tokens(self, **options: Any) -> Any:
        given = {"issuer": "plat-identity", "trust_domain": "plat.local", **options}
        trust = given.pop("trust", Trust(jwks_url=JWKS))
        return self._open((TokenVerifier, AsyncTokenVerifier), trust, "plat-gateway", **given)

    def transactions(self) -> Any:
        options = {"audience": "plat.local", "namespace": "default", "agent": "helper"}
        return self._open((TransactionVerifier, AsyncTransactionVerifier), Trust(jwks_url=JWKS), **options)

    def run(self, result: Any) -> Any:
        return self.loop.run_until_complete(result) if asyncio.iscoroutine(result) and self.loop else result

    def refusal(self, call: Any) -> TokenRefusedError:
        with pytest.raises(TokenRefusedError) as raised:
            self.run(call())
        return raised.value

    def close(self) -> None:
        for one in self._opened:
            self.run(one.close())
        if self.loop is not None:
            self.loop.close()


@pytest.fixture(params=["sync", "async"])
def setup(request: pytest.FixtureRequest) -> Iterator[Setup]:
    opened = Setup(request.param)
    yield opened
    opened.close()


def test_a_valid_token_names_its_caller(setup: Setup) -> None:
    verifier = setup.tokens()
    token = setup.issuer.token(plat_groups="staff")
    claims = setup.run(verifier.verify_request("POST", SERVER, {"Authorization": f"bearer {token}"}))
    names = (claims.namespace, claims.agent, claims.session, claims.user, claims.groups)
    assert names == ("default", "assistant", "s1", "ada", ("staff",))
    assert claims.key_thumbprint == setup.issuer.kid


def test_a_request_has_one_token_once(setup: Setup) -> None:
    verifier = setup.tokens()
    token = f"Bearer {setup.issuer.token()}"
    cases: list[tuple[Any, str]] = [
        ({}, "missing"),
        ({"authorization": ""}, "missing"),
        ({"authorization": "Basic eDp5"}, "malformed"),
        ({"authorization": "Bearer"}, "malformed"),
        ([("authorization", token), ("Authorization", token)], "malformed"),
        (httpx.Headers([("authorization", token), ("authorization", token)]), "malformed"),
    ]
    for headers, reason in cases:
        assert setup.refusal(lambda: verifier.verify_request("GET", SERVER, headers)).reason == reason  # noqa: B023


def test_invalid_tokens_are_refused_for_their_reason(setup: Setup) -> None:
    verifier, issuer = setup.tokens(), setup.issuer
    other = Issuer(setup.clock)
    now = int(setup.clock.time)
    cases = [
        (issuer.token(exp=now - 31), "expired"),
        (issuer.token(nbf=now + 3600, exp=now + 7200), "expired"),
        (issuer.token(iat=now + 3600, exp=now + 7200), "expired"),
        (issuer.token(aud="another"), "audience"),
        (issuer.token(iss="another"), "issuer"),
        (issuer.token(plat_agent="admin"), "binding"),
        (issuer.token(cnf={}), "binding"),
        (issuer.token(exp=None), "malformed"),
        (issuer.token(exp=float(now) + 0.5), "malformed"),
        (issuer.token(exp=True), "malformed"),
        (issuer.token({"typ": "txntoken+jwt"}), "typ"),
        (issuer.token({"typ": "application/DPoP+jwt"}), "typ"),
        (issuer.token({"kid": "unknown"}), "kid"),
        (issuer.token({"crit": ["exp"]}), "malformed"),
        (other.token({"kid": issuer.kid}), "signature"),
        (issuer.token({"alg": "none"}), "signature"),
        (issuer.token() + "=", "malformed"),
        ("", "malformed"),
    ]
    for token, reason in cases:
        assert setup.refusal(lambda: verifier.verify_token(token)).reason == reason, reason  # noqa: B023


def test_the_tokens_that_the_gateway_refuses_are_refused_for_the_same_reason(setup: Setup) -> None:
    shared = os.environ.get("PLAT_TEST_TOKENS")
    if shared is None:
        pytest.skip("PLAT_TEST_TOKENS names no file: npm run test:system writes it")
    vectors = json.loads(Path(shared).read_text("utf-8"))
    setup.clock.time = vectors["now"]
    setup.document = vectors["jwks"]
    verifier = setup.tokens()
    assert setup.run(verifier.verify_token(vectors["valid"])).user == "ada"
    assert len(vectors["invalid"]) > 70
    # An unknown `kid` is compared with keys that were just fetched.
    for vector in vectors["invalid"]:
        seen = setup.refusal(lambda: verifier.verify_token(vector["token"])).reason  # noqa: B023
        assert seen == vector["reason"], vector["name"]


def test_the_key_of_a_tenant_signs_for_no_namespace_of_another(setup: Setup) -> None:
    red, blue = Issuer(setup.clock), Issuer(setup.clock)
    keys = [{**one.jwks()["keys"][0], "plat_tenant": name} for one, name in ((red, "red"), (blue, "blue"))]
    plain = setup.issuer.jwks()["keys"]
    setup.document = {"keys": [*keys, *plain], "plat_tenants": {"red": ["default"], "blue": ["other"]}}
    verifier = setup.tokens()
    assert setup.run(verifier.verify_token(red.token())).tenant == "red"
    for issuer in (blue, setup.issuer):
        assert setup.refusal(lambda: verifier.verify_token(issuer.token())).reason == "binding"  # noqa: B023


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b"[]",
        b'{"keys": [], "keys": []}',
        b'{"keys": [' + b"{}," * 1024 + b"{}]}",
        b'{"keys": [], "plat_tenants": {"": []}}',
        b'{"keys": [], "plat_tenants": {"a": ["n"], "b": ["n"]}}',
        b'{"keys": []}' + b" " * 1024 * 1024,
    ],
)
def test_a_document_that_is_no_key_set_gives_no_key(document: bytes, setup: Setup) -> None:
    setup.document = document
    verifier = setup.tokens()
    assert setup.refusal(lambda: verifier.verify_token(setup.issuer.token())).reason == "kid"


def test_keys_are_fetched_once_for_concurrent_requests_and_again_when_they_change(setup: Setup) -> None:
    verifier = setup.tokens()
    assert setup.fetched == 0
    if setup.loop is None:
        threads = [threading.Thread(target=verifier.verify_token, args=(setup.issuer.token(),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:

        async def all_of_them() -> None:
            await asyncio.gather(*(verifier.verify_token(setup.issuer.token()) for _ in range(8)))

        setup.run(all_of_them())
    assert setup.fetched == 1
    setup.issuer = Issuer(setup.clock)
    for _ in range(50):
        assert setup.refusal(lambda: verifier.verify_token(setup.issuer.token())).reason == "kid"
    assert setup.fetched == 1, "unknown keys cause a fetch in ten seconds at most"
    setup.clock.time += 10
    assert setup.run(verifier.verify_token(setup.issuer.token())).user == "ada"
    assert setup.fetched == 2


def test_a_failed_fetch_keeps_the_keys(setup: Setup) -> None:
    verifier = setup.tokens()
    setup.run(verifier.verify_token(setup.issuer.token()))
    setup.document = httpx.ConnectError("away")
    setup.clock.time += 400
    assert setup.run(verifier.verify_token(setup.issuer.token())).user == "ada"


def test_a_bound_token_needs_a_proof_of_its_key_for_this_request_once(setup: Setup) -> None:
    verifier = setup.tokens()
    prover = Prover(setup.clock)
    token = setup.issuer.token(cnf={"jkt": prover.jkt})

    def verify(proof: str | None, authorization: str = f"DPoP {token}", url: str = SERVER) -> Any:
        headers = {"authorization": authorization, **({} if proof is None else {"dpop": proof})}
        return verifier.verify_request("POST", url, headers)

    proof = prover.proof("POST", SERVER, token)
    assert setup.run(verify(proof)).jkt == prover.jkt
    old = prover.proof("POST", SERVER, token)
    cases: list[tuple[Any, str]] = [
        (lambda: verify(proof), "used before"),
        (lambda: verify(None, f"Bearer {token}"), 'set proof to "none"'),
        (lambda: verify(None), "the header DPoP is missing"),
        (lambda: verify(prover.proof("POST", "https://elsewhere.example/mcp", token)), "another URL"),
        (lambda: verify(prover.proof("GET", SERVER, token)), "another method"),
        (lambda: verify(Prover(setup.clock).proof("POST", SERVER, token)), "another key"),
        (lambda: verify(prover.proof("POST", SERVER, setup.issuer.token())), "of another token"),
        (lambda: verify(prover.proof("POST", SERVER, None)), '"ath" of the proof is missing'),
        (lambda: verify(setup.issuer.token()), '"typ" of the proof must be dpop'),
        (lambda: verify("x" * 5000), "too long"),
    ]
    for call, message in cases:
        refusal = setup.refusal(call)
        assert refusal.reason == "binding" and message in str(refusal), str(refusal)
    setup.clock.time += 62
    assert "too long ago" in str(setup.refusal(lambda: verify(old)))


def test_one_caller_cannot_use_up_the_proofs_of_another(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    import plat_sdk.proof as module

    assert MAX_PROOFS_OF_CALLER < module.MAX_PROOFS
    monkeypatch.setattr(module, "MAX_PROOFS_OF_CALLER", 3)
    verifier = setup.tokens()
    prover = Prover(setup.clock)

    def verify(agent: str) -> Any:
        subject = f"spiffe://plat.local/ns/default/agent/{agent}/session/s1"
        token = setup.issuer.token(cnf={"jkt": prover.jkt}, sub=subject, plat_agent=agent)
        headers = {"authorization": f"DPoP {token}", "dpop": prover.proof("POST", SERVER, token)}
        return verifier.verify_request("POST", SERVER, headers)

    for _ in range(3):
        setup.run(verify("greedy"))
    assert "too many proofs" in str(setup.refusal(lambda: verify("greedy")))
    setup.run(verify("modest"))
    setup.clock.time += 66
    setup.run(verify("greedy"))


def test_a_server_chooses_when_a_proof_is_required(setup: Setup) -> None:
    headers = {"authorization": f"Bearer {setup.issuer.token()}"}
    refusal = setup.refusal(lambda: setup.tokens(proof="all").verify_request("POST", SERVER, headers))
    assert "not bound to a key" in str(refusal)
    bound = setup.issuer.token(cnf={"jkt": Prover(setup.clock).jkt})
    verifier = setup.tokens(proof="none")
    headers = {"authorization": f"Bearer {bound}"}
    assert setup.run(verifier.verify_request("POST", SERVER, headers)).user == "ada"


def test_keys_may_be_given_in_pem(setup: Setup) -> None:
    verifier = setup.tokens(trust=Trust(public_keys=[setup.issuer.pem]))
    assert setup.run(verifier.verify_token(setup.issuer.token())).user == "ada"
    assert setup.fetched == 0
    with pytest.raises(PlatError, match="not an Ed25519 public key"):
        setup.tokens(trust=Trust(public_keys=["secret"]))
    with pytest.raises(PlatError, match="either jwks_url or public_keys"):
        Trust()


def transaction(issuer: Issuer, header: dict[str, Any] | None = None, **change: Any) -> str:
    now = int(issuer.clock.time)
    claims = {
        "aud": "plat.local",
        "iat": now,
        "exp": now + 60,
        "txn": "t1",
        "sub": "spiffe://plat.local/ns/default/agent/planner/session/p1",
        "scope": "agents:default/helper",
        "act": {"sub": "user:ada"},
        "tctx": {"jti": "j"},
        **change,
    }
    return issuer.signer.sign({"kid": issuer.kid, "typ": "txntoken+jwt", **(header or {})}, claims)


def test_a_transaction_names_the_caller_for_the_called_agent_alone(setup: Setup) -> None:
    verifier, issuer = setup.transactions(), setup.issuer
    scopes = " ".join(f"agents:default/{name}" for name in ("helper", "other"))
    verified = setup.run(verifier.verify(transaction(issuer, plat_groups="staff")))
    caller = verified.caller
    assert (verified.txn, caller.agent, caller.user, caller.groups) == ("t1", "planner", "ada", ("staff",))
    cases: list[tuple[str | None, str]] = [
        (None, "missing"),
        (transaction(issuer, scope="agents:default/other"), "audience"),
        (transaction(issuer, scope=scopes), "audience"),
        (transaction(issuer, aud="elsewhere"), "audience"),
        (transaction(issuer, exp=int(setup.clock.time) - 6), "expired"),
        (transaction(issuer, {"typ": "JWT"}), "typ"),
        (transaction(issuer, txn=""), "malformed"),
        (transaction(issuer, tctx=None), "malformed"),
        (transaction(Issuer(setup.clock)), "kid"),
        (issuer.token(), "typ"),
    ]
    for token, reason in cases:
        assert setup.refusal(lambda: verifier.verify(token)).reason == reason  # noqa: B023

"""The vectors that both SDKs share."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from conftest import GATEWAY, VECTORS, Fixture

from plat_sdk import DeniedError, PlatError
from plat_sdk._jose import read_public_jwk
from plat_sdk._json import read_json
from plat_sdk._refusals import facts_in
from plat_sdk._retry_after import retry_after_in
from plat_sdk.denied import denial_of
from plat_sdk.proof import normal_htu
from plat_sdk.trace import valid_traceparent


def named(group: str) -> Any:
    return pytest.mark.parametrize("vector", VECTORS[group], ids=lambda vector: vector.get("name"))


@named("retryAfter")
def test_retry_after(vector: dict[str, Any]) -> None:
    # Header values of other alphabets never leave httpx; the reader gets them as text.
    assert retry_after_in(vector["headers"], vector.get("now", 0)) == vector["seconds"]


@named("repeats")
def test_only_a_call_without_effect_is_repeated(vector: dict[str, Any], fixture: Fixture) -> None:
    session = fixture.connect()
    denial = {"code": 429, "error": vector.get("result"), "decisionId": "d", "reason": "later"}
    body: Any = {"ok": True}
    if "plat" in vector:
        body = {"error": vector["plat"], "message": "no", "requestId": "r"}
    elif "result" in vector:
        body = {"jsonrpc": "2.0", "id": 1, "result": {"isError": True, "_meta": {"plat.dev/denial": denial}}}
    body = vector.get("body", body)
    fixture.handler = lambda _: httpx.Response(vector["status"], json=body, headers=vector["headers"])
    try:
        fixture.run(session.http.request(vector.get("method", "POST"), f"{GATEWAY}/mcp/notes"))
    except DeniedError:
        pass
    assert len(fixture.sent) == vector["sends"]
    assert len(fixture.clock.pauses) == vector["sends"] - 1


NAMES = {"decisionId": "decision_id", "approvalId": "approval_id", "connectURL": "connect_url"}


@named("refusals")
def test_refusals_are_read(vector: dict[str, Any]) -> None:
    facts = facts_in(vector["body"], vector["status"], httpx.Headers(vector.get("headers", {})), 0)
    expected = vector["facts"]
    if expected is None or facts is None:
        assert facts is expected
        return
    seen: dict[str, Any] = {**vars(facts), "kind": type(denial_of(facts)).__name__, "scopes": list(facts.scopes)}
    seen["retryAfterSeconds"] = facts.retry_after
    assert {name: seen[NAMES.get(name, name)] for name in expected} == expected


@named("json")
def test_documents_are_strict_json(vector: dict[str, Any]) -> None:
    if "repeat" in vector:
        text, count, end = vector["repeat"]
        document = '{"a": ' + text * count + end * count + "}"
    else:
        document = vector["text"]
    try:
        read_json(document.encode())
        valid = True
    except ValueError:
        valid = False
    assert valid is vector["valid"]


def test_a_document_is_utf_8() -> None:
    for document in (b'{"a": "\xff"}', '{"a": 1}'.encode("utf-16"), b'{"a": "\xed\xa0\x80"}'):
        with pytest.raises(ValueError):
            read_json(document)


@named("urls")
def test_urls_of_proofs_are_normalized(vector: dict[str, Any]) -> None:
    first, second = normal_htu(vector["a"]), normal_htu(vector["b"])
    assert (first is not None and first == second) is vector["equal"]


def test_the_token_is_sent_only_to_the_gateway(fixture: Fixture) -> None:
    reach = VECTORS["reach"]
    session = fixture.connect(gateway_url=reach["gatewayURL"])
    for url in reach["outside"]:
        with pytest.raises(PlatError, match="calls only the gateway"):
            fixture.run(session.http.get(url))
    assert fixture.sent == []
    for url in reach["inside"]:
        fixture.run(session.http.get(url))
    assert len(fixture.sent) == len(reach["inside"])


def test_a_thumbprint() -> None:
    key = read_public_jwk(VECTORS["thumbprint"]["jwk"])
    assert key is not None and key.kid == VECTORS["thumbprint"]["thumbprint"]


@pytest.mark.parametrize("vector", VECTORS["traceparent"])
def test_traceparents(vector: dict[str, Any]) -> None:
    assert (valid_traceparent(vector["value"]) is not None) is vector["valid"]

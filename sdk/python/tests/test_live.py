"""Sessions against a running plat, over real sockets."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx
import pytest
from conftest import settings
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from plat_sdk import (
    ApprovalPendingError,
    DeniedError,
    IdentityRefusedError,
    RevokedError,
    ScopeMissingError,
    TokenVerifier,
    Trust,
    connect,
    connect_async,
    denied_by,
    read_claims,
    until_approved_async,
)

World = dict[str, str]


def admin(world: World, path: str, body: Any) -> None:
    headers = {"authorization": f"Bearer {world['adminToken']}"}
    response = httpx.post(world["gatewayURL"] + path, json=body, headers=headers, trust_env=False)
    assert response.status_code < 300, response.text


@pytest.mark.parametrize("dpop", [False, True])
def test_the_mcp_client_calls_tools_and_reads_refusals(dpop: bool, world: World) -> None:
    from mcp import Client

    from plat_sdk.mcp_client import mcp_transport

    async def use() -> None:
        async with await connect_async(**settings(world), dpop=dpop) as session:
            async with Client(mcp_transport(session, "fixture")) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert "test_simple_text" in names and "test_image_content" not in names
                result = await client.call_tool("test_simple_text", {})
                assert "simple text" in str(result.content)
                denied = denied_by(await client.call_tool("test_image_content", {}))
                assert denied is not None
                assert (denied.code, denied.status, denied.rule) == ("policy_denied", 403, "no")
                assert len(denied.decision_id or "") == 36
            with pytest.raises(Exception) as raised:
                async with Client(mcp_transport(session, "elsewhere")):
                    pass
            missing = denied_by(raised.value)
            assert isinstance(missing, ScopeMissingError)
            assert (missing.scopes, missing.status) == (("tools:elsewhere",), 403)

    asyncio.run(use())


def test_a_call_that_waits_for_a_person_goes_through_once_it_is_approved(world: World) -> None:
    from mcp import Client

    from plat_sdk.mcp_client import mcp_transport

    async def use() -> None:
        async with await connect_async(**settings(world, "py-approval")) as session:
            transport = mcp_transport(session, "fixture", approval_wait_seconds=0)
            async with Client(transport) as client:

                def approve(pending: ApprovalPendingError) -> None:
                    admin(world, f"/v1/approvals/{pending.approval_id}/approve", {"reason": "fine"})

                def call() -> Any:
                    return client.call_tool("test_embedded_resource", {})

                result = await until_approved_async(call, on_pending=approve)
                assert "embedded resource" in str(result.content)

    asyncio.run(use())


@pytest.mark.parametrize("dpop", [False, True])
def test_model_clients_get_responses_streams_and_refusals(dpop: bool, world: World) -> None:
    import openai

    messages: Any = [{"role": "user", "content": "hello"}]
    with connect(**settings(world), dpop=dpop) as session:
        client = openai.OpenAI(**session.openai("small"))
        completion = client.chat.completions.create(model="small-1", messages=messages)
        assert completion.choices[0].message.content == "Hello world."
        stream = client.chat.completions.create(model="small-1", messages=messages, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "Hello world."
        with pytest.raises(openai.PermissionDeniedError) as raised:
            openai.OpenAI(**session.openai("other")).chat.completions.create(model="m", messages=messages)
        missing = denied_by(raised.value)
        assert isinstance(missing, ScopeMissingError) and missing.scopes == ("models:other",)


def test_tokens_are_renewed_while_calls_run(world: World) -> None:
    with connect(**settings(world, "py-rotating", ttl_seconds=2)) as session:
        jtis: set[str] = set()
        while len(jtis) < 3:
            assert session.http.get(f"{world['gatewayURL']}/llm/small/v1/models").status_code == 200
            assert session.claims is not None
            jtis.add(session.claims.jti)


def test_a_token_is_exchanged_for_one_that_a_server_verifies(world: World) -> None:
    with connect(**settings(world)) as session:
        exchanged = session.exchange("reports", ttl_seconds=60)
        assert exchanged.scopes == ("tools:fixture",)
        assert session.claims is not None
        assert read_claims(exchanged.token).parent_jti == session.claims.jti
        verifier = TokenVerifier(Trust(jwks_url=f"{world['identityURL']}/.well-known/jwks.json"), "reports")
        headers = {"authorization": f"Bearer {exchanged.token}"}
        assert verifier.verify_request("POST", "https://reports.example/", headers).user == "ada"
        verifier.close()
        with pytest.raises(IdentityRefusedError, match="invalid_target"):
            session.exchange("elsewhere")


def test_a_session_is_bound_to_a_p_256_key_later_and_only_once(world: World) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with connect(**settings(world, "py-late")) as session:
        token = session.token()
        session.bind(pem)
        assert session.claims is not None and session.claims.jkt is not None
        assert session.http.get(f"{world['gatewayURL']}/llm/small/v1/models").status_code == 200
        other = {**settings(world), "source": _given(token)}
        with connect(**other) as second, pytest.raises(IdentityRefusedError) as raised:
            second.bind()
        assert raised.value.status == 409


def _given(token: str) -> Any:
    from plat_sdk import fixed_token

    return fixed_token(token)


def test_code_runs_in_the_sandbox_of_the_session(world: World) -> None:
    with connect(**settings(world, "py-coder")) as session:
        assert session.exec({"code": "6 * 7"}).result == {"ran": "6 * 7"}


def test_a_revoked_session_gets_the_error_from_every_endpoint(world: World) -> None:
    # Every run has its own session: a revocation stays, and several interpreters share one plat.
    name = f"py-leaving-{uuid.uuid4()}"
    with connect(**settings(world, name)) as session:
        url = f"{world['gatewayURL']}/llm/small/v1/models"
        assert session.http.get(url).status_code == 200
        admin(world, "/v1/revocations", {"target": {"session": f"default/assistant/{name}"}, "reason": "lost"})
        with pytest.raises(RevokedError):
            session.http.get(url)
        with pytest.raises(DeniedError, match="revoked"):
            session.exec({"code": "1"})

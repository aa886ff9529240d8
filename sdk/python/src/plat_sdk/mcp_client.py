"""MCP servers behind the gateway, for clients of the package ``mcp``. Needs the extra ``mcp``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp.client.streamable_http import streamable_http_client

from .httpx2_clients import async_client
from .session import AsyncSession


@asynccontextmanager
async def mcp_transport(
    session: AsyncSession,
    server: str,
    *,
    approval_wait_seconds: int | None = None,
    refusals: Literal["result", "error"] | None = None,
) -> AsyncGenerator[Any, None]:
    """
    The transport for ``mcp.Client``: ``async with Client(mcp_transport(session, "notes")) as client``. Options as those of
    ``session.mcp``. A refusal of the whole request is an ``MCPError``, from which ``denied_by`` reads every member.
    """
    address = session.mcp(server, approval_wait_seconds=approval_wait_seconds, refusals=refusals)
    async with mcp_http_client(session, dict(address.headers)) as client:
        async with streamable_http_client(address.url, http_client=client) as streams:
            yield streams


def mcp_http_client(
    session: AsyncSession,
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """
    Return the HTTP client of an MCP transport. With the session as first argument (``functools.partial``) it is the factory that
    ``openai-agents`` and ``langchain-mcp-adapters`` accept as ``httpx_client_factory``.
    """
    if auth is not None:
        raise TypeError("auth: the session authenticates its calls")
    client = async_client(session, "json-rpc")
    client.headers.update(headers or {})
    if timeout is not None:
        client.timeout = timeout
    return client

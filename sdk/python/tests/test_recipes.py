"""The recipes, as programs against a running plat."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import settings

from plat_sdk import connect, connect_async

RECIPES = Path(__file__).parents[1] / "recipes"


def environment(world: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A token file and the variables that lead a program to the gateway."""
    token = tmp_path / "token"
    with connect(**settings(world, "py-recipe")) as session:
        token.write_text(session.token())
    return {
        **os.environ,
        "PLAT_GATEWAY_URL": world["gatewayURL"],
        "PLAT_IDENTITY_URL": world["identityURL"],
        "PLAT_TOKEN_FILE": str(token),
    }


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("openai_agents.py", ["tools: ", "model: Hello world.", "refused: True"]),
        ("langgraph_agent.py", ["tools: ", "called: ", "simple text", "model: Hello world."]),
    ],
)
def test_a_recipe_runs(recipe: str, expected: list[str], world: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RECIPES / recipe)],
        env=environment(world, tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for text in expected:
        assert text in done.stdout


def test_the_program_of_the_readme_prints_a_refusal(world: dict[str, str], tmp_path: Path) -> None:
    readme = (RECIPES.parent / "README.md").read_text("utf-8")
    program = readme.split("```python\n")[1].split("```")[0]
    program = program.replace('"notes"', '"fixture"').replace('"delete_note"', '"test_image_content"')
    file = tmp_path / "agent.py"
    file.write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, str(file)],
        env=environment(world, tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "no pictures" in done.stdout


def test_the_server_of_fastmcp_serves_verified_callers(
    world: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio
    import runpy
    import threading

    import httpx2
    import uvicorn
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    monkeypatch.setenv("PLAT_IDENTITY_URL", world["identityURL"])
    app = runpy.run_path(str(RECIPES / "fastmcp_server.py"))["app"]
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()

    async def use() -> Any:
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        url = f"http://127.0.0.1:{port}/mcp"
        assert httpx.post(url, json={}, trust_env=False).status_code == 401
        async with await connect_async(**settings(world)) as session:
            token = (await session.exchange("reports")).token
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers) as http:
            async with Client(streamable_http_client(url, http_client=http)) as client:
                return await client.call_tool("my_reports", {})

    try:
        assert "reports of ada, requested by assistant" in str(asyncio.run(use()).content)
    finally:
        server.should_exit = True
        thread.join(10)

"""Uses two servers at one address with the client of the official SDK; prints what it got as JSON."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


async def use(url: str, token: str) -> dict:
    headers = {"authorization": f"Bearer {token}"}
    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            begun = await session.initialize()
            listed = await session.list_tools()
            prompts = await session.list_prompts()
            resources = await session.list_resources()
            called = await session.call_tool("files__test_simple_text", {})
            denied = await session.call_tool("notes__test_simple_text", {})
            prompt = await session.get_prompt("notes__test_simple_prompt")
            first = next(one.uri for one in resources.resources if str(one.uri).endswith("static-text"))
            contents = await session.read_resource(first)
            data = await session.read_resource(AnyUrl("mcp://files/test://template/7/data"))
            await session.subscribe_resource(AnyUrl("mcp://notes/test://watched-resource"))
            await session.send_ping()
            return {
                "server": begun.serverInfo.name,
                "tools": [tool.name for tool in listed.tools],
                "prompts": [one.name for one in prompts.prompts],
                "called": called.content[0].text,
                "denied": [denied.isError, denied.content[0].text],
                "prompt": prompt.messages[0].content.text,
                "uri": str(contents.contents[0].uri),
                "data": data.contents[0].text,
            }


print(json.dumps(asyncio.run(use(sys.argv[1], sys.argv[2]))))

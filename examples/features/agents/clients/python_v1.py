"""The MCP SDK for Python, version 1: takes steps from standard input, and prints what each call returned."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def call(server, step):
    async with streamablehttp_client(server["url"], server.get("headers")) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            await session.list_tools()
            while True:
                result = await session.call_tool(step["tool"], step["arguments"])
                text = "".join(part.text for part in result.content)
                if "waiting for approval" not in text:
                    return text


async def main():
    servers = json.load(open(sys.argv[1]))["mcpServers"]
    print(json.dumps([await call(servers[step["server"]], step) for step in json.load(sys.stdin)]))


asyncio.run(main())

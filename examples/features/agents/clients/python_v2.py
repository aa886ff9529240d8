"""The MCP SDK for Python, version 2: takes steps from standard input, and prints what each call returned."""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def call(server, step):
    async with httpx2.AsyncClient(headers=server.get("headers"), timeout=30) as http:
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            await client.list_tools()
            while True:
                result = await client.call_tool(step["tool"], step["arguments"])
                text = "".join(part.text for part in result.content)
                if "waiting for approval" not in text:
                    return text


async def main():
    servers = json.load(open(sys.argv[1]))["mcpServers"]
    print(json.dumps([await call(servers[step["server"]], step) for step in json.load(sys.stdin)]))


asyncio.run(main())

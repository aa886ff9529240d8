"""An agent of openai-agents at its defaults: one MCP server, one model, one task. Prints its final output."""

import asyncio
import os

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

set_default_openai_api("chat_completions")
set_tracing_disabled(True)


async def main() -> None:
    headers = {"authorization": f"Bearer {os.environ['TOKEN']}"}
    params = {"url": os.environ["MCP_URL"], "headers": headers}
    async with MCPServerStreamableHttp(params=params) as notes:
        agent = Agent(name="notes", model="scripted-1", mcp_servers=[notes])
        result = await Runner.run(agent, os.environ["TASK"])
        print(result.final_output)


asyncio.run(main())

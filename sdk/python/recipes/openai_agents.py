"""An agent of openai-agents whose model and tools are behind plat. The gateway and the session come from the environment."""

import asyncio
from functools import partial

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

from plat_sdk import connect_async
from plat_sdk.mcp_client import mcp_http_client


async def main() -> None:
    set_tracing_disabled(True)
    async with await connect_async() as session:
        address = session.mcp("fixture")
        server = MCPServerStreamableHttp(
            params={"url": address.url, "httpx_client_factory": partial(mcp_http_client, session)},
            cache_tools_list=True,
        )
        model = OpenAIChatCompletionsModel("small-1", openai_client=AsyncOpenAI(**session.openai("small")))
        async with server:
            print("tools:", len(await server.list_tools()))
            agent = Agent(name="assistant", model=model, mcp_servers=[server])
            result = await Runner.run(agent, "hello")
            print("model:", result.final_output)
            refused = await server.call_tool("test_image_content", {})
            print("refused:", refused.is_error)


asyncio.run(main())

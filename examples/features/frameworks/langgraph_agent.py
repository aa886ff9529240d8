"""An agent of LangGraph with langchain-mcp-adapters at their defaults. Prints its final output."""

import asyncio
import os

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


async def main() -> None:
    headers = {"authorization": f"Bearer {os.environ['TOKEN']}"}
    notes = {"transport": "streamable_http", "url": os.environ["MCP_URL"], "headers": headers}
    client = MultiServerMCPClient({"notes": notes})
    agent = create_react_agent(ChatOpenAI(model="scripted-1"), await client.get_tools())
    result = await agent.ainvoke({"messages": [("user", os.environ["TASK"])]})
    print(result["messages"][-1].content)


asyncio.run(main())

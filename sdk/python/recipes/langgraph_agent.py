"""A graph of LangGraph whose model and tools are behind plat. The gateway and the session come from the environment."""

import asyncio
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from mcp import Client
from mcp_types import Tool
from pydantic import SecretStr

from plat_sdk import connect_async, denied_by
from plat_sdk.mcp_client import mcp_transport


def langchain_tool(client: Client, tool: Tool) -> StructuredTool:
    """A tool of MCP for LangChain. A refusal raises, so that the graph decides what follows."""

    async def call(**arguments: Any) -> str:
        result = await client.call_tool(tool.name, arguments)
        denied = denied_by(result)
        if denied is not None:
            raise denied
        return "\n".join(str(part) for part in result.content)

    return StructuredTool(
        name=tool.name, description=tool.description or tool.name, args_schema=tool.input_schema, coroutine=call
    )


async def main() -> None:
    async with await connect_async() as session, Client(mcp_transport(session, "fixture")) as client:
        tools = [langchain_tool(client, tool) for tool in (await client.list_tools()).tools]
        print("tools:", len(tools))
        simple = next(tool for tool in tools if tool.name == "test_simple_text")
        print("called:", await simple.ainvoke({}))
        options = session.openai("small")
        chat = ChatOpenAI(
            model="small-1",
            base_url=options["base_url"],
            api_key=SecretStr(options["api_key"]),
            http_async_client=options["http_client"],
        )
        model = chat.bind_tools(tools)

        async def answer(state: MessagesState) -> MessagesState:
            reply: AnyMessage = await model.ainvoke(state["messages"])
            return {"messages": [reply]}

        graph = StateGraph(MessagesState)
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        result = await graph.compile().ainvoke({"messages": [HumanMessage("hello")]})
        print("model:", result["messages"][-1].content)


asyncio.run(main())

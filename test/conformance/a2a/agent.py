"""An agent made with the Python SDK of A2A 1.0, which also speaks 0.3 to callers of 0.3. Prints its address."""

import asyncio
import socket

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Instruction(AgentExecutor):
    """Does what a message says: `hello`, `work <pieces>`, `need` (input) and `wait` (until it is cancelled)."""

    async def execute(self, context, event_queue):
        text = context.get_user_input()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if text.startswith("hello"):
            await event_queue.enqueue_event(updater.new_agent_message([Part(text="hello yourself")]))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task_from_user_message(context.message))
        await updater.start_work()
        if text == "wait":
            await asyncio.sleep(600)
        elif text == "need":
            await updater.requires_input()
        else:
            for at, piece in enumerate(text.removeprefix("work ").split("|")):
                await updater.add_artifact([Part(text=piece)], artifact_id="result", append=at > 0)
            await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
card = AgentCard(
    name="test agent",
    description="does what it is instructed to do",
    version="1.0.0",
    supported_interfaces=[
        AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version=version) for version in ("1.0", "0.3")
    ],
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="own", name="own", description="own", tags=["own"])],
)
handler = DefaultRequestHandler(
    agent_executor=Instruction(),
    task_store=InMemoryTaskStore(),
    agent_card=card,
    push_config_store=InMemoryPushNotificationConfigStore(),
)
routes = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)
app = Starlette(routes=[*routes, *create_agent_card_routes(card)])
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])

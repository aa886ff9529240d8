"""An agent made with the Python SDK of A2A 0.3. Prints its address."""

import asyncio
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TaskState, TextPart
from a2a.utils import new_agent_text_message, new_task


class Instruction(AgentExecutor):
    """Does what a message says: `hello`, `work <pieces>`, `need` (input) and `wait` (until it is cancelled)."""

    async def execute(self, context, event_queue):
        text = context.get_user_input()
        if text.startswith("hello"):
            await event_queue.enqueue_event(new_agent_text_message("hello yourself", context.context_id))
            return
        if context.current_task is None:
            await event_queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if text == "wait":
            await asyncio.sleep(600)
        elif text == "need":
            await updater.update_status(TaskState.input_required, final=True)
        else:
            for at, piece in enumerate(text.removeprefix("work ").split("|")):
                await updater.add_artifact([Part(root=TextPart(text=piece))], artifact_id="result", append=at > 0)
            await updater.complete()

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
card = AgentCard(
    name="test agent",
    description="does what it is instructed to do",
    version="1.0.0",
    url=url,
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="own", name="own", description="own", tags=["own"])],
)
handler = DefaultRequestHandler(Instruction(), InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore())
app = A2AStarletteApplication(card, handler).build()
print(url, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])

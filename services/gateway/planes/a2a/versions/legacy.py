"""Calls agents with the Python SDK of A2A 0.3: legacy.py <base URL> <token> <agent>... Prints what it received as JSON."""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.helpers import create_text_message_object


async def events_of(client, text):
    """Returns the kinds of the events that answer a message, the last task, and its texts."""
    kinds, task = [], None
    async for event in client.send_message(create_text_message_object(content=text)):
        if not isinstance(event, tuple):
            return {"kinds": [event.kind], "text": event.parts[0].root.text}
        task, update = event
        kinds.append(task.kind if update is None else update.kind)
    texts = [part.root.text for artifact in task.artifacts or [] for part in artifact.parts]
    return {"kinds": kinds, "id": task.id, "state": task.status.state.value, "texts": texts}


async def main(base, token, agents):
    results = {}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}) as http:
        for agent in agents:
            for streaming in (True, False):
                config = ClientConfig(streaming=streaming, httpx_client=http)
                client = await ClientFactory.connect(f"{base}/a2a/{agent}/", client_config=config)
                name = f"{agent} {'streams' if streaming else 'sends'}"
                results[name] = {
                    "hello": await events_of(client, "hello"),
                    "work": await events_of(client, "work a|b"),
                }
    print(json.dumps(results))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

"""Calls an agent with the Python SDK of A2A 0.3: client_03.py <URL> <token>. Prints what it received as JSON."""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.helpers import create_text_message_object
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    PushNotificationConfig,
    TaskPushNotificationConfig,
    TaskQueryParams,
)


def plain(event):
    """Returns the update of a pair of task and update."""
    value = (event[1] or event[0]) if isinstance(event, tuple) else event
    return value.model_dump(mode="json", exclude_none=True)


async def events_of(stream):
    return [plain(event) async for event in stream]


def say(client, text):
    return client.send_message(create_text_message_object(content=text))


async def push(client, task):
    config = PushNotificationConfig(id="hook", url="https://hooks.example/a2a", token="secret")
    named = GetTaskPushNotificationConfigParams(id=task, push_notification_config_id="hook")
    return [
        plain(await client.set_task_callback(TaskPushNotificationConfig(task_id=task, push_notification_config=config))),
        plain(await client.get_task_callback(named)),
    ]


async def main(url, token):
    results = {}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30) as http:
        for streaming in (True, False):
            config = ClientConfig(streaming=streaming, httpx_client=http)
            client = await ClientFactory.connect(url, client_config=config)
            results[f"hello {streaming}"] = await events_of(say(client, "hello"))
            results[f"work {streaming}"] = await events_of(say(client, "work a|b"))
        client = await ClientFactory.connect(url, client_config=ClientConfig(httpx_client=http))
        [first, *_] = await events_of(say(client, "need"))
        results["get"] = plain(await client.get_task(TaskQueryParams(id=first["id"], history_length=1)))
        results["push"] = await push(client, first["id"])
        try:
            await client.get_task(TaskQueryParams(id="unknown"))
        except Exception as error:
            results["unknown"] = getattr(error, "error", error).__class__.__name__
    print(json.dumps(results))


asyncio.run(main(*sys.argv[1:]))

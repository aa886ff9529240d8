"""Calls an agent with the Python SDK of A2A 1.0: client.py <URL> <token>. Prints what it received as JSON."""

import asyncio
import json
import sys

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict


async def events_of(stream, act=None):
    events = []
    async for event in stream:
        events.append(MessageToDict(event))
        if act is not None:
            await act(event)
    return events


def say(client, text, context=None):
    message = new_text_message(text, role=Role.ROLE_USER, context_id=context)
    return client.send_message(SendMessageRequest(message=message))


async def follow(client):
    """Subscribes to a task that works, and cancels it."""
    followed = []

    async def act(event):
        if event.status_update.status.state != TaskState.TASK_STATE_WORKING or followed:
            return
        request = {"id": event.status_update.task_id}
        stream = client.subscribe(SubscribeToTaskRequest(**request))
        followed.append(MessageToDict(await anext(stream)))
        followed.append(MessageToDict(await client.cancel_task(CancelTaskRequest(**request))))
        followed.extend(await events_of(stream))

    return [await events_of(say(client, "wait"), act), followed]


async def push(client, task):
    config = TaskPushNotificationConfig(task_id=task, id="hook", url="https://hooks.example/a2a")
    named = {"task_id": task, "id": "hook"}
    of_task = ListTaskPushNotificationConfigsRequest(task_id=task)
    results = [
        await client.create_task_push_notification_config(config),
        await client.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**named)),
        await client.list_task_push_notification_configs(of_task),
    ]
    await client.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**named))
    results.append(await client.list_task_push_notification_configs(of_task))
    return [MessageToDict(result) for result in results]


async def main(url, token):
    results = {}
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30) as http:
        for streaming in (True, False):
            client = await ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create_from_url(url)
            results[f"hello {streaming}"] = await events_of(say(client, "hello"))
            results[f"work {streaming}"] = await events_of(say(client, "work a|b"))
        client = await ClientFactory(ClientConfig(httpx_client=http)).create_from_url(url)
        [first, *_] = await events_of(say(client, "need"))
        task, context = first["task"]["id"], first["task"]["contextId"]
        results["get"] = MessageToDict(await client.get_task(GetTaskRequest(id=task, history_length=1)))
        listed = await client.list_tasks(ListTasksRequest(context_id=context, page_size=1))
        results["list"] = [task.id for task in listed.tasks]
        results["push"] = await push(client, task)
        results["continue"] = await events_of(say(client, "work c", context))
        results["follow"] = await follow(client)
        for name, call in {
            "unknown": client.get_task(GetTaskRequest(id="unknown")),
            "ended": client.cancel_task(CancelTaskRequest(id=results["work False"][0]["task"]["id"])),
        }.items():
            try:
                await call
            except Exception as error:
                results[name] = type(error).__name__
    print(json.dumps(results))


asyncio.run(main(*sys.argv[1:]))

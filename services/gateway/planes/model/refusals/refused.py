"""Calls models through a gateway with the official clients at their defaults, and prints the errors that they raise as JSON."""

import json
import sys

import anthropic
import httpx2
import openai

url, token = sys.argv[1:3]
sent = []
http = httpx2.Client(event_hooks={"request": [lambda request: sent.append(request.url.path)]})
messages = [{"role": "user", "content": "Say hello."}]


def chat(route, model="small-1", **more):
    client = openai.OpenAI(base_url=f"{url}/llm/{route}/v1", api_key=token, http_client=http)
    answer = client.chat.completions.create(model=model, messages=messages, **more)
    return list(answer) if more.get("stream") else answer


def message(model="claude-test", **more):
    client = anthropic.Anthropic(base_url=f"{url}/llm/claude", auth_token=token, http_client=http)
    answer = client.messages.create(model=model, max_tokens=100, messages=messages, **more)
    return list(answer) if more.get("stream") else answer


def refused(work):
    sent.clear()
    try:
        work()
    except (openai.APIError, anthropic.APIError) as error:
        return {
            "type": type(error).__name__,
            "message": str(error),
            "code": getattr(error, "code", None),
            "id": getattr(error, "request_id", None),
            "sent": len(sent),
        }
    return None


chat("slow")
print(
    json.dumps(
        {
            "denied": refused(lambda: chat("plain", "large-1")),
            "deniedMessage": refused(lambda: message("large-1")),
            "rate": refused(lambda: chat("slow")),
            "budget": refused(lambda: message("dear")),
            "missing": refused(lambda: chat("argued")),
            "stream": refused(lambda: chat("plain", stream=True)),
            "streamMessage": refused(lambda: message(stream=True)),
        }
    )
)

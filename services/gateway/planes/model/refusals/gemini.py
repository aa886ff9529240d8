"""Calls a model through a gateway with Google's official client, and prints what it returns and raises as JSON."""

import json
import sys

from google import genai
from google.genai import errors

url, token = sys.argv[1:3]
client = genai.Client(api_key=token, http_options={"base_url": f"{url}/llm"})
models = client.models


def refused(model):
    try:
        models.generate_content(model=model, contents="Say hello.")
    except errors.APIError as error:
        return {"type": type(error).__name__, "status": error.code, "message": str(error)}
    return None


print(
    json.dumps(
        {
            "whole": models.generate_content(model="gemini/gemini-3", contents="Say hello.").text,
            "streamed": "".join(
                chunk.text or "" for chunk in models.generate_content_stream(model="gemini/gemini-3", contents="Say hello.")
            ),
            "translated": models.generate_content(model="plain/small-1", contents="Say hello.").text,
            "denied": refused("plain/large-1"),
        }
    )
)

import sys

from openai import OpenAI

# OPENAI_BASE_URL and OPENAI_API_KEY are all that names the proxy.
client = OpenAI()
messages = [{"role": "user", "content": "Say hello."}]
for model in sys.argv[1:]:
    whole = client.chat.completions.create(model=model, messages=messages)
    chunks = client.chat.completions.create(model=model, messages=messages, stream=True)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    print(f"{model}: {whole.choices[0].message.content} | {streamed}")

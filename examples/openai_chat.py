"""Ask a language model, through a service that is often overloaded. Library: openai.

A question changes nothing, so the program says by `safe=` that it may be sent twice. The library's own retries are off
(`max_retries=0`): retries within retries would multiply.
"""

import os

import openai

from forbear.clients.httpx2 import install


def connect(api: str = "https://api.openai.com/v1") -> openai.OpenAI:
    """Return a client of the service at this URL. Its key is in the environment: `OPENAI_API_KEY`."""
    return install(openai.OpenAI(base_url=api, max_retries=0), safe=f"POST {api}/chat/completions")


def answer(client: openai.OpenAI, question: str) -> str:
    """Return the answer of the model `OPENAI_MODEL` to a question."""
    model = os.environ["OPENAI_MODEL"]
    chat = client.chat.completions.create(model=model, messages=[{"role": "user", "content": question}])
    return chat.choices[0].message.content or ""


if __name__ == "__main__":
    with connect() as service:
        print(answer(service, input("? ")))

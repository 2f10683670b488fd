"""Ask a language model and print its answer while it arrives. Library: anthropic.

A question changes nothing, so the program says by `safe=` that it may be sent twice. The library's own retries are off
(`max_retries=0`): retries within retries would multiply.
"""

import os
from collections.abc import Iterator

import anthropic

from forbear.clients.httpx2 import install


def connect(api: str = "https://api.anthropic.com") -> anthropic.Anthropic:
    """Return a client of the service at this URL. Its key is in the environment: `ANTHROPIC_API_KEY`."""
    return install(anthropic.Anthropic(base_url=api, max_retries=0), safe=f"POST {api}/v1/messages")


def answer(client: anthropic.Anthropic, question: str) -> Iterator[str]:
    """Yield the pieces of the answer of the model `ANTHROPIC_MODEL` to a question."""
    model = os.environ["ANTHROPIC_MODEL"]
    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": question}]
    with client.messages.stream(model=model, max_tokens=1024, messages=messages) as stream:
        yield from stream.text_stream


if __name__ == "__main__":
    with connect() as service:
        for piece in answer(service, input("? ")):
            print(piece, end="", flush=True)

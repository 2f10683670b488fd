"""The SDKs of OpenAI and Anthropic in decorated functions: what they send is pure, unless something can act."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire
from forbear_testkit.evidence.forms import run_async
from forbear_testkit.evidence.http_clients import SYNC

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
LOST = Answer(end="close")
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}

CALLS: dict[str, tuple[Callable[[str], object], bool]] = {
    "chat": (lambda url: _openai(url).chat.completions.create(**ASK), True),
    "embeddings": (lambda url: _openai(url).embeddings.create(model="m", input="text"), True),
    "responses": (lambda url: _openai(url).responses.create(model="m", input="?"), True),
    "N2 a server that acts": (
        lambda url: _openai(url).responses.create(model="m", input="?", tools=[{"type": "mcp", "server_label": "s"}]),
        False,
    ),
    "a conversation": (lambda url: _openai(url).responses.create(model="m", input="?", conversation="c"), False),
    "a batch": (
        lambda url: _openai(url).batches.create(completion_window="24h", endpoint="/v1/embeddings", input_file_id="f"),
        False,
    ),
    "messages": (lambda url: _anthropic(url).messages.create(max_tokens=9, **ASK), True),
    "N1 the same path without the SDK": (lambda url: SYNC["httpx"]("POST", f"{url}/v1/messages"), False),
}


def _openai(url: str) -> Any:
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)


def _anthropic(url: str) -> Any:
    return anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    """N1, N2: the SDK's own method names the operation; a path never does."""
    work, repeated = CALLS[name]
    with (
        Wire(LOST) as wire,
        virtual_time(),
        pytest.raises((httpx.HTTPError, openai.OpenAIError, anthropic.AnthropicError)),
    ):
        POLICY.call(work, wire.url)
    assert len(wire.seen) == (3 if repeated else 1)


def test_async() -> None:
    """The async client is read alike."""

    async def ask() -> object:
        async with openai.AsyncOpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
            return await client.chat.completions.create(**ASK)

    with Wire(LOST) as wire, virtual_time(), pytest.raises(openai.APIConnectionError):
        run_async("decorated", POLICY, ask)
    assert len(wire.seen) == 3

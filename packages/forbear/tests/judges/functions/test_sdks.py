"""The SDKs of OpenAI and Anthropic in decorated functions: what they send is pure, unless something can act."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import forbear
from forbear.events import Recovered
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import run_async
from forbear_testkit.lazily import Library

anthropic: Any = Library("anthropic")
openai: Any = Library("openai")

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
LOST = Answer(end="close")
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "?"}]}

CALLS: dict[str, tuple[str, Callable[[Any], object], bool]] = {
    "chat": ("openai", lambda client: client.chat.completions.create(**ASK), True),
    "chat, as a stream": ("openai", lambda client: client.chat.completions.create(stream=True, **ASK), True),
    "completions": ("openai", lambda client: client.completions.create(model="m", prompt="?"), True),
    "embeddings": ("openai", lambda client: client.embeddings.create(model="m", input="text"), True),
    "moderations": ("openai", lambda client: client.moderations.create(input="text"), True),
    "responses": ("openai", lambda client: client.responses.create(model="m", input="?"), True),
    "a response that is kept": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", store=True, previous_response_id="r"),
        True,
    ),
    "N2 a server that acts": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", tools=[{"type": "mcp", "server_label": "s"}]),
        False,
    ),
    "a function that the client runs": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", tools=[{"type": "function", "name": "f"}]),
        True,
    ),
    "a conversation": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", conversation="c"),
        False,
    ),
    "in the background": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", background=True),
        False,
    ),
    "an extra body that acts": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", extra_body={"background": True}),
        False,
    ),
    "an extra body": (
        "openai",
        lambda client: client.responses.create(model="m", input="?", extra_body={"top_k": 1}),
        True,
    ),
    "an image": ("openai", lambda client: client.images.generate(prompt="?"), True),
    "an edit": ("openai", lambda client: client.images.edit(image=b"png", prompt="?"), True),
    "a variation": ("openai", lambda client: client.images.create_variation(image=b"png"), True),
    "a transcription": ("openai", lambda client: client.audio.transcriptions.create(model="m", file=b"wav"), True),
    "a translation": ("openai", lambda client: client.audio.translations.create(model="m", file=b"wav"), True),
    "speech": ("openai", lambda client: client.audio.speech.create(model="m", input="?", voice="v"), True),
    "a batch": (
        "openai",
        lambda client: client.batches.create(completion_window="24h", endpoint="/v1/embeddings", input_file_id="f"),
        False,
    ),
    "a file": ("openai", lambda client: client.files.create(file=b"text", purpose="batch"), False),
    "fine-tuning": ("openai", lambda client: client.fine_tuning.jobs.create(model="m", training_file="f"), False),
    "a vector store": ("openai", lambda client: client.vector_stores.create(), False),
    "models": ("openai", lambda client: client.models.list(), True),
    "messages": ("anthropic", lambda client: client.messages.create(max_tokens=9, **ASK), True),
    "tokens": ("anthropic", lambda client: client.messages.count_tokens(**ASK), True),
    "N2 a sandbox": (
        "anthropic",
        lambda client: client.messages.create(
            max_tokens=9, tools=[{"type": "code_execution_20250522", "name": "code_execution"}], **ASK
        ),
        False,
    ),
    "a batch of messages": (
        "anthropic",
        lambda client: client.messages.batches.create(requests=[]),
        False,
    ),
}


def make(sdk: str, url: str) -> Any:
    """Return the client of an SDK that does not retry."""
    if sdk == "openai":
        return openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    return anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # of the SDK
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("by", ["decorator", "adapter"])
def test_calls(name: str, by: str) -> None:
    """N2: decorator and `install` agree: what is pure is repeated, and what may act is not."""
    sdk, call, repeated = CALLS[name]
    with Wire(LOST) as wire, virtual_time(), make(sdk, wire.url) as client:
        work = forbear.install(client, attempts=3) if by == "adapter" else client
        with pytest.raises((httpx.HTTPError, openai.OpenAIError, anthropic.AnthropicError)):
            _ = call(work) if by == "adapter" else POLICY.call(call, work)
    assert len(wire.seen) == (3 if repeated else 1)


def test_n1_the_path_alone() -> None:
    """N1: a path makes no host a language model; an Api does."""
    for apis, sent in (([], 1), (["llm"], 3)):
        with Wire(LOST) as wire, virtual_time():
            policy = POLICY.with_changes(apis=[forbear.Api(wire.url, service=name) for name in apis])
            with pytest.raises(httpx.HTTPError):
                policy.call(httpx.post, f"{wire.url}/v1/messages", json=ASK)
        assert len(wire.seen) == sent


def test_async() -> None:
    """The async client is read alike."""

    async def ask() -> object:
        async with openai.AsyncOpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
            return await client.chat.completions.create(**ASK)

    with Wire(LOST) as wire, virtual_time(), pytest.raises(openai.APIConnectionError):
        run_async("decorated", POLICY, ask)
    assert len(wire.seen) == 3


BILL = "an earlier attempt may have been billed, too"
BROKEN = reply(500, b"{}", "Content-Type: application/json")
BUSY = reply(429, b"{}", "Content-Type: application/json")
GOOD = reply(200, b"{}", "Content-Type: application/json")


def _create(client: Any) -> Any:
    return client.chat.completions.create(**ASK)


def _ask(by: str, policy: forbear.Policy, url: str) -> object:
    """Ask a model, by the decorator or an installed client, sync or async."""
    options: Any = {"api_key": "k", "base_url": f"{url}/v1", "max_retries": 0}
    if not by.startswith("async"):
        with openai.OpenAI(**options) as client:
            if by == "adapter":
                return forbear.install(client, policy).chat.completions.create(**ASK)
            return policy.call(_create, client)

    async def ask() -> object:
        async with openai.AsyncOpenAI(**options) as client:
            if by == "async adapter":
                return await forbear.install(client, policy).chat.completions.create(**ASK)
            return await policy.acall(_create, client)

    return asyncio.run(ask())


@pytest.mark.parametrize("by", ["decorator", "adapter", "async decorator", "async adapter"])
@pytest.mark.parametrize(
    ("answers", "billed"),
    [
        ((LOST, LOST), True),
        ((BROKEN, BROKEN), True),
        ((LOST, BUSY), True),
        ((BUSY, BUSY), False),
        ((BUSY, LOST), False),
    ],
    ids=["lost", "broken", "lost, then busy", "busy", "busy, then lost"],
)
def test_a_call_that_may_have_been_billed(by: str, answers: tuple[Answer, ...], billed: bool) -> None:
    """Every form of the report says `billed` if an attempt before the last may have cost money."""
    with Wire(*answers) as wire, virtual_time(), pytest.raises(openai.OpenAIError) as caught:
        _ask(by, forbear.retry(forbear.transient, attempts=2), wire.url)
    report = forbear.report(caught.value)
    assert report is not None
    assert (len(wire.seen), report.count, report.billed, report.as_dict()["billed"]) == (2, 2, billed, billed)
    for text in (report.note, report.as_text(), report._repr_html_()):
        assert (BILL in text) is billed


@pytest.mark.parametrize("by", ["decorator", "adapter", "async decorator", "async adapter"])
@pytest.mark.parametrize(("answer", "billed"), [(LOST, True), (BUSY, False)])
def test_the_log_says_what_may_have_been_billed(
    by: str, answer: Answer, billed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A late success tells it by the event `Recovered`, and in the log."""
    events = list[object]()
    policy = forbear.retry(forbear.transient, attempts=2, on_event=events.append)
    with Wire(answer, GOOD) as wire, virtual_time(), caplog.at_level(logging.INFO, "forbear"):
        _ask(by, policy, wire.url)
    (recovered,) = (event for event in events if isinstance(event, Recovered))
    assert recovered.billed is billed
    assert (BILL in caplog.text) is billed


def test_explain_says_that_it_is_billed() -> None:
    """The answer about an error of a model says that a repeat costs money."""
    with Wire(LOST) as wire, openai.OpenAI(api_key="k", base_url=wire.url, max_retries=0) as client:
        with pytest.raises(openai.APIConnectionError) as caught:
            client.chat.completions.create(**ASK)
        answer = forbear.explain(caught.value)
    assert answer.repeatable
    assert "each attempt may be billed" in str(answer)

"""The examples for language models: the SDKs ask a local server."""

import json

import pytest

from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Seen, reply
from forbear_testkit.examples.load import load
from forbear_testkit.examples.service import LOST, Service


def _chat(request: Seen) -> object:
    """Answer as the chat completions of OpenAI."""
    question = json.loads(request.body)["messages"][0]["content"]
    message = {"role": "assistant", "content": f"{question} Yes."}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def _messages(request: Seen) -> Answer:
    """Answer as the streamed messages of Anthropic."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    steps: list[dict[str, object]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in "ok"),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in steps)
    return reply(200, body.encode(), "Content-Type: text/event-stream")


def test_openai_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is sent again after 429, 500 and a lost response, and the SDK adds no attempts of its own."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_MODEL", "m")
    program = load("openai_chat")
    with Service(_chat) as service, virtual_time() as time, program.connect(f"{service.url}/v1") as client:
        service.fail(429, 500, LOST)
        assert program.answer(client, "Is tea hot?") == "Is tea hot? Yes."
        assert [seconds >= 7 for seconds in time.slept] == [True, True, False]  # Retry-After
        assert len(service.seen) == 4


@pytest.mark.soak  # its import takes seconds; it sends by the same library as openai
def test_anthropic_streams_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question is sent again after 429, 500 and a lost response; every piece of the answer arrives once."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_MODEL", "m")
    program = load("anthropic_messages")
    with Service(_messages) as service, virtual_time() as time, program.connect(service.url) as client:
        service.fail(429, 500, LOST)
        assert "".join(program.answer(client, "Is tea hot?")) == "ok"
        assert len(time.slept) == 3
        assert len(service.seen) == 4

"""The SDKs of OpenAI and Anthropic."""

from functools import partial
from typing import Any

import forbear
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.origin import Request, Response
from tools.sdk_repeats.trials import Library, Operation

anthropic: Any = Lazy("anthropic")
openai: Any = Lazy("openai")
_JSON = (("Content-Type", "application/json"),)


def _make(library: Any, name: str, path: str, url: str, mode: str) -> Any:
    options: dict[str, Any] = {} if mode == "default" else {"max_retries": 0}
    client = getattr(library, name)(api_key="k", base_url=f"{url}{path}", **options)
    return forbear.install(client) if mode == "forbear" else client


def _respond(request: Request) -> Response:
    return Response(200, b'{"id": "x", "object": "x", "type": "x", "data": [], "choices": [], "content": []}', _JSON)


_BILLED = "forbear repeats a call of a language model that changes nothing but the bill."
_TALK = [{"role": "user", "content": "hello"}]
_ASK: dict[str, Any] = {"model": "m", "max_tokens": 5, "messages": _TALK}

LIBRARIES = (
    Library(
        "openai",
        ("openai",),
        partial(_make, openai, "OpenAI", "/v1"),
        "OpenAI(max_retries=0)",
        "forbear.install(OpenAI(max_retries=0))",
        (
            Operation(
                "chat.completions.create",
                lambda client: client.chat.completions.create(model="m", messages=_TALK),
                "billed twice",
            ),
            Operation(
                "responses.create",
                lambda client: client.responses.create(model="m", input="hello"),
                "billed twice, and a second stored response",
            ),
            Operation("images.generate", lambda client: client.images.generate(prompt="a cat"), "billed twice"),
            Operation("files.create", lambda client: client.files.create(file=b"x", purpose="batch"), "a second file"),
            Operation(
                "batches.create",
                lambda client: client.batches.create(
                    completion_window="24h", endpoint="/v1/responses", input_file_id="f"
                ),
                "a second batch",
            ),
            Operation(
                "fine_tuning.jobs.create",
                lambda client: client.fine_tuning.jobs.create(model="m", training_file="f"),
                "a second job",
            ),
            Operation("vector_stores.create", lambda client: client.vector_stores.create(name="s"), "a second store"),
            Operation(
                "conversations.items.create",
                lambda client: client.conversations.items.create("c", items=[{"role": "user", "content": "hello"}]),
                "a second item",
            ),
        ),
        _respond,
        note=_BILLED,
    ),
    Library(
        "anthropic",
        ("anthropic",),
        partial(_make, anthropic, "Anthropic", ""),
        "Anthropic(max_retries=0)",
        "forbear.install(Anthropic(max_retries=0))",
        (
            Operation("messages.create", lambda client: client.messages.create(**_ASK), "billed twice"),
            Operation(
                "messages.batches.create",
                lambda client: client.messages.batches.create(requests=[{"custom_id": "a", "params": _ASK}]),
                "a second batch",
            ),
            Operation("beta.files.upload", lambda client: client.beta.files.upload(file=("a", b"x")), "a second file"),
            Operation(
                "beta.skills.create",
                lambda client: client.beta.skills.create(files=[("s/SKILL.md", b"x")]),
                "a second skill",
            ),
        ),
        _respond,
        note=_BILLED,
    ),
)

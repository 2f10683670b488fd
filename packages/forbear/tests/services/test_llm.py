"""Language models: pure, but billed, unless something in the request can act."""

from importlib import import_module
from typing import Any

import pytest

from forbear.http.request import Request
from forbear.services.llm import OPERATIONS, RECOMMENDED, classify

CHAT = "openai.responses.create"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_are_pure(operation: str) -> None:
    """Each operation is a method of the SDK, and may be repeated."""
    assert classify(operation, {}).repeatable
    *path, function = operation.split(".")
    package, *rest = path
    names = [f"{package}.resources.{'.'.join(rest)}", f"{package}.resources.{'.'.join([*rest, rest[-1]])}"]
    modules = [module for name in names if (module := _module(name)) is not None]
    assert any(
        hasattr(kind, function) for module in modules for kind in vars(module).values() if isinstance(kind, type)
    )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


def test_unknown_operations_are_not() -> None:
    """Files, batches, fine-tuning, threads and the like are no such operations."""
    for name in ("openai.files.create", "openai.batches.create", "openai.beta.threads.create"):
        assert not classify(name, {}).repeatable


@pytest.mark.parametrize(
    ("parameters", "pure"),
    [
        ({"tools": [{"type": "function", "name": "f"}]}, True),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"name": "mine"}]}, True),
        ({"tools": [{"type": "web_search_preview"}, {"type": "file_search"}]}, True),
        ({"tools": [{"type": "mcp", "server_url": "https://example.com"}]}, False),
        ({"tools": [{"type": "code_interpreter"}]}, False),
        ({"tools": [{"type": "code_execution_20250522"}]}, False),
        ({"tools": [{"type": "computer_use_preview"}]}, False),
        ({"tools": [{"type": "tool of next year"}]}, False),
        ({"tools": "all"}, False),
        ({"mcp_servers": [{"url": "https://example.com"}]}, False),
        ({"conversation": "conv_1"}, False),
        ({"background": True}, False),
        ({"background": False, "conversation": None}, True),
    ],
    ids=str,
)
def test_n2_tools_that_act(parameters: dict[str, Any], pure: bool) -> None:
    """N2: what the server runs may act; functions that the client runs, and searches, do not."""
    assert classify(CHAT, parameters).repeatable is pure


BODY = b'{"model": "m"}'


@pytest.mark.parametrize(
    ("method", "target", "body", "repeatable"),
    [
        ("POST", "/v1/chat/completions", BODY, True),
        ("POST", "/openai/deployments/d/chat/completions?api-version=1", BODY, True),
        ("POST", "/v1/messages?beta=true", BODY, True),
        ("POST", "/v1/responses", b'{"tools": [{"type": "mcp"}]}', False),
        ("POST", "/v1/responses", b'{"background": true}', False),
        ("POST", "/v1/responses", b"[]", False),
        ("POST", "/v1/responses", b"{", False),
        ("POST", "/v1/responses", b"", False),
        ("POST", "/v1/responses", None, False),
        ("POST", "/v1/responses/r/cancel", BODY, False),
        ("POST", "/v1/threads/t/messages", BODY, False),
        ("POST", "/chats/1/messages", BODY, False),
        ("POST", "/v1/agents/completions", BODY, False),
        ("POST", "/v1/messages/batches", BODY, False),
        ("POST", "/v1/audio/transcriptions", None, True),
        ("PATCH", "/v1/chat/completions", BODY, False),
        ("GET", "/v1/models", b"", True),
        ("DELETE", "/v1/files/f", b"", True),
    ],
)
def test_requests(method: str, target: str, body: bytes | None, repeatable: bool) -> None:
    """At an origin that an Api calls a language model, the end of the path names the operation."""
    assert RECOMMENDED.classify(Request(method, "llm.example.com", target, {}, body)).repeatable is repeatable


def test_an_override_of_the_method() -> None:
    """A header that overrides the method leaves the request to RFC 9110."""
    request = Request("POST", "llm.example.com", "/v1/embeddings", {"x-http-method-override": "PATCH"}, BODY)
    assert not RECOMMENDED.classify(request).repeatable

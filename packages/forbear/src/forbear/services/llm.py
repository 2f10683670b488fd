"""The operations of language models in the SDKs of OpenAI and Anthropic: pure, but billed, unless something can act.

They are named by the SDK's own method, never by a path: `/v1/messages` is Anthropic's, and sends an SMS elsewhere.
"""

from collections.abc import Mapping
from typing import Any

from forbear.core.check import is_list, is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety

NAME = "llm"

_OPENAI = "https://developers.openai.com/api/reference/resources/"
_ANTHROPIC = "https://platform.claude.com/docs/en/api/messages/"
OPERATIONS: Mapping[str, str] = {
    "openai.chat.completions.create": f"{_OPENAI}chat",
    "openai.chat.completions.parse": f"{_OPENAI}chat",
    "openai.completions.create": f"{_OPENAI}completions",
    "openai.embeddings.create": f"{_OPENAI}embeddings",
    "openai.moderations.create": f"{_OPENAI}moderations",
    "openai.responses.create": f"{_OPENAI}responses",
    "openai.responses.parse": f"{_OPENAI}responses",
    "openai.images.generate": f"{_OPENAI}images",
    "openai.images.edit": f"{_OPENAI}images",
    "openai.images.create_variation": f"{_OPENAI}images",
    "openai.audio.transcriptions.create": f"{_OPENAI}audio",
    "openai.audio.translations.create": f"{_OPENAI}audio",
    "openai.audio.speech.create": f"{_OPENAI}audio",
    "anthropic.messages.create": f"{_ANTHROPIC}create",
    "anthropic.messages.parse": f"{_ANTHROPIC}create",
    "anthropic.messages.count_tokens": f"{_ANTHROPIC}count_tokens",
    "anthropic.beta.messages.create": f"{_ANTHROPIC}create",
    "anthropic.beta.messages.parse": f"{_ANTHROPIC}create",
    "anthropic.beta.messages.count_tokens": f"{_ANTHROPIC}count_tokens",
}
"""The operations that change nothing but the bill, each with its page."""

_ACTING = ("background", "container", "conversation", "mcp_servers")
"""Parameters that change something, or let something act, if they have a value."""

_READING = ("custom", "file_search", "function", "web_fetch", "web_search")
"""Types of tools that the client runs, or that only read; a version may follow. All others, and new ones, may act."""

_MOST = 1000


def classify(operation: str, parameters: Mapping[str, Any]) -> Judgement:
    """Return the judgement on a call of an SDK: repeatable if it is one of `OPERATIONS`, and nothing in it can act."""
    pure = operation in OPERATIONS and not any(_is_set(parameters.get(name)) for name in _ACTING)
    tools: Any = parameters.get("tools")
    if pure and _is_set(tools):
        pure = is_list(tools) and len(tools) <= _MOST and all(map(_is_reading, tools))
    safety = Safety.ALWAYS if pure else Safety.NEVER
    return Judgement(NAME, operation, safety, repeatable=pure, mutation=not pure)


def _is_set(value: object) -> bool:
    """Return whether a parameter has a value: not None, False, or an SDK's word for "not given"."""
    return value is not None and value is not False and type(value).__name__ not in ("NotGiven", "Omit")


def _is_reading(tool: Any) -> bool:
    if not is_mapping(tool):
        return False
    kind: Any = tool.get("type", "custom")
    return isinstance(kind, str) and any(
        kind == known or kind.startswith((f"{known}_2", f"{known}_preview")) for known in _READING
    )

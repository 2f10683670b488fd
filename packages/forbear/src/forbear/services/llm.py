"""The operations of language models in the SDKs of OpenAI and Anthropic: pure, but billed, unless something can act.

They are named by the SDK's own method, or by the path where an Api says that the origin is one of a language model:
`Api("https://llm.example.com", service="llm")`. A path alone names nothing: `/v1/messages` is Anthropic's, and sends an
SMS elsewhere.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from forbear.core.check import is_list, is_mapping
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request, method_overrides
from forbear.services.rfc9110 import Rfc9110

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
    """Return the judgement on a call of an SDK: repeatable if it is one of `OPERATIONS`, and nothing in it can act.

    The `extra_body` of an SDK counts, too.
    """
    pure = operation in OPERATIONS and not any(_is_set(parameters.get(name)) for name in _ACTING)
    tools: Any = parameters.get("tools")
    if pure and _is_set(tools):
        pure = is_list(tools) and len(tools) <= _MOST and all(map(_is_reading, tools))
    extra: Any = parameters.get("extra_body")
    if pure and _is_set(extra):
        pure = is_mapping(extra) and classify(operation, extra).repeatable
    return _judge(operation, pure)


@lru_cache(maxsize=256)
def _judge(operation: str, pure: bool) -> Judgement:
    safety = Safety.ALWAYS if pure else Safety.NEVER
    return Judgement(NAME, operation, safety, repeatable=pure, mutation=not pure, billed=pure)


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


_BY_PATH = {
    "/chat/completions": "openai.chat.completions.create",
    "/completions": "openai.completions.create",
    "/embeddings": "openai.embeddings.create",
    "/moderations": "openai.moderations.create",
    "/responses": "openai.responses.create",
    "/images/generations": "openai.images.generate",
    "/images/edits": "openai.images.edit",
    "/images/variations": "openai.images.create_variation",
    "/audio/transcriptions": "openai.audio.transcriptions.create",
    "/audio/translations": "openai.audio.translations.create",
    "/audio/speech": "openai.audio.speech.create",
    "/v1/messages": "anthropic.messages.create",
    "/v1/messages/count_tokens": "anthropic.messages.count_tokens",
}
"""The operations by the end of their paths; before it there is the base path of a gateway, or that of a deployment."""

_NOT_WITHIN = frozenset({
    "agents", "assistants", "batches", "containers", "conversations", "evals", "files", "fine_tuning", "responses",
    "threads", "uploads", "vector_stores",
})  # fmt: skip
"""Resources, below which a path with such an end means something else: an agent has tools of its own."""

_FORMS = ("/images/edits", "/images/variations", "/audio/transcriptions", "/audio/translations")
"""The ends of paths whose body is a form, in which nothing can act."""

_LARGEST_BODY = 4 * 1024 * 1024


class Llm(Rfc9110):
    """The service of origins that an Api calls language models; RFC 9110 judges what is none of `OPERATIONS`."""

    __slots__ = ()

    name = NAME

    def classify(self, request: Request) -> Judgement:
        """Return the judgement by the end of the path and the parameters; what cannot be read is never repeated."""
        end = _find_end(request)
        if end is None:
            return super().classify(request)
        parameters: Mapping[str, Any] | None = {} if end in _FORMS else _parse(request.body)
        if parameters is None:
            return Judgement(NAME, _BY_PATH[end], Safety.NEVER)
        return classify(_BY_PATH[end], parameters)


def _find_end(request: Request) -> str | None:
    """Return the end of the path that names the operation of a request, None if it is no operation of these."""
    if request.method != "POST" or method_overrides(request.headers):
        return None
    path = request.target.partition("?")[0]
    end = max((each for each in _BY_PATH if path.endswith(each)), key=len, default=None)
    if end is None or not _NOT_WITHIN.isdisjoint(path.removesuffix(end).split("/")):
        return None
    return end


def _parse(body: bytes | None) -> Mapping[str, Any] | None:
    """Return the parameters in a body of JSON, None if they are not known."""
    if not body or len(body) > _LARGEST_BODY:
        return None
    try:
        parameters: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return parameters if is_mapping(parameters) else None


RECOMMENDED = Llm()

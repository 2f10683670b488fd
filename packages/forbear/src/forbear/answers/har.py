"""HAR files (HTTP archive 1.2): parse recorded requests with their responses, and judge them, worst first.

The file may contain anything; parts of the wrong type are errors or count as missing.
"""

import base64
import json
from collections.abc import Iterable
from typing import Any

from forbear.answers import http
from forbear.answers.answer import reason
from forbear.answers.draft import Draft
from forbear.answers.errors import NoAnswer
from forbear.answers.profile import ProfileChoice
from forbear.core.check import is_list, is_mapping
from forbear.core.dataclass import dataclass
from forbear.core.service import Judgement
from forbear.core.verdict import Effect, Verdict
from forbear.http.request import Request

_CURE = "save it again, as HAR with content"


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """Entry `number` (from 1) of a file: the request and its response; `status` is None without one."""

    number: int
    request: Request
    status: int | None
    headers: dict[str, str]
    body: bytes


def parse(content: bytes, name: str) -> tuple[list[RecordedRequest], int]:
    """Return the HTTP requests in a file called `name`, and the number of other entries; NoAnswer for other files."""
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise NoAnswer(f"{name} is not a HAR file: it is not JSON", _CURE) from None
    entries: Any = _get(document, "log", "entries")
    if not is_list(entries):
        raise NoAnswer(f"{name} is not a HAR file: it has no list log.entries", _CURE)
    requests: list[RecordedRequest] = []
    for number, entry in enumerate(entries, start=1):
        try:
            recorded = _entry(number, entry)
        except NoAnswer as error:
            raise NoAnswer(f"{name}, entry {number}: {error.message}", error.cure) from None
        if recorded is not None:
            requests.append(recorded)
    return requests, len(entries) - len(requests)


def _entry(number: int, entry: Any) -> RecordedRequest | None:
    method, url = _get(entry, "request", "method"), _get(entry, "request", "url")
    if not isinstance(method, str) or not isinstance(url, str):
        raise NoAnswer("it has no request with a method and a url", _CURE)
    if not url[:8].lower().startswith(("http://", "https://")):
        return None
    draft = Draft()
    draft.headers = _headers(_get(entry, "request", "headers"))
    draft.body = _request_body(entry["request"])
    status: Any = _get(entry, "response", "status")
    return RecordedRequest(
        number,
        draft.build(method.upper(), url, is_typed=False),
        status if isinstance(status, int) and 100 <= status < 600 else None,
        _headers(_get(entry, "response", "headers")),
        _bytes(_get(entry, "response", "content")) or b"",
    )


def _get(value: Any, *names: str) -> Any:
    """Follow the names into nested JSON objects; return None if one of them is missing or not in an object."""
    for name in names:
        value = value.get(name) if is_mapping(value) else None
    return value


def _headers(listed: Any) -> dict[str, str]:
    """Return a HAR list of headers as a dict by lower-case names, without the pseudo-headers of HTTP/2."""
    headers: dict[str, str] = {}
    for header in filter(is_mapping, listed if is_list(listed) else ()):
        name, value = str(header.get("name", "")).strip().lower(), str(header.get("value", "")).strip()
        if name and not name.startswith(":"):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _request_body(request: dict[str, Any]) -> bytes | None:
    """Return the body of a HAR request: b"" if its recorded size is 0, None if it is not recorded or broken."""
    if is_mapping(request.get("postData")):
        return _bytes(request["postData"])
    return b"" if request.get("bodySize") == 0 else None


def _bytes(content: Any) -> bytes | None:
    """Return the bytes of a recorded body, a JSON object with the text and its encoding; None if missing or broken."""
    text: Any = _get(content, "text")
    if not isinstance(text, str):
        return None
    if content.get("encoding") != "base64":
        return text.encode(errors="replace")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


GROUPS = {
    "failed": "failed or unknown, and must not be repeated",
    "unguarded": "may be repeated only with a condition, which is missing",
    "unrepeatable": "must not be repeated",
    "repeatable": "may be repeated",
}
"""The groups of requests, worst first, each with a description."""


@dataclass(frozen=True, slots=True)
class JudgedRequest:
    """A recorded request with its judgement, and the verdict on its response: None for a success or no response."""

    recorded: RecordedRequest
    judgement: Judgement
    verdict: Verdict | None

    @property
    def group(self) -> str:
        """The key in `GROUPS`; "failed" for a write that must not be repeated and failed or has no response."""
        judgement = self.judgement
        if judgement.repeatable:
            return "repeatable"
        if judgement.mutation and (self.recorded.status is None or self.verdict is not None):
            return "failed"
        return "unguarded" if judgement.conditions else "unrepeatable"

    @property
    def why(self) -> str:
        """The reason in a few words why it may or must not be repeated."""
        return reason(self.judgement)

    @property
    def in_doubt(self) -> bool:
        """Return whether it is unknown if the request was executed: it has no response, or one that leaves it open."""
        return self.recorded.status is None or (self.verdict is not None and self.verdict.effect is Effect.UNKNOWN)


def judge(recorded: Iterable[RecordedRequest], service: str | None, profile: ProfileChoice) -> list[JudgedRequest]:
    """Judge requests by the `service`, or that of each host; sort them worst first, doubtful failures before others."""
    order = list(GROUPS)
    items = [_judge(item, service, profile) for item in recorded]
    return sorted(items, key=lambda item: (order.index(item.group), item.group == "failed" and not item.in_doubt))


def _judge(recorded: RecordedRequest, service: str | None, profile: ProfileChoice) -> JudgedRequest:
    _, rules = http.policy_for(recorded.request, service, profile)
    judgement = rules.classify(recorded.request)
    status = recorded.status
    verdict = None if status is None else rules.verdict(judgement, status, recorded.headers, lambda: recorded.body)
    return JudgedRequest(recorded, judgement, verdict)

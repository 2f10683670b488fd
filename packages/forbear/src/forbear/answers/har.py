"""HAR files (HTTP archive 1.2): read recorded requests with their responses, judge them, and print them worst first.

The file may contain anything; parts of the wrong type are errors or count as missing.
"""

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from forbear.answers import http
from forbear.answers.draft import Draft
from forbear.answers.tables import either
from forbear.cli.kit.output import BadInput, console
from forbear.cli.kit.profiles import ProfileChoice
from forbear.cli.kit.values import file_content
from forbear.core.check import is_list, is_mapping
from forbear.core.redact import printable
from forbear.core.service import Judgement
from forbear.core.verdict import Effect, Verdict
from forbear.http.request import Request

MAX_SIZE = 256 * 1024 * 1024
"""The largest accepted file, in bytes."""

_CURE = "save it again, as HAR with content"


@dataclass(frozen=True)
class RecordedRequest:
    """Entry `number` (from 1) of a file: the request, and the status, headers and body of its response.

    `status` is None if there was no response.
    """

    number: int
    request: Request
    status: int | None
    headers: dict[str, str]
    body: bytes


def read(name: str) -> tuple[list[RecordedRequest], int]:
    """Return the HTTP requests in a file ("-": stdin), and the number of other entries, such as data: URLs.

    Raises BadInput if the file cannot be read, is larger than `MAX_SIZE` or is no HAR file.
    """
    try:
        document: Any = json.loads(_content(name))
    except (ValueError, RecursionError):
        raise BadInput(f"{name} is not a HAR file: it is not JSON", _CURE) from None
    entries: Any = _get(document, "log", "entries")
    if not is_list(entries):
        raise BadInput(f"{name} is not a HAR file: it has no list log.entries", _CURE)
    requests: list[RecordedRequest] = []
    for number, entry in enumerate(entries, start=1):
        try:
            recorded = _entry(number, entry)
        except BadInput as error:
            raise BadInput(f"{name}, entry {number}: {error.message}", error.hint) from None
        if recorded is not None:
            requests.append(recorded)
    return requests, len(entries) - len(requests)


def _content(name: str) -> bytes:
    try:
        return file_content(name, MAX_SIZE, "save fewer requests, or leave the responses out")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read {name}: {reason}", "name a file that a browser or a proxy saved") from None


def _entry(number: int, entry: Any) -> RecordedRequest | None:
    method, url = _get(entry, "request", "method"), _get(entry, "request", "url")
    if not isinstance(method, str) or not isinstance(url, str):
        raise BadInput("it has no request with a method and a url", _CURE)
    if not url[:8].lower().startswith(("http://", "https://")):
        return None
    draft = Draft()
    draft.headers = _headers(_get(entry, "request", "headers"))
    draft.body = _request_body(entry["request"])
    status: Any = _get(entry, "response", "status")
    return RecordedRequest(
        number,
        draft.build(method.upper(), url),
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
    """Return a HAR list of headers as a dict by lower-case names, without the pseudo-headers of HTTP/2.

    Values of the same name are joined by commas; entries that are no JSON objects are left out.
    """
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


_GROUPS = {
    "failed": ("failed or unknown, and must not be repeated", "yellow"),
    "unguarded": ("may be repeated only with a condition, which is missing", None),
    "unrepeatable": ("must not be repeated", None),
    "repeatable": ("may be repeated", "dim"),
}
"""The groups of listed requests, worst first, each with a description and a style for the terminal."""

_WIDE = 70  # longer requests move the next column to the right


@dataclass(frozen=True)
class JudgedRequest:
    """A recorded request with its judgement, and the verdict on its response: None for a success or no response."""

    recorded: RecordedRequest
    judgement: Judgement
    verdict: Verdict | None

    @property
    def group(self) -> str:
        """The key in `_GROUPS`: "repeatable", or else "failed" for a write that failed or has no response.

        For others it is "unguarded" if a condition would make them repeatable, and "unrepeatable" if none would.
        """
        judgement = self.judgement
        if judgement.repeatable:
            return "repeatable"
        if judgement.mutation and (self.recorded.status is None or self.verdict is not None):
            return "failed"
        return "unguarded" if judgement.conditions else "unrepeatable"

    @property
    def in_doubt(self) -> bool:
        """Return whether it is unknown if the request was executed: it has no response, or one that leaves it open."""
        return self.recorded.status is None or (self.verdict is not None and self.verdict.effect is Effect.UNKNOWN)


def judge(recorded: Iterable[RecordedRequest], service: str | None, profile: ProfileChoice) -> list[JudgedRequest]:
    """Judge the requests, and sort them worst first by group; within "failed", those in doubt come first.

    Otherwise they keep their recorded order. `service` names the service that judges them, None for the one of each
    host.
    """
    order = list(_GROUPS)
    items = [_judge(item, service, profile) for item in recorded]
    return sorted(items, key=lambda item: (order.index(item.group), item.group == "failed" and not item.in_doubt))


def _judge(recorded: RecordedRequest, service: str | None, profile: ProfileChoice) -> JudgedRequest:
    _, rules = http.policy_for(recorded.request, service, profile)
    judgement = rules.classify(recorded.request)
    status = recorded.status
    verdict = None if status is None else rules.verdict(judgement, status, recorded.headers, lambda: recorded.body)
    return JudgedRequest(recorded, judgement, verdict)


def show(items: list[JudgedRequest]) -> None:
    """Print each request on one line to stdout, in the style of its group, and the number of requests in each group."""
    out = console()
    requests = [_request(item) for item in items]
    wide = min(max(map(len, requests), default=0), _WIDE)
    if items:
        out.print(f"status  repeatable   {'request':<{wide}}   operation and reason", style="bold", markup=False)
    for item, request in zip(items, requests, strict=True):
        status = item.recorded.status or "none"
        repeatable = "yes" if item.judgement.repeatable else "no"
        why = f"{item.judgement.operation or 'not known'}: {_why(item.judgement)}"
        line = f"{status!s:<8}{repeatable:<13}{request:<{wide}}   {why}"
        out.print(line, style=_GROUPS[item.group][1], markup=False)
    click.echo(f"{chr(10) if items else ''}{len(items)} request{'' if len(items) == 1 else 's'}")
    for group, (text, _) in _GROUPS.items():
        click.echo(f"{_count(items, group):>5} {text}")


def print_json(items: list[JudgedRequest], profile: str) -> None:
    """Print the requests and the number of them in each group to stdout, as JSON."""
    document = {
        "profile": profile,
        "counts": {"requests": len(items), **{group: _count(items, group) for group in _GROUPS}},
        "requests": [_document(item) for item in items],
    }
    click.echo(json.dumps(document, indent=2))


def _request(item: JudgedRequest) -> str:
    request = item.recorded.request
    return printable(f"{request.method} {request.host}{http.shown_path(request)}")


def _count(items: list[JudgedRequest], group: str) -> int:
    return sum(item.group == group for item in items)


def _why(judgement: Judgement) -> str:
    if judgement.refused is not None:
        return judgement.refused
    if judgement.session and not judgement.repeatable:
        return "part of an upload: query the session, and send the rest"
    if judgement.met is not None:
        return f"safe with {judgement.met}"
    if judgement.repeatable:
        return "a repeat is harmless" if judgement.mutation else "it changes nothing"
    if judgement.conditions:
        return f"only with {either(judgement.conditions)}"
    return "a repeat could do harm"


def _document(item: JudgedRequest) -> dict[str, Any]:
    request, judgement = item.recorded.request, item.judgement
    return {
        "entry": item.recorded.number,
        "group": item.group,
        "request": {"method": request.method, "host": request.host, "path": http.shown_path(request)},
        "status": item.recorded.status,
        "verdict": None if item.verdict is None else item.verdict.kind.value,
        "service": judgement.service,
        "operation": judgement.operation,
        "safety": judgement.safety.value,
        "conditions": list(judgement.conditions),
        "met": judgement.met,
        "repeatable": judgement.repeatable,
        "mutation": judgement.mutation,
        "session": judgement.session,
        "refused": judgement.refused,
        "why": _why(judgement),
    }

"""Reading HTTP archives (HAR 1.2): recorded requests with their replies. It trusts no file, and judges nothing."""

import base64
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forbear.cli.explain.draft import Draft
from forbear.cli.output import BadInput
from forbear.core.untyped import is_list, is_mapping
from forbear.http.request import Request

MAX_SIZE = 256 * 1024 * 1024
"""Larger files are refused, in bytes."""

_HOW = "save it again, as HAR with content"


@dataclass(frozen=True)
class Recorded:
    """Entry `number` (from 1) of a file; `status` is None where there was no reply."""

    number: int
    request: Request
    status: int | None
    headers: dict[str, str]
    body: bytes


def read(name: str) -> tuple[list[Recorded], int]:
    """The HTTP requests in a file, "-" for stdin, and how many entries are none: browsers record data: and wss: too."""
    try:
        document: Any = json.loads(_content(name))
    except (ValueError, RecursionError):
        raise BadInput(f"{name} is no HAR file: it is no JSON", _HOW) from None
    log: Any = document.get("log") if is_mapping(document) else None
    entries: Any = log.get("entries") if is_mapping(log) else None
    if not is_list(entries):
        raise BadInput(f"{name} is no HAR file: it has no list log.entries", _HOW)
    found: list[Recorded] = []
    for number, entry in enumerate(entries, start=1):
        try:
            recorded = _entry(number, entry)
        except BadInput as error:
            raise BadInput(f"{name}, entry {number}: {error.message}", error.hint) from None
        if recorded is not None:
            found.append(recorded)
    return found, len(entries) - len(found)


def _content(name: str) -> bytes:
    try:
        if name == "-":
            content = sys.stdin.buffer.read(MAX_SIZE + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot read {name}: {reason}", "name a file that a browser or a proxy has saved") from None
    if len(content) > MAX_SIZE:
        raise BadInput(f"{name} is larger than {MAX_SIZE >> 20} MiB", "save fewer requests, or leave the replies out")
    return content


def _entry(number: int, entry: Any) -> Recorded | None:
    request: Any = entry.get("request") if is_mapping(entry) else None
    method: Any = request.get("method") if is_mapping(request) else None
    url: Any = request.get("url") if is_mapping(request) else None
    if not isinstance(method, str) or not isinstance(url, str):
        raise BadInput("it is no request with a method and a url", _HOW)
    if not url[:8].lower().startswith(("http://", "https://")):
        return None
    draft = Draft()
    draft.headers = _headers(request.get("headers"))
    draft.body = _sent(request)
    response: Any = entry.get("response")
    reply: dict[str, Any] = response if is_mapping(response) else {}
    status: Any = reply.get("status")
    content: Any = reply.get("content")
    return Recorded(
        number,
        draft.build(method.upper(), url),
        status if isinstance(status, int) and 100 <= status < 600 else None,
        _headers(reply.get("headers")),
        (_bytes(content) if is_mapping(content) else None) or b"",
    )


def _headers(listed: Any) -> dict[str, str]:
    """Headers by lower-case names; those of HTTP/2 that stand for the request line are none."""
    found: dict[str, str] = {}
    for header in _mappings(listed):
        name, value = str(header.get("name", "")).strip().lower(), str(header.get("value", "")).strip()
        if name and not name.startswith(":"):
            found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _mappings(listed: Any) -> Iterable[dict[str, Any]]:
    return [one for one in listed if is_mapping(one)] if is_list(listed) else []


def _sent(request: Any) -> bytes | None:
    """The body of a request, None where it is not at hand."""
    data: Any = request.get("postData")
    if is_mapping(data):
        return _bytes(data)
    return b"" if request.get("bodySize") == 0 else None


def _bytes(content: Any) -> bytes | None:
    """What a recorded body holds, None where that is not there or broken."""
    text: Any = content.get("text")
    if not isinstance(text, str):
        return None
    if content.get("encoding") != "base64":
        return text.encode(errors="replace")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None

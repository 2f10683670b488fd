"""Replies: what came back, or why nothing did, as values and errors of our own. It sends nothing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import aiohttp

from forbear.core.report import attach, report
from forbear.transfer.cloud.body import Body
from forbear.transfer.errors import HttpError, Stalled, WrongReply

_LONGEST_MESSAGE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply that was read whole; `headers` are found by names in lower or upper case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object of JSON; WrongReply where it is none."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WrongReply(f"the server's reply is not JSON: {self.body[:80]!r}") from error
        if not isinstance(found, dict):
            raise WrongReply(f"the server's reply is not JSON with fields: {self.body[:80]!r}")
        return cast("dict[str, Any]", found)


def cause_of(error: aiohttp.ClientError, body: bytes | Body | None, limit: float) -> Exception | None:
    """What was behind the error of a request: a body that cannot be read, or a server that has stalled."""
    if isinstance(body, Body) and body.failure is not None:
        return body.failure
    if isinstance(error, aiohttp.SocketTimeoutError):
        stalled = Stalled(f"the server has not answered for {limit:g} s")
    elif isinstance(error.__cause__, Stalled):
        stalled = error.__cause__
    else:
        return None
    tried = report(error)
    if tried is not None:
        attach(stalled, tried)
    return stalled


async def refusal(what: str, response: aiohttp.ClientResponse) -> HttpError:
    """The error for a reply of 300 or more; the message is the server's own, where its body has one."""
    try:
        body = await response.content.read(_LONGEST_MESSAGE)
    except (aiohttp.ClientError, TimeoutError):
        body = b""
    error = HttpError(what, response.status, _message(body), _lowered(response))
    tried = report(response)
    if tried is not None:
        attach(error, tried)
    return error


def _lowered(response: aiohttp.ClientResponse) -> dict[str, str]:
    """The headers of a reply by lower-case names."""
    return {name.lower(): value for name, value in response.headers.items()}


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""

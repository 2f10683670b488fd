"""Replies: what came back, or why nothing did, as values and errors of our own. It sends nothing."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from forbear.transfer.errors import HttpError, Stalled, WrongReply
from forbear.transfer.storage.bounds import Deadline, read_whole
from forbear.transfer.wire.errors import WireError
from forbear.transfer.wire.response import Response

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


async def refusal(what: str, response: Response, seconds: float) -> HttpError:
    """Return the error for a response of 300 or more; the message is the server's own, where its body has one."""
    body = b""
    with suppress(WireError, Stalled, WrongReply):
        body = await read_whole(response, _LONGEST_MESSAGE, Deadline(seconds))
    return HttpError(what, response.status, _message(body), response.headers)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""

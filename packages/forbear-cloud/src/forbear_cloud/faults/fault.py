"""Define faults: what goes wrong, before or after the request takes effect, and for which requests."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar, Unpack, cast

from forbear_cloud.faults import actions
from forbear_cloud.faults.actions import When
from forbear_cloud.faults.parameters import (
    FaultMatch,
    Matching,
    check_match,
    check_word,
    fitting_match,
    flag,
    number,
    optional_text,
    whole,
)
from forbear_cloud.http.messages import Headers
from forbear_cloud.operations import QUERIES, READS, SENDS, WRITES
from forbear_cloud.routing import JOBS, ON_OBJECTS
from forbear_cloud.storage.sessions import CHUNK

_Made = TypeVar("_Made")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_WORDS_BEGIN = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FRAMING = ("content-length", "transfer-encoding", "connection")
_ACTIONS = (
    "status", "reset", "close", "truncate", "stall", "partial", "expire_session", "rewind", "corrupt_upload",
    "ignore_range", "other_range", "refuse_range", "replace_object", "delete_object", "corrupt", "delay", "lag",
    "long_running",
)  # fmt: skip

_CREATES = tuple(f"iam.projects.{kind}.create" for kind in ("serviceAccounts", "serviceAccounts.keys", "roles"))


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong with a request.

    Each class method returns one kind of fault. It takes the parameters of `Matching`, which choose the requests, in
    addition to its own. A status, reset or close with `when="before"` keeps the request from having an effect. With
    `when="after"` the request takes effect, and its response is lost or replaced. The other kinds say themselves what
    happens. Example: see `Cloud`.
    """

    action: actions.Action
    when: When
    match: FaultMatch

    def __post_init__(self) -> None:
        check_word("when", self.when, ("before", "after"))

    @property
    def name(self) -> str:
        """Return a short name for the log: the action and `when`, such as "status 503 after" or "delay before"."""
        match self.action:
            case actions.RespondWith(code=code):
                return f"status {code} {self.when}"
            case other:
                return f"{_WORDS_BEGIN.sub('_', type(other).__name__).lower()} {self.when}"

    @classmethod
    def status(
        cls,
        code: int,
        *,
        when: When = "before",
        retry_after: float | str | None = None,
        headers: Mapping[str, str] | None = None,
        reason: str | None = None,
        message: str | None = None,
        body: str | None = None,
        **match: Unpack[Matching],
    ) -> "Fault":
        """Respond with the status `code`, from 300 to 599, before or after the request takes effect (`when`).

        `retry_after` is a number of seconds or an HTTP-date. `headers` are added. `reason` and `message` go into the
        API's JSON; a `body` replaces it.
        """
        whole("code", code, minimum=300, maximum=599)
        fields = _headers(headers)
        if retry_after is not None:
            fields = (*fields, ("Retry-After", _retry_after(retry_after)))
        text = (optional_text("reason", reason), optional_text("message", message))
        if body is not None and not isinstance(body, str):
            raise TypeError(f"`body` must be a string or None, got {body!r}")
        return cls(actions.RespondWith(code, fields, *text, body), when, check_match(match))

    @classmethod
    def reset(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Reset the connection (TCP RST) without a response, before or after the request takes effect (`when`)."""
        return cls(actions.Reset(), when, check_match(match))

    @classmethod
    def close(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Close the connection (TCP FIN) without a response, before or after the request takes effect (`when`)."""
        return cls(actions.Close(), when, check_match(match))

    @classmethod
    def truncate(
        cls, keep: int = 0, *, share: float | None = None, reset: bool = False, **match: Unpack[Matching]
    ) -> "Fault":
        """Send the headers with the full Content-Length, but only `keep` bytes of the body, then close the connection.

        The request takes effect. `share` instead of `keep` is a part of the body, from 0 to 1. With `reset` the
        connection ends with an RST. ValueError for an operation whose response has no body.
        """
        whole("keep", keep)
        if share is not None:
            number("share", share, maximum=1)
            if keep:
                raise ValueError(f"`share` and `keep` exclude each other, got share={share!r} and keep={keep!r}")
        return cls(
            actions.Truncate(keep, share, flag("reset", reset)), "after", check_match(_on_a_body(match, "truncate"))
        )

    @classmethod
    def stall(cls, keep: int = 0, *, limit: float = 60, **match: Unpack[Matching]) -> "Fault":
        """Send `keep` bytes of the body, then nothing until the client leaves or `limit` seconds pass (default 60).

        The request takes effect. ValueError for an operation whose response has no body.
        """
        action = actions.Stall(whole("keep", keep), number("limit", limit))
        return cls(action, "after", check_match(_on_a_body(match, "stall")))

    @classmethod
    def partial(cls, keep: int, *, status: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Store only the first `keep` bytes of a chunk of a resumable upload, then reset the connection.

        With a `status` from 400 to 599, or 308, respond with it instead. A 308 says in `Range` which bytes the service
        has; the header is missing if it has none. If the chunk is not longer than `keep`, the usual response takes the
        place of a 308.
        """
        if status is not None and status != 308:
            whole("status", status, minimum=400, maximum=599)
        return cls(actions.Partial(whole("keep", keep), status), "after", fitting_match(match, "partial", SENDS))

    @classmethod
    def expire_session(cls, *, status: int = 410, **match: Unpack[Matching]) -> "Fault":
        """End the upload session that a chunk belongs to; it responds with `status` (404 or 410) from this chunk on.

        With the operation of a status query in `operation`, the fault applies to the query instead.
        """
        if status not in (404, 410):
            raise ValueError(f"`status` must be 404 or 410, as for a session that is gone, got {status!r}")
        steps = (*SENDS, *QUERIES)
        return cls(actions.ExpireSession(status), "before", fitting_match(match, "expire_session", steps, SENDS))

    @classmethod
    def rewind(cls, to: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Make an upload session lose bytes that it has acknowledged: it keeps the first `to`, and responds with 308.

        The fault applies to a chunk, whose bytes are lost too, or to the status query named in `operation`. `to` must
        be a multiple of 256 KiB, as in the real service. A session that is finished, or has at most `to` bytes, loses
        nothing and responds as usual.
        """
        if whole("to", to) % CHUNK:
            raise ValueError(f"`to` must be a multiple of {CHUNK} (256 KiB), as in the service, got {to!r}")
        return cls(actions.Rewind(to), "before", fitting_match(match, "rewind", (*SENDS, *QUERIES), SENDS))

    @classmethod
    def corrupt_upload(cls, at: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Flip all bits of byte `at` (from 0) of an upload, or of a chunk of one, before it is stored.

        In a multipart upload the byte is one of the media, not of the metadata. A shorter upload stays as it is.
        """
        return cls(actions.CorruptUpload(whole("at", at)), "before", fitting_match(match, "corrupt_upload", WRITES))

    @classmethod
    def ignore_range(cls, **match: Unpack[Matching]) -> "Fault":
        """Respond to a read with a Range header with 200 and the whole object."""
        return cls(actions.IgnoreRange(), "before", _match_ranges(match, "ignore_range"))

    @classmethod
    def other_range(cls, first: int, last: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Respond to a read with a Range header with 206 and other bytes: from `first` to `last` (None: to the end)."""
        action = actions.OtherRange(whole("first", first), None if last is None else whole("last", last, minimum=first))
        return cls(action, "before", _match_ranges(match, "other_range"))

    @classmethod
    def refuse_range(cls, **match: Unpack[Matching]) -> "Fault":
        """Respond to a read with a Range header with 416, as if the range began beyond the end."""
        return cls(actions.RefuseRange(), "before", _match_ranges(match, "refuse_range"))

    @classmethod
    def replace_object(
        cls, content: bytes | str | None = None, *, when: When = "before", **match: Unpack[Matching]
    ) -> "Fault":
        """Replace the object that a request is about, as another client would, right before or right after the request.

        The new generation has this `content`, by default the old one with every bit flipped, so that only the length is
        the same. A missing object is created. The journal does not show it. For a copy, the object is the source.
        """
        if isinstance(content, str):
            content = content.encode()
        if content is not None and not isinstance(content, bytes):
            raise TypeError(f"`content` must be bytes, a string or None, got {content!r}")
        return cls(actions.ReplaceObject(content), when, fitting_match(match, "replace_object", ON_OBJECTS))

    @classmethod
    def delete_object(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Delete the object that a request is about, as another client would, right before or right after the request.

        Nothing happens if it does not exist, or if a hold or its retention forbids it. The journal does not show it.
        For a copy, the object is the source.
        """
        return cls(actions.DeleteObject(), when, fitting_match(match, "delete_object", ON_OBJECTS))

    @classmethod
    def corrupt(cls, at: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Flip all bits of byte `at` (from 0) of the response body; a shorter body stays as it is.

        ValueError for an operation whose response has no body.
        """
        return cls(actions.Corrupt(whole("at", at)), "after", check_match(_on_a_body(match, "corrupt")))

    @classmethod
    def delay(cls, seconds: float, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Wait so many seconds before the request takes effect, or with `when="after"` before the response is sent."""
        return cls(actions.Delay(number("seconds", seconds)), when, check_match(match))

    @classmethod
    def long_running(cls, polls: int, *, error: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Make the long-running operation that a request of Memorystore starts end only at its `polls`-th poll.

        A poll is a read of the operation or of the resource. With `error`, a code of google.rpc such as 13 (INTERNAL),
        the operation fails. `operation` is "redis.projects.locations.instances.create" by default.
        """
        if error is not None:
            whole("error", error, minimum=1, maximum=16)
        checked = fitting_match(match, "long_running", JOBS, JOBS[:1])
        return cls(actions.LongRunning(whole("polls", polls, minimum=1), error), "after", checked)

    @classmethod
    def lag(cls, reads: int, **match: Unpack[Matching]) -> "Fault":
        """Hide the account, key or role that a request of IAM creates: its first `reads` reads respond with 404.

        `operation` must be a create operation of IAM, by default "iam.projects.serviceAccounts.create".
        """
        action = actions.Lag(whole("reads", reads, minimum=1))
        return cls(action, "after", fitting_match(match, "lag", _CREATES, _CREATES[:1]))

    @classmethod
    def from_json(cls, value: object) -> "Fault":
        """Read a fault such as {"action": "status", "code": 503}: the name of a class method here, and its parameters.

        The parameters of `Matching` are allowed, too. TypeError or ValueError for anything wrong.
        """
        fields = fields_of(value)
        make: Callable[..., Fault] = getattr(cls, check_word("action", fields.get("action"), _ACTIONS))
        return call_with_json(make, fields)


def fields_of(value: object) -> Mapping[str, object]:
    """Return `value` if it is a JSON object, that is a mapping; TypeError for any other value."""
    if not isinstance(value, Mapping):
        raise TypeError(f"a fault must be a JSON object, got {value!r}")
    return cast("Mapping[str, object]", value)


def call_with_json(make: Callable[..., _Made], fields: Mapping[str, object]) -> _Made:
    """Call `make` with the fields of a JSON object except "action" as keyword arguments; return its result.

    TypeError for missing parameters, and for fields that are neither parameters of `make` nor of `Matching`.
    """
    arguments = {name: value for name, value in fields.items() if name != "action"}
    own = [each for each in inspect.signature(make).parameters.values() if each.kind is not each.VAR_KEYWORD]
    known = {*(each.name for each in own), *Matching.__annotations__}
    for name in arguments:
        if name not in known:
            raise TypeError(f"`{name}` is not a parameter of {make.__name__!r}; it takes {', '.join(sorted(known))}")
    for each in own:
        if each.default is each.empty and each.name not in arguments:
            raise TypeError(f"`{each.name}` is missing: {make.__name__!r} needs it")
    return make(**arguments)


def _retry_after(value: object) -> str:
    if isinstance(value, str):
        return value
    seconds = number("retry_after", value)
    return str(int(seconds) if seconds.is_integer() else seconds)


def _on_a_body(match: Matching, action: str) -> Matching:
    operation = match.get("operation")
    if isinstance(operation, str) and operation.endswith((".delete", ".start", ".cancel", ".head", ".resumable")):
        raise ValueError(
            f"`operation` {operation} has no response body for {action!r}: use close, reset or delay there"
        )
    return match


def _match_ranges(match: Matching, action: str) -> FaultMatch:
    """Check the options and return the match for reads of objects that have a Range header; `action` is for errors."""
    checked = fitting_match(match, action, READS)
    return replace(checked, headers=(*checked.headers, ("range", "=")))


def _headers(value: object) -> Headers:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise TypeError(f"`headers` must map names to values, got {value!r}")
    pairs = tuple(cast("Mapping[object, object]", value).items())
    for name, text in pairs:
        if not isinstance(name, str) or not isinstance(text, str) or not _HEADER_NAME.fullmatch(name):
            raise TypeError(f"`headers` must map header names to strings, got {name!r}: {text!r}")
        if name.lower() in _FRAMING:
            raise ValueError(
                f"`headers` must leave {name} to the server: use truncate, close or reset to break a response"
            )
    return cast("Headers", pairs)

"""Faults: an action, the moment it strikes and the requests it meets, checked when defined; carries nothing out."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Unpack, cast

from forbear.testing.cloud.faults import actions
from forbear.testing.cloud.faults.checks import flag, number, one_of, optional_text, whole
from forbear.testing.cloud.faults.matching import FaultMatch, Matching, checked_match, fitting_match
from forbear.testing.cloud.http.messages import Headers
from forbear.testing.cloud.operations import JOBS, ON_OBJECTS, QUERIES, READS, SENDS, WRITES
from forbear.testing.cloud.storage.sessions import CHUNK

When = Literal["before", "after"]
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_WORDS_BEGIN = re.compile(r"(?<=[a-z])(?=[A-Z])")
_FRAMING = ("content-length", "transfer-encoding", "connection")
_ACTIONS = (
    "status",
    "reset",
    "close",
    "truncate",
    "stall",
    "partial",
    "expire_session",
    "rewind",
    "corrupt_upload",
    "ignore_range",
    "other_range",
    "refuse_range",
    "replace_object",
    "delete_object",
    "corrupt",
    "delay",
    "lag",
    "long_running",
)

_CREATES = tuple(f"iam.projects.{kind}.create" for kind in ("serviceAccounts", "serviceAccounts.keys", "roles"))


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong; made by the class methods, each of which takes the parameters of `Matching` too.

    With `when="before"` the request has no effect. With `when="after"` it takes effect, and its response is lost or
    replaced.
    """

    action: actions.Action
    when: When
    match: FaultMatch

    @property
    def name(self) -> str:
        """A short name for the log, such as "status 503 after"."""
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
        """Answer with a status; `retry_after` in seconds or as an HTTP-date, `body` instead of the API's JSON."""
        whole("code", code, minimum=300, maximum=599)
        sent = _headers(headers)
        if retry_after is not None:
            sent = (*sent, ("Retry-After", _retry_after(retry_after)))
        text = (optional_text("reason", reason), optional_text("message", message))
        if body is not None and not isinstance(body, str):
            raise TypeError(f"`body` must be a string or None, got {body!r}")
        return cls(actions.RespondWith(code, sent, *text, body), _when(when), checked_match(match))

    @classmethod
    def reset(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Break the connection with a TCP RST."""
        return cls(actions.Reset(), _when(when), checked_match(match))

    @classmethod
    def close(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Close the connection without a response."""
        return cls(actions.Close(), _when(when), checked_match(match))

    @classmethod
    def truncate(
        cls, keep: int = 0, *, share: float | None = None, reset: bool = False, **match: Unpack[Matching]
    ) -> "Fault":
        """Send the headers with the full Content-Length but only `keep` bytes (or a `share`, 0 to 1) of the body."""
        whole("keep", keep)
        if share is not None:
            number("share", share, maximum=1)
            if keep:
                raise ValueError(f"`share` and `keep` exclude each other, got share={share!r} and keep={keep!r}")
        return cls(
            actions.Truncate(keep, share, flag("reset", reset)), "after", checked_match(_on_a_body(match, "truncate"))
        )

    @classmethod
    def stall(cls, keep: int = 0, *, limit: float = 60, **match: Unpack[Matching]) -> "Fault":
        """Send `keep` bytes of the body, then hang until the client goes away or `limit` seconds pass."""
        action = actions.Stall(whole("keep", keep), number("limit", limit))
        return cls(action, "after", checked_match(_on_a_body(match, "stall")))

    @classmethod
    def partial(cls, keep: int, *, status: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Keep the first `keep` bytes of a chunk sent to an upload session, then RST (or answer with `status`).

        With `status=308` the service says how much it has: in `Range`, which is missing when that is nothing.
        """
        if status is not None and status != 308:
            whole("status", status, minimum=400, maximum=599)
        return cls(actions.Partial(whole("keep", keep), status), "after", fitting_match(match, "partial", SENDS))

    @classmethod
    def expire_session(cls, *, status: int = 410, **match: Unpack[Matching]) -> "Fault":
        """Forget the session of a chunk (or, if `operation` says so, of a query): 404 or 410 from then on."""
        if status not in (404, 410):
            raise ValueError(f"`status` must be 404 or 410, as the service answers for a session gone, got {status!r}")
        checked = fitting_match(match, "expire_session", (*SENDS, *QUERIES), SENDS)
        return cls(actions.ExpireSession(status), "before", checked)

    @classmethod
    def rewind(cls, to: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Have an upload session lose bytes that it had acknowledged: it keeps `to` of them, and answers 308.

        It strikes at a chunk, whose bytes are lost too, or, if `operation` says so, at a query. The service keeps
        multiples of 256 KiB. A session that is finished, or has no more than that, loses nothing.
        """
        if whole("to", to) % CHUNK:
            raise ValueError(f"`to` must be a multiple of {CHUNK} (256 KiB), as the service keeps, got {to!r}")
        return cls(actions.Rewind(to), "before", fitting_match(match, "rewind", (*SENDS, *QUERIES), SENDS))

    @classmethod
    def corrupt_upload(cls, at: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Flip the bits of byte `at` of what an upload, or a chunk of one, brings, before it is stored.

        In a multipart upload it is the media that is meant, not the metadata.
        """
        return cls(actions.CorruptUpload(whole("at", at)), "before", fitting_match(match, "corrupt_upload", WRITES))

    @classmethod
    def ignore_range(cls, **match: Unpack[Matching]) -> "Fault":
        """Send the whole object with 200 where a range was asked for."""
        return cls(actions.IgnoreRange(), "before", _ranged(match, "ignore_range"))

    @classmethod
    def other_range(cls, first: int, last: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Send the range from byte `first` to `last` (None: to the end) with 206 where another was asked for."""
        action = actions.OtherRange(whole("first", first), None if last is None else whole("last", last, minimum=first))
        return cls(action, "before", _ranged(match, "other_range"))

    @classmethod
    def refuse_range(cls, **match: Unpack[Matching]) -> "Fault":
        """Answer 416 where a range was asked for, as if it lay beyond the end."""
        return cls(actions.RefuseRange(), "before", _ranged(match, "refuse_range"))

    @classmethod
    def replace_object(
        cls, content: bytes | str | None = None, *, when: When = "before", **match: Unpack[Matching]
    ) -> "Fault":
        """Have somebody else write the object that a request is about, just before the request or just after it.

        The new generation has `content`, by default the old one with every bit flipped: as long, but all different.
        It is no effect of the client's, and so not in the journal. The object of a copy is its source.
        """
        if isinstance(content, str):
            content = content.encode()
        if content is not None and not isinstance(content, bytes):
            raise TypeError(f"`content` must be bytes, a string or None, got {content!r}")
        checked = fitting_match(match, "replace_object", ON_OBJECTS)
        return cls(actions.ReplaceObject(content), _when(when), checked)

    @classmethod
    def delete_object(cls, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Have somebody else delete the object that a request is about, just before the request or just after it.

        It is no effect of the client's, and so not in the journal.
        """
        return cls(actions.DeleteObject(), _when(when), fitting_match(match, "delete_object", ON_OBJECTS))

    @classmethod
    def corrupt(cls, at: int = 0, **match: Unpack[Matching]) -> "Fault":
        """Flip the bits of byte `at` of the body sent."""
        return cls(actions.Corrupt(whole("at", at)), "after", checked_match(_on_a_body(match, "corrupt")))

    @classmethod
    def delay(cls, seconds: float, *, when: When = "before", **match: Unpack[Matching]) -> "Fault":
        """Wait before acting, or (`when="after"`) between acting and responding."""
        return cls(actions.Delay(number("seconds", seconds)), _when(when), checked_match(match))

    @classmethod
    def long_running(cls, polls: int, *, error: int | None = None, **match: Unpack[Matching]) -> "Fault":
        """Have the long-running operation of Memorystore that a request starts end at its `polls`th poll.

        With `error`, a code of google.rpc such as 13 (INTERNAL), it fails. A poll is a read of the operation or of the
        resource. `operation` is "redis.projects.locations.instances.create" unless it names another.
        """
        if error is not None:
            whole("error", error, minimum=1, maximum=16)
        checked = fitting_match(match, "long_running", JOBS, JOBS[:1])
        return cls(actions.LongRunning(whole("polls", polls, minimum=1), error), "after", checked)

    @classmethod
    def lag(cls, reads: int, **match: Unpack[Matching]) -> "Fault":
        """Hide the account, key or role that a create request of IAM makes from its first `reads`: they answer 404.

        `operation` is "iam.projects.serviceAccounts.create" unless it names another create operation of IAM.
        """
        checked = fitting_match(match, "lag", _CREATES, _CREATES[:1])
        return cls(actions.Lag(whole("reads", reads, minimum=1)), "after", checked)

    @classmethod
    def from_json(cls, value: object) -> "Fault":
        """Read {"action": "status", "code": 503, ...}: the name of a class method here, and its parameters."""
        if not isinstance(value, Mapping):
            raise TypeError(f"a fault must be a JSON object, got {value!r}")
        given = dict(cast("Mapping[str, object]", value))
        action = one_of("action", given.pop("action", None), _ACTIONS)
        make: Callable[..., Fault] = getattr(cls, action)
        own = {
            name: each for name, each in inspect.signature(make).parameters.items() if each.kind is not each.VAR_KEYWORD
        }
        known = own.keys() | Matching.__annotations__.keys()
        for name in given:
            if name not in known:
                raise TypeError(f"`{name}` is not a parameter of {action!r}; it takes {', '.join(sorted(known))}")
        for name, each in own.items():
            if each.default is each.empty and name not in given:
                raise TypeError(f"`{name}` is missing: {action!r} needs it")
        return make(**given)


def _when(value: object) -> When:
    return cast("When", one_of("when", value, ("before", "after")))


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


def _ranged(match: Matching, action: str) -> FaultMatch:
    """The reads that ask for a range."""
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

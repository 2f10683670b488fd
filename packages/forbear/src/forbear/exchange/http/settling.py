"""The option `settle` of HTTP adapters: after a conflict that may be of one's own making, a read says what was done.

`find_read_back` returns the reads, if the user's word and the table allow any. The adapter's loop sends them.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from forbear.core.check import is_mapping
from forbear.core.record import Record
from forbear.core.verdict import PERMANENT
from forbear.exchange.call_state import check_word
from forbear.http.patterns import covers, patterns
from forbear.http.request import OVERRIDES, Request, identify, is_signed, join_headers
from forbear.http.status import reason
from forbear.http.vouch import check_flag
from forbear.run.doubt import leave_same_unknown, was_left_unknown
from forbear.run.failure import DetailedFailure
from forbear.run.scope import OwnWrites, open_scopes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from forbear.exchange.http.exchange import Exchange
    from forbear.run.state import Run
    from forbear.services.cloud_storage.settling import Mine, Reading

    Settle = bool | str | Iterable[str] | Callable[[Request], bool] | Mine

LONGEST = 60.0
"""The seconds that a read may take under a policy without a timeout."""

_OF_THE_WRITE = ("content-", "if-", "x-upload-", "x-goog-copy-source-", "x-goog-if-")
_HEADERS = ("transfer-encoding", "expect", "range", "x-goog-hash", "x-goog-gcs-idempotency-token", *OVERRIDES)
"""The headers of a write that its reads do not have, by the beginning of their names, and by their names."""


_OF_THE_BODY = ("content-type", "content-length", "content-encoding", "transfer-encoding", "etag")


class SettleWord(Record):
    """The user's word on what settles a doubt, from the option `settle` of an adapter.

    - True: the state counts, whoever made it. Patterns, or a function of the `Request`, limit that to some requests.
    - A function `mine(sent, read)` of the resource that was sent and the one that was read: whether they are the same
      write. Then only its answer counts.
    """

    __slots__ = ("settle", "mine", "_covers", "_patterns")

    settle: "Any"
    mine: "Any"
    _covers: "Callable[[Any], bool] | None"
    _patterns: "tuple[Any, ...]"

    _read: "Callable[..., tuple[Any, ...]]" = staticmethod(patterns)
    _is_listed: "Callable[[Any, Any], bool]" = staticmethod(covers)

    def __init__(self, settle: "Any") -> None:
        check_word("settle", settle)
        mine = covers = None
        if callable(settle):
            known: Any = settle
            if _takes(known, 2) is _takes(known, 1):
                raise TypeError(
                    "`settle` must take the resource that was sent and the one that was read, or the request alone; "
                    f"got {settle!r}"
                )
            mine, covers = (known, None) if _takes(known, 2) else (None, known)
        listed = () if callable(settle) or isinstance(settle, bool) else self._read(settle, "settle")
        self._set(settle=settle, mine=mine, _covers=covers, _patterns=listed)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("settle",)

    def covers(self, request: "Any") -> bool:
        """Return whether the user's word applies to a request; TypeError if a function of the user returns no bool."""
        if self._covers is not None:
            return check_flag(self._covers(request), "settle")
        return self.settle is True or self.mine is not None or self._is_listed(self._patterns, request)


def _takes(function: "Callable[..., Any]", count: int) -> bool:
    from inspect import signature

    try:
        signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


class ReadBack:
    """The reads that settle one request: their `targets`, `headers` and `deadline` (on the clock of the runtime)."""

    __slots__ = ("_headers", "_mine", "_operation", "_read", "_request", "deadline", "headers", "targets")

    def __init__(
        self, operation: str, request: Request, mine: "Mine | None", places: tuple[str, ...], end: float
    ) -> None:
        self.targets = places
        self.headers = {
            name: value
            for name, value in request.headers.items()
            if name not in _HEADERS and not name.startswith(_OF_THE_WRITE)
        }
        self.deadline = end
        self._operation = operation
        self._request = request
        self._mine = mine
        self._read: list[Reading] = []
        self._headers: dict[str, str] = {}

    def add(self, status: int, headers: "Mapping[str, str]", content: bytes | None) -> None:
        """Add the response to the next read; `content` is None if it was too long to be read."""
        self._headers = join_headers(headers)
        from json import loads  # only after a conflict

        from forbear.services.cloud_storage.settling import Reading

        resource: Any = None
        with suppress(ValueError, RecursionError):
            resource = loads(content or b"null")
        self._read.append(Reading(status, resource if is_mapping(resource) else None))

    def settle(self) -> tuple[int, dict[str, str], bytes] | None:
        """Return the status, headers and body for the caller, None if it is not proven that the request was executed.

        The headers are those of the last read.
        """
        from forbear.services.cloud_storage.settling import Finding, settle

        answer = settle(self._operation, self._request, self._read, self._mine)
        if answer.finding is not Finding.DONE:
            return None
        headers = {name: value for name, value in self._headers.items() if name not in _OF_THE_BODY}
        if answer.body:
            headers |= {"content-type": "application/json; charset=UTF-8", "content-length": str(len(answer.body))}
        return answer.status, headers, answer.body


def find_read_back(word: SettleWord, exchange: "Exchange", status: int) -> ReadBack | None:
    """Return the reads that settle the request of `exchange` after a response with this status, None without any.

    None unless an earlier attempt of this call, or of a run around it, sent the same request with an unknown outcome,
    to which the response may be due. None too for a signed URL, a write of `forbear.update`, and if no time is left.
    """
    from forbear.services.cloud_storage.settling import can_settle, targets  # loads the table

    judgement, request, run = exchange.judgement, exchange.request, exchange.run
    if status not in judgement.maybe_done or judgement.session:
        return None
    if not is_in_doubt(run, identify(request)):
        return None
    if not can_settle(judgement) or is_signed(request.target, request.headers.get("authorization", "")):
        return None
    if next(open_scopes(OwnWrites), None) is not None or not word.covers(request):
        return None
    places = targets(judgement.operation or "", request, word.mine)
    now, plan = exchange.runtime.monotonic(), exchange.policy
    ends = [now + (plan.attempt_timeout or LONGEST)]
    if plan.limits.timeout is not None:
        ends.append(exchange.started + plan.limits.timeout)
    if not places or min(ends) <= now:
        return None
    return ReadBack(judgement.operation or "", request, word.mine, places, min(ends))


def is_in_doubt(run: "Run | None", same: object) -> bool:
    """Return whether an earlier attempt of a `run`, or of one around it, left a request in doubt."""
    return (run is not None and run.in_doubt) or was_left_unknown(same)


def leave_unknown(exchange: "Exchange") -> None:
    """Note for the outermost run around a request that its outcome is unknown, if it is."""
    if exchange.run is None or exchange.run.in_doubt:
        leave_same_unknown(identify(exchange.request))


def end_settled(exchange: "Exchange", status: int, headers: "Mapping[str, str]") -> None:
    """End the run with a success: reads showed that an earlier attempt did what a response is in conflict with.

    `status` and `headers` are those of that response.
    """
    run = exchange.run or exchange.begin_run()
    details = exchange.details(status, headers)
    end_run(run, DetailedFailure(PERMANENT, name=f"HTTP {status}", text=reason(status), details=details))


def end_run(run: "Run", conflict: DetailedFailure) -> None:
    """End a run with a success after a `conflict` with its own work."""
    run.settle(conflict)
    if run.spending is not None:
        run.spending.succeeded(retried=run.attempt > 1)

"""Vouching: the user's word that a request may be executed twice, or that a status means it was not executed.

The tables judge strictly. `vouched` raises their judgement where the user said so for the method and origin of a
request, by patterns such as "POST https://api.example.com/v1/search*" or by a predicate.
"""

from collections.abc import Iterable

from forbear.core.record import Record
from forbear.http.patterns import Pattern, covers, is_for_its_host, origin_of, patterns, suggested
from forbear.http.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forbear.core.service import Judgement
    from forbear.http.patterns import Origin

    Safe = str | Iterable[str] | Callable[[Request], bool]
    Refusals = Iterable[int] | Callable[[int, Mapping[str, str]], bool]
    NotExecuted = Mapping[str, Refusals]


class Vouch(Record):
    """The user's word for one adapter, from its options `safe` and `not_executed`.

    - `safe`: the requests that may be executed twice. A pattern, several, or a function that takes the `Request`.
    - `not_executed`: the responses by which an origin refuses requests before it executes them, by origin. Statuses, or
      a function that takes the status and the headers (lower-case names): {"https://api.example.com": [429]}.

    `patterns` and `refusals` follow from them. TypeError or ValueError for wrong ones.
    """

    __slots__ = ("safe", "not_executed", "patterns", "refusals")

    safe: "tuple[str, ...] | Callable[[Request], bool]"
    not_executed: "NotExecuted"
    patterns: "tuple[Pattern, ...]"
    refusals: "Mapping[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]]"

    def __init__(self, safe: "Safe" = (), not_executed: "NotExecuted | None" = None) -> None:
        listed = () if callable(safe) else patterns(safe)
        refusals = {} if not_executed is None else _refusals_by_origin(not_executed)
        self._set(safe=safe if callable(safe) else tuple(pattern.text for pattern in listed))
        self._set(not_executed=not_executed or {}, patterns=listed, refusals=refusals)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("safe", "not_executed")

    def is_refusal(self, judgement: "Judgement", request: Request, status: int, headers: "Mapping[str, str]") -> bool:
        """Return whether a response (status of 400 or more) means that the request was not executed.

        Never for batches, of which a part may have been executed, and for requests of upload sessions.
        """
        refusals = self.refusals.get(request.origin) if self.refusals else None
        if refusals is None or judgement.refused is not None or judgement.session or not is_for_its_host(request):
            return False
        if not callable(refusals):
            return status in refusals
        return _flag("not_executed", refusals(status, headers))


def vouched(judgement: "Judgement", request: Request, vouch: Vouch) -> "Judgement":
    """Return the judgement, repeatable and `vouched` if the user vouches for the request; else return it as it is.

    A vouch only ever raises `repeatable`. It does not apply to batches and the like, which are refused, nor to requests
    of upload sessions. TypeError if a function of the user returns no bool.
    """
    safe = vouch.safe
    if safe == () or judgement.repeatable or judgement.refused is not None or judgement.session:
        return judgement
    covered = covers(vouch.patterns, request) if isinstance(safe, tuple) else _flag("safe", safe(request))
    return judgement.replace(repeatable=True, vouched=True) if covered else judgement


def option_for(request: Request) -> str:
    """Return the option by which to vouch for a request, with the patterns for it as they are written in Python."""
    listed = [f'"{pattern}"' for pattern in suggested(request)]
    if not listed:
        return "a function of the request as `safe`"
    safe = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return f"safe={safe}"


def _flag(parameter: str, answer: object) -> bool:
    """Return the answer of the user's function for `parameter`; TypeError if it is no bool."""
    if not isinstance(answer, bool):
        raise TypeError(f"`{parameter}` must return True or False, got {answer!r}")
    return answer


def _refusals_by_origin(
    listed: "NotExecuted",
) -> "dict[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]]":
    """Return `not_executed` with origins as in `Request.origin`; TypeError or ValueError for wrong ones."""
    rule = '`not_executed` must map origins to statuses, such as {"https://api.example.com": [429]}'
    try:
        items: list[tuple[object, Refusals]] = [*listed.items()]
    except AttributeError:
        raise TypeError(f"{rule}; got {listed!r}") from None
    refusals: dict[Origin, frozenset[int] | Callable[[int, Mapping[str, str]], bool]] = {}
    for url, statuses in items:
        origin = origin_of(url, rule)
        if callable(statuses):
            refusals[origin] = statuses
            continue
        refusals[origin] = _statuses(statuses, rule)
    return refusals


def _statuses(listed: object, rule: str) -> frozenset[int]:
    """Return the listed statuses; TypeError or ValueError that states the rule for wrong ones."""
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"{rule}; got the statuses {listed!r}")
    statuses = set[int]()
    values: list[object] = [*listed]
    for status in values:
        if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status <= 599:
            raise ValueError(f"{rule} from 400 to 599; got {status!r}")
        statuses.add(status)
    return frozenset(statuses)


NO_VOUCH = Vouch()
"""The word of a user who vouches for nothing."""

"""Vouching: the user's word that a request may be executed twice.

The tables judge strictly. `apply_vouch` raises their judgement where the user said so for the method and origin of a
request, by patterns such as "POST https://api.example.com/v1/search*" or by a predicate.
"""

from collections.abc import Iterable

from forbear.core.record import Record
from forbear.http.api import Api, check_apis
from forbear.http.patterns import Cover, covers, patterns, suggest_patterns
from forbear.http.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from forbear.core.service import Judgement
    from forbear.http.patterns import Origin

    Apis = Api | Iterable[Api]
    Safe = str | Iterable[str] | Callable[[Request], bool]


class Vouch(Record):
    """The user's word for one adapter, from its options `safe` and `apis`.

    - `safe`: the requests that may be executed twice. A pattern, several, or a function that takes the `Request`.
    - `apis`: what is known of the APIs at some origins, with patterns of their own.

    `patterns` follow from both. TypeError or ValueError for wrong ones. Example: see `apply_vouch`.
    """

    __slots__ = ("safe", "apis", "patterns")

    safe: "tuple[str, ...] | Callable[[Request], bool]"
    apis: tuple[Api, ...]
    patterns: tuple[Cover, ...]

    def __init__(self, safe: "Safe" = (), apis: "Apis" = ()) -> None:
        listed = () if callable(safe) else patterns(safe)
        checked = check_apis(apis)
        self._set(safe=safe if callable(safe) else tuple(pattern.text for pattern in listed), apis=checked)
        self._set(patterns=listed + tuple(pattern for api in checked for pattern in api.patterns))

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("safe", "apis")

    def find_own_api(self, origin: "Origin") -> Api | None:
        """Return the user's API at an origin (`Request.origin`), None if there is none."""
        return next((api for api in self.apis if api.is_for(origin)), None)


def apply_vouch(judgement: "Judgement", request: Request, vouch: Vouch) -> "Judgement":
    """Return the judgement, repeatable and `vouched` if the user vouches for the request; else return it as it is.

    A vouch only ever raises `repeatable`. It does not apply to batches and the like, which are refused, nor to requests
    of upload sessions. TypeError if a function of the user returns no bool.

    >>> from forbear.services.rfc9110 import Rfc9110
    >>> request = Request("POST", "api.example.com", "/search")
    >>> apply_vouch(Rfc9110().classify(request), request, Vouch(safe="POST https://api.example.com/search")).repeatable
    True
    """
    safe = vouch.safe
    if not (safe or vouch.patterns) or judgement.repeatable or judgement.refused is not None or judgement.session:
        return judgement
    covered = covers(vouch.patterns, request)
    if not covered and callable(safe):
        covered = check_flag(safe(request))
    return judgement.replace(repeatable=True, vouched=True) if covered else judgement


def option_for(request: Request) -> str:
    """Return the option by which to vouch for a request, with the patterns for it as they are written in Python."""
    listed = [f'"{pattern}"' for pattern in suggest_patterns(request)]
    if not listed:
        return "a function of the request as `safe`"
    safe = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    return f"safe={safe}"


def check_flag(answer: object, option: str = "safe") -> bool:
    """Return the answer of the user's function for an `option`; TypeError if it is no bool."""
    if not isinstance(answer, bool):
        raise TypeError(f"`{option}` must return True or False, got {answer!r}")
    return answer


NO_VOUCH = Vouch()

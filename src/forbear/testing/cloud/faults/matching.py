"""Which requests a fault meets: the matcher and its checks; knows nothing of what the fault does."""

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypedDict

from forbear.testing.cloud.faults.checks import number, optional_text, whole
from forbear.testing.cloud.http.messages import HttpRequest
from forbear.testing.cloud.operations import OPERATIONS, steps_of


class Matching(TypedDict, total=False):
    """Which requests a fault meets: all that is given must hold.

    `operation` is an id such as "storage.objects.insert" (with its steps), `method` the HTTP method, `path` a part of
    the path with query as sent, `path_regex` an expression searched there, `header` a name and a part of its value. Of
    those that match, the first `skip` are let through (or all before the `nth`), then `times` are hit (None: for ever;
    1 by default), each with this `probability`.
    """

    operation: str | None
    method: str | None
    path: str | None
    path_regex: str | None
    header: tuple[str, str] | None
    skip: int
    nth: int | None
    times: int | None
    probability: float


@dataclass(frozen=True, slots=True)
class FaultMatch:
    """A checked `Matching`: of operations and headers there may be more; an empty tuple asks for nothing."""

    operations: tuple[str, ...]
    method: str | None
    path: str | None
    path_regex: re.Pattern[str] | None
    headers: tuple[tuple[str, str], ...]
    skip: int
    times: int | None
    probability: float

    def meets(self, request: HttpRequest, operation: str | None) -> bool:
        """Whether the request is one of those meant; counting and chance come after."""
        if self.operations and operation not in self.operations:
            return False
        if self.method is not None and request.method != self.method:
            return False
        if self.path is not None and self.path not in request.target:
            return False
        if self.path_regex is not None and not self.path_regex.search(request.target):
            return False
        return all(part in request.headers.get(name, "") for name, part in self.headers)


def checked_match(given: Matching) -> FaultMatch:
    """Check the parameters of a `Matching`; the first wrong one is named in the error."""
    unknown = sorted(given.keys() - Matching.__annotations__.keys())
    if unknown:
        known = ", ".join(Matching.__annotations__)
        raise TypeError(f"`{unknown[0]}` is not a parameter of this fault; requests are matched by {known}")
    operation, header = _operation(given.get("operation")), _header(given.get("header"))
    method = optional_text("method", given.get("method"))
    skip, times, nth = whole("skip", given.get("skip", 0)), given.get("times", 1), given.get("nth")
    if times is not None:
        whole("times", times, minimum=1)
    if nth is not None:
        if "skip" in given or "times" in given:
            raise ValueError(
                f"`nth` is short for skip=nth-1, times=1: leave `skip` and `times` out, got nth={nth!r} too"
            )
        skip, times = whole("nth", nth, minimum=1) - 1, 1
    return FaultMatch(
        () if operation is None else steps_of(operation),
        method.upper() if method else None,
        optional_text("path", given.get("path")),
        _pattern(given.get("path_regex")),
        () if header is None else (header,),
        skip,
        times,
        number("probability", given.get("probability", 1.0), maximum=1),
    )


def fitting_match(given: Matching, action: str, operations: tuple[str, ...], usual: tuple[str, ...] = ()) -> FaultMatch:
    """A checked match of the operations that the action fits: those wanted, or the `usual` ones (all) by default."""
    match, wanted = checked_match(given), given.get("operation")
    if wanted is None:
        return replace(match, operations=usual or operations)
    fitting = tuple(operation for operation in match.operations if operation in operations)
    if not fitting:
        allowed = " or ".join(operations)
        raise ValueError(f"`operation` must be {allowed} for {action!r}, or left out, got {wanted!r}")
    return replace(match, operations=fitting)


def _operation(value: object) -> str | None:
    name = optional_text("operation", value)
    if name is None or name in OPERATIONS:
        return name
    close = get_close_matches(name, OPERATIONS, 3, 0.0)
    raise ValueError(f"`operation` must be one that the cloud serves, such as {', '.join(close)}; got {name!r}")


def _pattern(value: object) -> re.Pattern[str] | None:
    text = optional_text("path_regex", value)
    try:
        return re.compile(text) if text is not None else None
    except re.error as error:
        raise ValueError(f"`path_regex` must be a regular expression, got {text!r}: {error}") from None


def _header(value: object) -> tuple[str, str] | None:
    match value:
        case None:
            return None
        case (str() as name, str() as part) if name:
            return name.lower(), part
        case _:
            raise TypeError(f"`header` must be a pair of a name and a part of its value, got {value!r}")

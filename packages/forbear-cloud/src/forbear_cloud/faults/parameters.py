"""The parameters of faults: check them, and match requests against those that choose requests.

Each error names the parameter and the rule, and nearly all name the value.
"""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TypedDict

from forbear_cloud.http.messages import HttpRequest
from forbear_cloud.operations import steps_of
from forbear_cloud.routing import OPERATIONS


def whole(name: str, value: object, *, minimum: int = 0, maximum: int | None = None) -> int:
    """Return `value` if it is a whole number (no bool) from `minimum` to `maximum` (None: without limit).

    Otherwise TypeError or ValueError names the parameter, by `name`, and the rule.
    """
    rule = f"a whole number of at least {minimum}" if maximum is None else f"a whole number from {minimum} to {maximum}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"`{name}` must be {rule}, got {value!r}")
    return value


def number(name: str, value: object, *, maximum: float = math.inf) -> float:
    """Return `value` as a float if it is a finite number (no bool) from 0 to `maximum`.

    Otherwise TypeError or ValueError names the parameter, by `name`, and the rule.
    """
    rule = "a number of at least 0" if maximum == math.inf else f"a number from 0 to {maximum:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"`{name}` must be {rule}, got {value!r}")
    if not (0 <= value <= maximum and math.isfinite(value)):
        raise ValueError(f"`{name}` must be {rule}, got {value!r}")
    return float(value)


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False, otherwise raise TypeError; `name` is the parameter in its text."""
    if not isinstance(value, bool):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return value


def optional_text(name: str, value: object) -> str | None:
    """Return `value` if it is None or a string that is not empty; `name` is the parameter in errors.

    TypeError for any other type, ValueError for an empty string.
    """
    if value is not None and not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string or None, got {value!r}")
    if value == "":
        raise ValueError(f"`{name}` must not be empty; leave it out to match everything")
    return value


def check_word(name: str, value: object, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the `allowed` words; `name` is the parameter in errors.

    TypeError for anything but a string, ValueError for another word.
    """
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string, got {value!r}")
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(sorted(allowed))}; got {value!r}")
    return value


class Matching(TypedDict, total=False):
    """The keyword arguments that choose the requests of a fault; a request must satisfy all of them.

    `operation` is an operation id such as "storage.objects.insert", which includes its steps. `method` is the HTTP
    method. `path` is a part of the path with query, as sent; `path_regex` is a regular expression to search there.
    `header` is a pair: the name of a header, and a part of its value.

    Of the requests that match, the fault spares the first `skip`. It then applies to `times` requests (1 by default;
    None: to all), to each with this `probability`. `nth` is short for skip=nth-1 and times=1.
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
    """A checked `Matching`: a request must have one of the `operations` (empty: any) and all of the `headers`.

    The other fields are as in `Matching`, but `method` is in upper case and `nth` is turned into `skip` and `times`.
    """

    operations: tuple[str, ...]
    method: str | None
    path: str | None
    path_regex: re.Pattern[str] | None
    headers: tuple[tuple[str, str], ...]
    skip: int
    times: int | None
    probability: float

    def matches(self, request: HttpRequest, operation: str | None) -> bool:
        """Return whether the request, which is for this operation id (None: unknown), has all that the match requires.

        `skip`, `times` and `probability` do not count here.
        """
        return (
            (not self.operations or operation in self.operations)
            and (self.method is None or request.method == self.method)
            and (self.path is None or self.path in request.target)
            and (self.path_regex is None or self.path_regex.search(request.target) is not None)
            and all(part in request.headers.get(name, "") for name, part in self.headers)
        )


def check_match(options: Matching) -> FaultMatch:
    """Check the options and return them as a FaultMatch; TypeError or ValueError names the first wrong one.

    An operation with steps, that is an insert, also matches its steps. `nth` excludes `skip` and `times`.
    """
    unknown = sorted(options.keys() - Matching.__annotations__.keys())
    if unknown:
        known = ", ".join(Matching.__annotations__)
        raise TypeError(f"`{unknown[0]}` is not a parameter of this fault; requests are matched by {known}")
    operation, header = _operation(options.get("operation")), _header(options.get("header"))
    method = optional_text("method", options.get("method"))
    skip, times, nth = whole("skip", options.get("skip", 0)), options.get("times", 1), options.get("nth")
    if times is not None:
        whole("times", times, minimum=1)
    if nth is not None:
        if "skip" in options or "times" in options:
            raise ValueError(
                f"`nth` is short for skip=nth-1, times=1: leave `skip` and `times` out, got nth={nth!r} too"
            )
        skip, times = whole("nth", nth, minimum=1) - 1, 1
    return FaultMatch(
        () if operation is None else steps_of(operation),
        method.upper() if method else None,
        optional_text("path", options.get("path")),
        _pattern(options.get("path_regex")),
        () if header is None else (header,),
        skip,
        times,
        number("probability", options.get("probability", 1.0), maximum=1),
    )


def fitting_match(
    options: Matching, action: str, operations: tuple[str, ...], default: tuple[str, ...] = ()
) -> FaultMatch:
    """Check the options as `check_match` does, for an `action` that exists for some `operations` only.

    ValueError for another operation in the options. Of an operation with steps, only those among `operations` are
    matched. Without an operation the `default` ones are matched, or all of `operations`.
    """
    match, operation = check_match(options), options.get("operation")
    if operation is None:
        return replace(match, operations=default or operations)
    fitting = tuple(each for each in match.operations if each in operations)
    if not fitting:
        allowed = " or ".join(operations)
        raise ValueError(f"`operation` must be {allowed} for {action!r}, or left out, got {operation!r}")
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

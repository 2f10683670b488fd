"""The status codes of gRPC: their names, their numbers, and the HTTP statuses that stand for them.

The mapping is that of google.rpc.Code, by which the JSON APIs name the same errors.
"""

from collections.abc import Container, Iterable

NAMES = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
    "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
NUMBERS = {name: number for number, name in enumerate(NAMES)}

OK, DEADLINE_EXCEEDED, NOT_FOUND = (NUMBERS[name] for name in ("OK", "DEADLINE_EXCEEDED", "NOT_FOUND"))
RESOURCE_EXHAUSTED, FAILED_PRECONDITION = NUMBERS["RESOURCE_EXHAUSTED"], NUMBERS["FAILED_PRECONDITION"]
ABORTED, INTERNAL, UNAVAILABLE = (NUMBERS[name] for name in ("ABORTED", "INTERNAL", "UNAVAILABLE"))

TRANSIENT = {RESOURCE_EXHAUSTED: 429, INTERNAL: 500, UNAVAILABLE: 503, DEADLINE_EXCEEDED: 504}
"""The codes that a retry may cure, each with the HTTP status that stands for it."""

_STATUSES = {
    "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 404, "ABORTED": 409, "ALREADY_EXISTS": 409,
}  # fmt: skip


def statuses(responses: Iterable[str]) -> tuple[int, ...]:
    """Return the responses in a table's cell as HTTP statuses, each once; KeyError for a name without a status here."""
    numbers = [int(response) if response.isdecimal() else _STATUSES[response] for response in responses]
    return tuple(dict.fromkeys(numbers))


def numbers(responses: Iterable[str]) -> tuple[int, ...]:
    """Return the responses in a table's cell as numbers of gRPC codes, each once; KeyError for one without a code here.

    A status stands for all codes that it may mean: 409 for ABORTED and ALREADY_EXISTS.
    """
    codes: list[int] = []
    for response in responses:
        meant = [NUMBERS[name] for name, status in _STATUSES.items() if response in (name, str(status))]
        if not meant:
            raise KeyError(response)
        codes += meant
    return tuple(dict.fromkeys(codes))


def to_http(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return the HTTP statuses (400, 404, 409) by which REST transports report gRPC codes, each once.

    `numbers` are numbers of codes. Those that tables do not list as responses are left out.
    """
    return tuple(dict.fromkeys(_STATUSES[NAMES[number]] for number in numbers if NAMES[number] in _STATUSES))


def codes_for(statuses: Container[int]) -> frozenset[int]:
    """Return the numbers of the gRPC codes in `TRANSIENT` whose HTTP statuses are in `statuses`; others add no code."""
    return frozenset(code for code, status in TRANSIENT.items() if status in statuses)


REFUSED = frozenset({3, 5, 7, 9, 11, 12, 16})
"""Codes of gRPC that say that a call is wrong: INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION,
OUT_OF_RANGE, UNIMPLEMENTED and UNAUTHENTICATED."""

"""The faults that a storm injects, and their text form: `POST /orders#1:lost`, `POST /orders#1+:503`."""

import re
from dataclasses import dataclass

FAULTS = ("lost", "refused", "503", "429", "slow", "cut")
"""The names of all faults. HTTP has all of them, Redis has lost, refused and slow."""

REDIS_FAULTS = ("lost", "refused", "slow")
"""The faults of a Redis command."""

MAYBE_DONE = frozenset({"lost", "slow", "cut"})
"""The faults after which the server has executed the call."""

RETRY_AFTER = 7
"""The seconds in the Retry-After header of an injected 429."""

INJECTED = "(injected by forbear)"
"""A part of the text of made-up responses and of errors that gRPC makes of them."""

_TEXT = re.compile(r"(?P<label>\S.*)#(?P<number>[1-9][0-9]{0,8})(?P<lasting>\+?):(?P<fault>\w+)")


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault for one call: `label` is its method and path (or its command), `number` counts such calls from 1.

    A `lasting` fault also meets all later calls with this label.
    """

    label: str
    number: int
    name: str
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.label}#{self.number}{'+' if self.lasting else ''}:{self.name}"

    def applies_to(self, label: str, number: int) -> bool:
        """Return whether the call with this label and number gets the fault."""
        return label == self.label and (number == self.number or (self.lasting and number > self.number))


def parse_fault(text: str) -> PlannedFault:
    """Return the fault that `text` describes, such as "POST /orders#1:lost"; ValueError for any other text."""
    match = _TEXT.fullmatch(text.strip())
    if match is None or match["fault"] not in FAULTS:
        rule = f"CALL#NUMBER:FAULT, such as 'POST /orders#1:lost', with one of the faults {', '.join(FAULTS)}"
        raise ValueError(f"`--forbear-fault` must be {rule}; got {text!r}")
    return PlannedFault(match["label"], int(match["number"]), match["fault"], bool(match["lasting"]))

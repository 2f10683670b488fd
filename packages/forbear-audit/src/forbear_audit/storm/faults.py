"""The faults that a storm injects, in text `POST /orders#1:lost` or `POST /orders#1+:503`, and the kinds of findings.

A kind may prove a rule of `forbear audit`.
"""

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


LASTING = ("503+", "refused+", "lost+")
"""The faults that show retries without an end; "+" marks lasting ones."""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind of findings: its name, and the rule of the audit about the same mistake ("" without one).

    A note is information: it fails no test. `level` is that of SARIF. It proves places of the rules in `proves`.
    """

    name: str
    rule: str = ""
    is_note: bool = False
    level: str = "error"
    proves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProvableRule:
    """A rule of the audit that a storm can prove: `text` says what was shown, `faults` would show it."""

    name: str
    text: str
    faults: tuple[str, ...]


KINDS = {
    kind.name: kind
    for kind in (
        FindingKind("duplicated", "UNSAFE", proves=("UNSAFE",)),
        FindingKind("suspected", "UNSAFE", level="warning"),
        FindingKind("rekeyed", "OUTER-KEY", level="warning"),
        FindingKind("doubted", "UNSAFE", is_note=True, level="note"),
        FindingKind("storm", "UNBOUNDED", proves=("UNBOUNDED", "NESTED")),
        FindingKind("nested", "NESTED", proves=("NESTED",)),
        FindingKind("many"),
        FindingKind("late", "NO-DEADLINE", proves=("NO-DEADLINE", "UNBOUNDED")),
        FindingKind("silent"),
        FindingKind("broken"),
        FindingKind("wrong", "LOST-CAUSE", proves=("LOST-CAUSE",)),
        FindingKind("early", "RETRY-AFTER", is_note=True, level="note", proves=("RETRY-AFTER",)),
        FindingKind("lost", is_note=True, level="note"),
        FindingKind("unchecked", is_note=True, level="note"),
        FindingKind("unstable", is_note=True, level="note"),
    )
}
"""All kinds of findings, by name."""

PROVABLE = {
    rule.name: rule
    for rule in (
        ProvableRule(
            "UNSAFE",
            "A call that is not safe to repeat was sent again after the server may have executed it.",
            ("lost", "slow", "cut"),
        ),
        ProvableRule("NESTED", "The attempts of retries within each other multiplied.", LASTING),
        ProvableRule("UNBOUNDED", "A call was sent again and again while a fault lasted.", LASTING),
        ProvableRule("NO-DEADLINE", "The retries went on for minutes.", (*LASTING, "slow+")),
        ProvableRule("RETRY-AFTER", "A call was sent again before the server's Retry-After was over.", ("429",)),
        ProvableRule("LOST-CAUSE", "The test failed with an error that does not come from the fault.", LASTING),
    )
}
"""The rules that a storm can prove, by name."""

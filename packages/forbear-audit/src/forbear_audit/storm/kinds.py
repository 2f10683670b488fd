"""The kinds of findings of a storm, and the rules of `forbear audit` that a storm can prove."""

from dataclasses import dataclass

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

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of findings that prove the rule."""
        return frozenset(kind.name for kind in KINDS.values() if self.name in kind.proves)


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

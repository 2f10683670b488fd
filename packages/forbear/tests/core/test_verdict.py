"""Verdicts: their defaults, their effect and what they refuse."""

import pytest

from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Effect, Kind, Safety, Verdict


@pytest.mark.parametrize(
    ("verdict", "kind", "effect"),
    [
        (NOT_EXECUTED, Kind.NOT_EXECUTED, Effect.NO),
        (TRANSIENT, Kind.TRANSIENT, Effect.UNKNOWN),
        (PERMANENT, Kind.PERMANENT, Effect.NO),
        (CONFLICT, Kind.CONFLICT, Effect.NO),
    ],
)
def test_ready_made(verdict: Verdict, kind: Kind, effect: Effect) -> None:
    """Only a transient failure leaves it open whether the server acted."""
    assert verdict == Verdict(kind, retry_after=None, delay=None, throttled=False)
    assert verdict.effect is effect


def test_kinds_effects_and_safeties_have_their_words() -> None:
    """Reports, tables and the command line have one word for each kind, effect and safety."""
    assert [kind.value for kind in Kind] == ["not executed", "transient", "permanent", "conflict"]
    assert [effect.value for effect in Effect] == ["no", "unknown"]
    assert [safety.value for safety in Safety] == ["always", "conditional", "never"]


def test_numbers_are_kept() -> None:
    """Seconds of zero are seconds; infinity is allowed only for what the server asks."""
    verdict = Verdict(Kind.TRANSIENT, retry_after=0, delay=0, throttled=True)
    assert (verdict.retry_after, verdict.delay, verdict.throttled) == (0, 0, True)
    assert not Verdict(Kind.TRANSIENT).throttled
    assert Verdict(Kind.TRANSIENT, retry_after=float("inf")).retry_after == float("inf")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"kind": "transient"}, TypeError, "`kind` must be a forbear.verdicts.Kind, got 'transient'"),
        ({"retry_after": -1}, ValueError, "`retry_after` must be zero or more and finite, got -1"),
        ({"retry_after": float("nan")}, TypeError, "`retry_after` must be a number of seconds, got nan"),
        ({"retry_after": "3"}, TypeError, "`retry_after` must be a number of seconds, got '3'"),
        ({"delay": -1}, ValueError, "`delay` must be zero or more and finite, got -1"),
        ({"delay": float("inf")}, ValueError, "`delay` must be zero or more and finite, got inf"),
        ({"delay": True}, TypeError, "`delay` must be a number of seconds, got True"),
    ],
    ids=str,
)
def test_bad_values_are_refused_by_name(arguments: dict[str, object], error: type[Exception], text: str) -> None:
    """Every text names the parameter, the rule and the value."""
    with pytest.raises(error) as caught:
        TRANSIENT.replace(**arguments)
    assert str(caught.value) == text

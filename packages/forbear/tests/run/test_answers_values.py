"""Answers of the functions of a policy, value by value, and the texts about any other answer."""

import copy
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import forbear
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.run import answers
from forbear.run.answers import AnyOf, Broken, TryAgain, Unsatisfied, verdict_of
from forbear.testing import virtual_time

POLICY = forbear.retry(OSError, attempts=2, backoff=forbear.Constant(1))


def returning(answer: Any, _: object) -> Any:
    """Return an answer to anything."""
    return answer


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (True, TRANSIENT),
        (False, PERMANENT),
        (CONFLICT, CONFLICT),
        (0, Verdict(Kind.TRANSIENT, delay=0)),
        (2.5, Verdict(Kind.TRANSIENT, delay=2.5)),
        (timedelta(seconds=3), Verdict(Kind.TRANSIENT, delay=3.0)),
    ],
)
def test_answers_of_judges(answer: object, verdict: Verdict) -> None:
    """A bool, a wait or a verdict; of values, a permanent one accepts the value."""
    assert verdict_of("on", answer) == verdict
    accepted = verdict.kind is Kind.PERMANENT
    assert answers.verdict_of_value(lambda value: answer, "value") == (None if accepted else verdict)
    assert answers.ask(lambda error: answer, OSError()) == verdict


@pytest.mark.parametrize("answer", [None, "yes", [1]])
def test_other_answers_of_judges(answer: object) -> None:
    """The text names the option and the answer; of an error, the function's own one counts."""
    text = f"must return a bool, a number of seconds or a Verdict, got {answer!r}"
    with pytest.raises(TypeError) as caught:
        answers.verdict_of_value(lambda value: answer, "value")
    assert str(caught.value) == f"`on_result` {text}"
    for judge in (partial(returning, answer), AnyOf((KeyError,), (partial(returning, answer),))):
        broken = answers.ask(judge, OSError())
        assert isinstance(broken, Broken)
        assert (str(broken.error), broken.kind) == (f"`on` {text}", Kind.PERMANENT)


def test_the_verdict_of_a_judge_that_raised() -> None:
    """It has the error, and the facts that the client knows."""
    error = KeyError("broken")
    made = Broken(error, Kind.NOT_EXECUTED, throttled=True)
    assert (made.error, made.kind, made.throttled) == (error, Kind.NOT_EXECUTED, True)
    assert Broken(error).kind is Kind.PERMANENT


def test_types_and_functions_together() -> None:
    """A function that asks for a retry decides; of those that decline, a conflict comes before the types' silence."""

    def marked(error: Exception) -> bool:
        return False

    error = OSError()
    for judges, verdict in (
        ((False, 2.0, True), Verdict(Kind.TRANSIENT, delay=2.0)),
        ((False, NOT_EXECUTED), NOT_EXECUTED),
        ((False, CONFLICT), CONFLICT),
        ((False, False), PERMANENT),
        ((), PERMANENT),
    ):
        made = AnyOf((KeyError,), tuple(partial(returning, each) for each in judges))
        assert made(error) == verdict
        assert not made.is_of_service
    assert AnyOf((OSError,), (partial(returning, CONFLICT),))(error) == TRANSIENT
    marked.is_of_service = True  # type: ignore[attr-defined]
    assert AnyOf((), (partial(returning, True), marked)).is_of_service


@pytest.mark.parametrize(
    ("answer", "why"),
    [(True, "`stop` returned True"), (False, None), (None, None), ("", None), ("closing", "closing")],
)
def test_answers_of_stop(answer: object, why: str | None) -> None:
    """True or a reason ends the run."""
    assert answers.read_stop(answer) == why
    with virtual_time(), pytest.raises(OSError, match="lost") as caught:
        POLICY.with_changes(stop=lambda failed: answer).call(fail)  # type: ignore[arg-type, return-value]
    report = forbear.report(caught.value)
    assert report is not None
    assert report.text == (why or "limit of 2 attempts reached")


def fail() -> None:
    """Fail."""
    raise OSError("lost")


def raise_key(_: object) -> Any:
    """Fail."""
    raise KeyError("key")


def raise_stop(_: object) -> Any:
    """Fail, without a text."""
    raise StopIteration


BROKEN: list[tuple[dict[str, Any], str]] = [
    (
        {"stop": partial(returning, 1)},
        "TypeError: `stop` must return True, False, None or the reason as a string, got 1",
    ),
    (
        {"delay": partial(returning, "1")},
        "TypeError: `delay` must return a number of seconds, a timedelta or None, got '1'",
    ),
    (
        {"delay": partial(returning, True)},
        "TypeError: `delay` must return a number of seconds, a timedelta or None, got True",
    ),
    ({"delay": raise_key}, "KeyError: 'key'"),
    ({"stop": raise_stop}, "StopIteration"),
]


@pytest.mark.parametrize(("options", "text"), BROKEN, ids=map(str, range(len(BROKEN))))
def test_functions_that_fail(options: dict[str, Any], text: str) -> None:
    """The report says what they raised; where a repeat could do harm, it says that first."""
    policy = POLICY.with_changes(**options)
    for repeatable, begin in ((None, "a function of the policy raised an error: "), (False, None)):
        with virtual_time(), pytest.raises(OSError, match="lost") as caught:
            policy.with_repeatable(repeatable).call(fail)
        report = forbear.report(caught.value)
        assert report is not None
        if begin is not None:
            assert (report.reason.code, report.text) == ("broken", f"{begin}{text}")
        else:
            assert report.reason.code == "unsafe"


def test_a_judge_that_fails_where_a_repeat_could_do_harm() -> None:
    """The report has both, the harm first."""

    def judge(error: Exception) -> bool:
        raise KeyError("key")

    with virtual_time(), pytest.raises(OSError, match="lost") as caught:
        POLICY.with_on(judge).with_repeatable(False).call(fail)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.text == (
        "the attempt may have been executed and a repeat could do harm; if it does none, say so with "
        "policy.with_repeatable(True); a function of the policy raised an error: KeyError: 'key'"
    )


def test_delays() -> None:
    """A number, a timedelta, or None for the backoff's."""
    for delay, slept in ((3, 3), (2.5, 2.5), (timedelta(seconds=4), 4), (None, 1), (0, 0)):
        with virtual_time() as time, pytest.raises(OSError, match="lost"):
            POLICY.with_changes(delay=partial(returning, delay)).call(fail)
        assert time.slept == [slept]
    assert answers.set_delay(TRANSIENT, None) is TRANSIENT


def test_the_errors_with_a_verdict_of_their_own() -> None:
    """`TryAgain` has the wait, and `Unsatisfied` the value and a text about its type."""
    again = TryAgain("a", "b", delay=timedelta(seconds=7))
    assert (again.args, again.delay, again.verdict) == (("a", "b"), 7.0, Verdict(Kind.NOT_EXECUTED, delay=7.0))
    assert TryAgain().verdict == NOT_EXECUTED
    for wrong in ("1", float("inf"), True):
        with pytest.raises((TypeError, ValueError), match=r"^`delay` must be "):
            TryAgain(delay=wrong)  # type: ignore[arg-type]
    assert answers.refusal_of([1]) == ("list", "on_result refused a value of type list")
    error = Unsatisfied([1], "no")
    assert (error.value, str(error), error.args) == ([1], "no", ([1], "no"))
    assert str(copy.copy(error)) == "no"


def test_which_of_joined_policies_counts() -> None:
    """The first that retries the error, or whose judge fails; for an error of none the left one."""

    def broken(error: Exception) -> bool:
        raise ZeroDivisionError

    left, middle, right = POLICY, forbear.retry(KeyError), forbear.retry(LookupError)
    joined = left | middle | right
    assert answers.rule_of(joined, KeyError()).on is KeyError
    assert answers.rule_of(joined, IndexError()).on is LookupError
    assert answers.rule_of(joined, ValueError()) is joined
    assert answers.rule_of(left | forbear.retry(on=broken) | middle, KeyError()).on is broken
    assert answers.verdict_of_error(joined, IndexError()) is TRANSIENT
    assert answers.verdict_of_error(joined, ValueError()) is PERMANENT
    assert answers.verdict_of_error(joined, TryAgain(delay=1)) == Verdict(Kind.NOT_EXECUTED, delay=1)
    assert answers.judge(left, KeyError()) is PERMANENT

"""Policies are values: checked when made, immutable, picklable, comparable; derived ones leave the original alone."""

import copy
import inspect
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.events import Event
from forbear.core.limits import Limits
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.judges.transient import transient
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.run.judges import RAISE
from forbear_testkit.run.cases import Broken, Busy

NO_BACKOFF = "`backoff` must have a delay(n, u, previous) method, such as forbear.Exponential(), got {}"
WRONG = "`on` must be exception types or a callable that judges an error, got {}"
STATUSES = "; statuses are read from errors: write on=forbear.transient, and call response.raise_for_status()"
BUDGET = Budget()


def judge(error: Exception) -> bool:
    """A predicate that can be pickled."""
    return isinstance(error, Busy)


def unfit(value: object) -> bool:
    """A predicate on values that can be pickled."""
    return value is None


def listen(event: Event) -> None:
    """A listener that can be pickled."""


FULL = retry(
    on=judge,
    attempts=7,
    timeout=30,
    attempt_timeout=3,
    backoff=Constant(2),
    on_result=unfit,
    on_event=listen,
    clamp=True,
    max_retry_after=10,
    repeatable=False,
    retry_exhausted=True,
    name="fetch",
)


def test_defaults() -> None:
    """Five attempts in a minute, full jitter under 1, 2, 4 … 64 seconds, and nothing else."""
    assert retry(on=OSError) == Policy(
        on=OSError,
        limits=Limits(attempts=5, timeout=60, clamp=False, max_retry_after=900, unlimited=False),
        backoff=Exponential(1, 2, 64, "full"),
        attempt_timeout=None,
        on_result=None,
        on_event=None,
        budget=None,
        repeatable=None,
        retry_exhausted=False,
        name=None,
        service=None,
        stop=None,
        delay=None,
        on_give_up=RAISE,
        raise_unsatisfied=False,
        on_success=None,
        others=(),
    )
    assert Policy(OSError) == retry(on=OSError)


def test_every_argument_arrives() -> None:
    """`retry()` hands each one to the policy or its limits."""
    options: dict[str, Any] = {"attempt_timeout": 3, "on_result": unfit, "on_event": listen, "repeatable": False}
    made = Policy(judge, Limits(7, 30, True, 10), Constant(2), retry_exhausted=True, name="fetch", **options)
    assert made == FULL
    assert retry(on=Busy, budget=BUDGET).budget is BUDGET
    assert retry(on=Busy, attempts=None, timeout=None, unlimited=True).limits == Limits(None, None, unlimited=True)


def function() -> None:
    """A function that somebody decorates by `@retry` alone."""


def test_types_are_positional_too() -> None:
    """One type stays a type, several become a tuple."""
    assert retry(OSError) == retry(on=OSError)
    assert retry(OSError, LookupError, attempts=3) == retry(on=(OSError, LookupError), attempts=3)


class Unavailable(Exception):
    """An error of the user that no table knows."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Unavailable(), Kind.TRANSIENT),
        (ConnectionResetError(), Kind.TRANSIENT),
        (ValueError(), Kind.PERMANENT),
        (KeyError(), Kind.TRANSIENT),
    ],
)
def test_types_and_judges_go_together(error: Exception, kind: Kind) -> None:
    """An error is retried if it is of one of the types, or if one of the judges says so."""

    def is_key(error: Exception) -> bool:
        return isinstance(error, KeyError)

    mixed = Unavailable, transient, is_key
    assert retry(on=mixed).verdict_of_error(error).kind is kind
    assert retry(Unavailable, KeyError, transient).verdict_of_error(error).kind is kind


def test_a_judge_of_forbear_stands_alone() -> None:
    """`forbear.retry(forbear.transient)` needs no keyword."""
    assert retry(transient) == retry(on=transient)


def test_a_verdict_in_a_condition() -> None:
    """`and`, `or` and `not` around `forbear.transient` mean what they say."""
    policy = retry(on=lambda error: transient(error) and not isinstance(error, Unavailable))
    assert policy.verdict_of_error(ValueError()).kind is Kind.PERMANENT
    assert policy.verdict_of_error(ConnectionResetError()).kind is Kind.TRANSIENT


@pytest.mark.parametrize(
    ("types", "on", "text"),
    [
        ((), None, "needs the errors to retry, as in forbear.retry(OSError) or forbear.retry(forbear.transient)"),
        ((function,), None, "before it can decorate: write @forbear.retry(OSError); a function that judges errors is"),
        ((int,), None, "before it can decorate: write @forbear.retry(OSError); a function that judges errors is"),
        (((OSError, KeyError),), None, "positional arguments of `retry` must be exception types, as in retry(OSError)"),
        ((3,), None, "must be exception types, as in retry(OSError), got 3; write attempts=3"),
        ((OSError | KeyError,), None, "got OSError | KeyError; write them one by one: retry(OSError, ValueError)"),
        ((OSError, 5), None, "positional arguments of `retry` must be exception types, as in retry(OSError), got 5"),
        ((OSError, judge), None, "must be exception types, as in retry(OSError), got <function"),
        ((OSError, KeyboardInterrupt), None, "`on` must list subclasses of Exception, got KeyboardInterrupt"),
        ((OSError,), KeyError, "`on` must not be passed together with positional exception types: list them all in"),
    ],
)
def test_what_to_retry_is_mandatory(types: tuple[Any, ...], on: Any, text: str) -> None:
    """Nobody else knows; each wrong form has an error that says what to write."""
    make: Any = retry
    with pytest.raises(TypeError) as caught:
        make(*types, on=on)
    assert text in str(caught.value)


def test_times_may_be_timedeltas() -> None:
    """Wherever seconds are taken; the policy has plain seconds."""
    minute, second = timedelta(minutes=1), timedelta(seconds=1)
    policy = retry(OSError, timeout=minute, attempt_timeout=second, max_retry_after=minute)
    assert policy == retry(OSError, timeout=60.0, attempt_timeout=1.0, max_retry_after=60.0)
    assert policy.with_timeout(second).with_attempt_timeout(minute).limits.timeout == 1.0
    assert Exponential(second, 2, minute, spread=second) == Exponential(1, 2, 60, spread=1)
    assert Constant(second, spread=minute) == Constant(1, 60)
    assert Sequence([second, 2, minute], second) == Sequence([1, 2, 60], 1)
    assert Verdict(Kind.TRANSIENT, retry_after=minute, delay=second) == Verdict(Kind.TRANSIENT, 60, 1)
    assert retry(on=lambda error: minute).verdict_of_error(OSError()) == Verdict(Kind.TRANSIENT, delay=60)
    with pytest.raises(ValueError, match="`timeout` must be positive and finite"):
        retry(OSError, timeout=timedelta(seconds=-1))


def test_changes() -> None:
    """Keywords of `retry()` change the policy and its limits."""
    changed = FULL.with_changes(attempts=2, timeout=timedelta(seconds=3), name="other", on=OSError)
    assert changed == FULL.with_attempts(2).with_timeout(3).with_name("other").with_on(OSError)
    wrong: Any = FULL
    with pytest.raises(TypeError, match="tries"):
        wrong.with_changes(tries=5)


def test_retry_and_limits_agree() -> None:
    """Each default of `retry()` is that of the limits or of the policy."""
    known = {**inspect.signature(Policy).parameters, **inspect.signature(Limits).parameters}
    parameters = dict(inspect.signature(retry).parameters)
    assert (parameters.pop("types").kind, parameters.pop("on").default) == (inspect.Parameter.VAR_POSITIONAL, None)
    for name, parameter in parameters.items():
        assert parameter.default == known[name].default, name


REPEATABLE = "`repeatable` must be True, False or None (functions yes, requests by their tables), got 'never'"
SAFE = (
    '`safe` must hold patterns such as "POST https://api.example.com/search", or names of commands, RPCs and operations'
)
ON_TYPES = "`on` must list subclasses of Exception, got {}, which ends programs or tasks"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"on": 503}, TypeError, WRONG.format(503) + STATUSES),
        ({"on": {503}}, TypeError, WRONG.format({503}) + STATUSES),
        (
            {"on": OSError | KeyError},
            TypeError,
            WRONG.format("OSError | KeyError") + "; write a tuple: on=(OSError, ValueError)",
        ),
        (
            {"on": [OSError]},
            TypeError,
            WRONG.format([OSError]) + "; write a tuple: on=(OSError, ValueError)",
        ),
        ({"on": ()}, ValueError, "`on` must list at least one exception type, got none"),
        ({"on": (OSError, 5)}, TypeError, WRONG.format(5)),
        ({"on": (OSError, "x")}, TypeError, WRONG.format("'x'")),
        (
            {"on": ((OSError,),)},
            TypeError,
            WRONG.format((OSError,)) + "; write a tuple: on=(OSError, ValueError)",
        ),
        ({"on": int}, TypeError, "`on` must list exception types, got <class 'int'>"),
        ({"on": BaseException}, TypeError, ON_TYPES.format("BaseException")),
        ({"on": KeyboardInterrupt}, TypeError, ON_TYPES.format("KeyboardInterrupt")),
        ({"on": (OSError, SystemExit)}, TypeError, ON_TYPES.format("SystemExit")),
        ({"attempts": 0}, ValueError, "`attempts` must be 1 or more, got 0"),
        ({"timeout": 0}, ValueError, "`timeout` must be positive and finite or None (no limit), got 0"),
        ({"attempt_timeout": 0}, ValueError, "`attempt_timeout` must be positive and finite or None (no limit), got 0"),
        (
            {"attempt_timeout": -1},
            ValueError,
            "`attempt_timeout` must be positive and finite or None (no limit), got -1",
        ),
        (
            {"attempt_timeout": "5"},
            TypeError,
            "`attempt_timeout` must be a number of seconds or None (no limit), got '5'",
        ),
        (
            {"backoff": 5},
            TypeError,
            NO_BACKOFF.format("5; write forbear.Constant(5)"),
        ),
        (
            {"backoff": [1, 2]},
            TypeError,
            NO_BACKOFF.format("[1, 2]; write forbear.Sequence([1, 2])"),
        ),
        (
            {"backoff": Constant},
            TypeError,
            NO_BACKOFF.format(f"{Constant!r}; write Constant(...)"),
        ),
        (
            {"backoff": None},
            TypeError,
            NO_BACKOFF.format("None; write forbear.Constant(0)"),
        ),
        (
            {"backoff": timedelta(seconds=2)},
            TypeError,
            NO_BACKOFF.format("datetime.timedelta(seconds=2); write forbear.Constant(2.0)"),
        ),
        (
            {"backoff": unfit},
            TypeError,
            NO_BACKOFF.format(f"{unfit!r}; a function of the error is passed as delay="),
        ),
        (
            {"on_result": 5},
            TypeError,
            "`on_result` must be callable or None, got 5; pass a function of the value that returns True for a retry",
        ),
        ({"on_event": "log"}, TypeError, "`on_event` must be callable or None, got 'log'"),
        *(
            ({"safe": wrong}, error, f"{SAFE}, got {wrong!r}")
            for wrong, error in (
                (True, TypeError),
                (["INCR", 7], TypeError),
                ("POST /x", ValueError),
                ("*", ValueError),
            )
        ),
        ({"budget": 10}, TypeError, "`budget` must be a forbear.budgets.Budget or None, got 10"),
        ({"max_retry_after": -1}, ValueError, "`max_retry_after` must be zero or more and finite, got -1"),
        ({"repeatable": "never"}, TypeError, REPEATABLE),
        ({"retry_exhausted": 1}, TypeError, "`retry_exhausted` must be True or False, got 1"),
        ({"clamp": None}, TypeError, "`clamp` must be True or False, got None"),
        ({"name": 5}, TypeError, "`name` must be a string or None (the function's name), got 5"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    """Every text names the parameter, the rule and the value."""
    make: Any = retry
    with pytest.raises(error) as caught:
        make(**{"on": OSError, **arguments})
    assert str(caught.value) == text


def test_limits_must_be_limits() -> None:
    """The policy's own argument is checked, too."""
    wrong: Any = 5
    with pytest.raises(TypeError) as caught:
        Policy(OSError, wrong)
    assert str(caught.value) == "`limits` must be a forbear.Limits or None (the defaults), got 5"
    wrong_policy: Any = Policy
    with pytest.raises(TypeError, match=r"`Policy` takes no `attempts`: make it by forbear\.retry"):
        wrong_policy(OSError, attempts=3)


DERIVED: list[tuple[str, Callable[[Policy], Policy], Any]] = [
    ("on", lambda policy: policy.with_on(Broken), Broken),
    ("limits", lambda policy: policy.with_attempts(3), Limits(3, 30, True, 10)),
    ("limits", lambda policy: policy.with_attempts(None), Limits(None, 30, True, 10)),
    ("limits", lambda policy: policy.with_timeout(9), Limits(7, 9, True, 10)),
    ("limits", lambda policy: policy.with_timeout(None), Limits(7, None, True, 10)),
    ("limits", lambda policy: policy.with_limits(Limits()), Limits()),
    ("attempt_timeout", lambda policy: policy.with_attempt_timeout(4), 4),
    ("attempt_timeout", lambda policy: policy.with_attempt_timeout(None), None),
    ("backoff", lambda policy: policy.with_backoff(Exponential()), Exponential()),
    ("on_result", lambda policy: policy.with_on_result(None), None),
    ("on_event", lambda policy: policy.with_on_event(None), None),
    ("budget", lambda policy: policy.with_budget(BUDGET), BUDGET),
    ("name", lambda policy: policy.with_name("other"), "other"),
    ("name", lambda policy: policy.with_name(None), None),
    ("repeatable", lambda policy: policy.replace(repeatable=True), True),
    ("repeatable", lambda policy: policy.with_repeatable(None), None),
]


@pytest.mark.parametrize(("name", "derive", "value"), DERIVED)
def test_derived_policies_differ_in_one_thing(name: str, derive: Callable[[Policy], Policy], value: object) -> None:
    """The original stays as it was."""
    before = {field: getattr(FULL, field) for field in Policy._fields()}
    derived = derive(FULL)
    assert {field: getattr(derived, field) for field in Policy._fields()} == before | {name: value}
    assert {field: getattr(FULL, field) for field in Policy._fields()} == before
    assert derived != FULL


def test_derived_policies_are_checked() -> None:
    """A bad value is refused wherever it comes in."""
    with pytest.raises(ValueError, match="`timeout` must be positive"):
        FULL.with_timeout(0)
    with pytest.raises(ValueError, match="must not both be None"):
        FULL.with_timeout(None).with_attempts(None)


@pytest.mark.parametrize("policy", [FULL, retry(on=OSError), retry(on=(OSError, Busy))], ids=["full", "plain", "tuple"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled(policy: Policy, protocol: int) -> None:
    """A policy goes to another process as it is."""
    assert pickle.loads(pickle.dumps(policy, protocol)) == policy


def test_copied() -> None:
    """Copies are equal, hash alike and share the budget."""
    policy = FULL.with_budget(BUDGET)
    assert copy.copy(policy) == copy.deepcopy(policy) == policy
    assert len({policy, copy.copy(policy), copy.deepcopy(policy)}) == 1
    assert copy.deepcopy(policy).budget is BUDGET


def test_frozen() -> None:
    """Nothing can be set; the text says what to do instead."""
    policy: Any = FULL
    with pytest.raises(AttributeError) as caught:
        policy.limits = Limits()
    assert str(caught.value) == "Policy is immutable; derive a changed copy instead of setting `limits`"


@pytest.mark.unmutated
def test_a_policy_shows_the_call_that_makes_it() -> None:
    """The repr has what differs from the defaults, in the words of `forbear.retry`."""
    assert repr(FULL).startswith(
        "retry(judge, attempts=7, timeout=30, clamp=True, max_retry_after=10, backoff=Constant("
    )
    assert repr(FULL).endswith("repeatable=False, retry_exhausted=True, name='fetch')")


def test_judging_errors() -> None:
    """By type, by types, or by whatever the callable says."""
    delayed = Verdict(Kind.TRANSIENT, delay=2.5)
    assert retry(on=OSError).verdict_of_error(ConnectionError()) is TRANSIENT
    assert retry(on=OSError).verdict_of_error(Busy()) is PERMANENT
    assert retry(on=(OSError, Busy)).verdict_of_error(Busy()) is TRANSIENT
    assert retry(on=lambda error: 2.5).verdict_of_error(Busy()) == delayed
    assert retry(on=lambda error: delayed).verdict_of_error(Busy()) is delayed


def test_judging_values() -> None:
    """None says that a value is right; without `on_result` all are."""
    assert not retry(on=OSError).checks_values
    assert retry(on=OSError).verdict_of_value("any") is None
    assert FULL.checks_values
    assert FULL.verdict_of_value("any") is None
    assert FULL.verdict_of_value(None) is TRANSIENT

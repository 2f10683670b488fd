"""The ends of runs: values in place of errors, `Unsatisfied`, `TryAgain`, delays by the error, events of successes."""

import copy
import gc
import pickle
import weakref
from datetime import timedelta
from typing import Any

import pytest

import forbear
from forbear.core.decide import Reason
from forbear.core.events import Event, Failed, Scheduled, Succeeded
from forbear.core.report import report
from forbear.core.verdict import CONFLICT, PERMANENT
from forbear.policy import Policy, retry
from forbear.read_modify_write import update
from forbear.run.answers import TryAgain, Unsatisfied
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.run.judges import RAISE
from forbear.run.switch import disabled
from forbear.services import rfc9110
from forbear.testing import virtual_time
from forbear_testkit.run.cases import BUSY, Broken, Busy, answering
from forbear_testkit.run.drivers import ASYNC, DRIVERS, SYNC, WITH_VALUES, Driver

EVERY_FORM = pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
EVERY_FUNCTION = pytest.mark.parametrize("driver", WITH_VALUES, ids=lambda driver: driver.name)
POLLING = BUSY.with_on_result(lambda value: value == "pending").with_attempts(2)
INNER = retry(Busy, attempts=1)


def text_of(error: Exception) -> str:
    """Return the error as a value."""
    made = report(error)
    return f"{type(error).__name__}, {'no report' if made is None else made.reason.name}"


def reraise(error: Exception) -> None:
    """Raise another error."""
    raise KeyError from error


ENDS: list[tuple[str, Policy, tuple[object, ...], object]] = [
    ("a limit", BUSY.with_attempts(2), (Busy, Busy), "Busy, ATTEMPTS"),
    ("time", BUSY.with_timeout(0.5), (Busy,), "Busy, TIMEOUT"),
    ("doubt", BUSY.with_repeatable(False), (Busy,), "Busy, UNSAFE"),
    ("the caller", BUSY.with_changes(stop=lambda failed: True), (Busy,), "Busy, STOPPED"),
    ("try again", BUSY.with_attempts(1), (TryAgain,), "TryAgain, ATTEMPTS"),
    ("a refused value", POLLING, ("pending", "pending"), "Unsatisfied, ATTEMPTS"),
    ("success", BUSY, (Busy, "done"), "done"),
    ("an accepted value", POLLING, ("pending", "done"), "done"),
    ("permanent", BUSY, (Broken,), Broken),
    ("permanent later", BUSY, (Busy, Broken), Broken),
    ("a permanent verdict", answering(PERMANENT), (Busy,), Busy),
    ("a conflict", answering(CONFLICT), (Busy,), Busy),
]


@EVERY_FUNCTION
@pytest.mark.parametrize(("policy", "outcomes", "end"), [pytest.param(*row[1:], id=row[0]) for row in ENDS])
def test_values_in_place_of_errors(driver: Driver, policy: Policy, outcomes: tuple[object, ...], end: object) -> None:
    """A function gets the last error, with its report; errors that were never to be retried are raised."""
    outcome = driver(policy.replace(on_give_up=text_of), *outcomes)
    if isinstance(end, type):
        assert isinstance(outcome.error, end)
    else:
        assert (outcome.value, outcome.error) == (end, None)


@EVERY_FUNCTION
@pytest.mark.parametrize("value", [None, 0, "", "nothing", ()])
def test_a_value_that_is_not_callable_is_returned(driver: Driver, value: object) -> None:
    """Whatever is not callable is returned itself, None included."""
    assert driver(BUSY.with_attempts(1).replace(on_give_up=value), Busy).value is value
    assert driver(POLLING.replace(on_give_up=value), "pending", "pending").value is value


@EVERY_FUNCTION
def test_errors_of_the_function(driver: Driver) -> None:
    """They are raised instead."""
    error = driver(BUSY.with_attempts(1).replace(on_give_up=reraise), Busy).error
    assert isinstance(error, KeyError)
    assert isinstance(error.__cause__, Busy)


def hidden_later(error: Exception) -> object:
    """Return a coroutine, which cannot be seen before the call."""
    return later(error)


async def later(error: Exception) -> str:
    """Return a value that must be awaited."""
    return f"awaited {type(error).__name__}"


@pytest.mark.parametrize(
    "driver", [driver for driver in ASYNC if driver in WITH_VALUES], ids=lambda driver: driver.name
)
def test_async_functions_in_async_code(driver: Driver) -> None:
    """They are awaited."""
    assert driver(BUSY.with_attempts(1).replace(on_give_up=later), Busy).value == "awaited Busy"
    assert driver(POLLING.replace(on_give_up=later), "pending", "pending").value == "awaited Unsatisfied"


@pytest.mark.parametrize("driver", SYNC, ids=lambda driver: driver.name)
def test_async_functions_in_sync_code(driver: Driver) -> None:
    """They are refused before the first attempt."""
    outcome = driver(BUSY.replace(on_give_up=later), Busy)
    assert outcome.calls == []
    assert "`on_give_up` must not be async on " in str(outcome.error)
    hidden = driver(BUSY.with_attempts(1).replace(on_give_up=hidden_later), Busy)
    assert isinstance(hidden.error, TypeError)
    if driver.name != "block":
        assert str(hidden.error).startswith("`on_give_up` was called as a sync function, but returned a coroutine, ")


def test_an_inner_policy_gave_up() -> None:
    """Its end is that of the outer policy, whose value counts; a permanent error passes both."""
    outer = BUSY.replace(on_give_up="nothing")

    @outer
    @INNER
    def fail(error: type[Exception]) -> None:
        raise error

    assert fail(Busy) == "nothing"
    with pytest.raises(Broken):
        fail(Broken)


def test_retries_that_are_off_change_nothing() -> None:
    """The error is raised, and the value returned."""

    def fail() -> None:
        raise Busy

    with disabled():
        with pytest.raises(Busy):
            BUSY.replace(on_give_up="nothing").call(fail)
        assert POLLING.replace(on_give_up="nothing").call(lambda: "pending") == "pending"
        assert POLLING.replace(raise_unsatisfied=True).call(lambda: "pending") == "pending"


def test_retries_that_are_on_again_change_what_they_did() -> None:
    """Retries were off once in this process, and are on: `on_give_up` and `Unsatisfied` have their effect again."""
    with disabled():
        test_retries_that_are_off_change_nothing()
    test_an_inner_policy_gave_up()

    def fail() -> None:
        raise Busy

    assert BUSY.with_attempts(1).replace(on_give_up="nothing").call(fail) == "nothing"
    with virtual_time():
        assert POLLING.replace(on_give_up="nothing").call(lambda: "pending") == "nothing"
        with pytest.raises(Unsatisfied):
            POLLING.replace(raise_unsatisfied=True).call(lambda: "pending")


@EVERY_FUNCTION
def test_unsatisfied_is_raised_with_its_report(driver: Driver) -> None:
    """Opt in, and the last refused value is raised with its report."""
    error = driver(POLLING.replace(raise_unsatisfied=True), "pending", "pending").error
    assert isinstance(error, Unsatisfied)
    assert (error.value, str(error)) == ("pending", "on_result refused a value of type str")
    made = report(error)
    assert made is not None
    assert (made.reason, made.count, error.__notes__) == (Reason.ATTEMPTS, 2, [made.note])
    copied = pickle.loads(pickle.dumps(error))
    assert (copied.value, str(copied), report(copied)) == (error.value, str(error), made)
    assert driver(POLLING, "pending", "pending").value == "pending"
    assert driver(POLLING.replace(raise_unsatisfied=True), "pending", "done").value == "done"


@EVERY_FORM
def test_try_again(driver: Driver) -> None:
    """It asks for another attempt, whatever the policy retries, within the limits."""
    policy = BUSY.with_repeatable(False).with_attempts(3)
    outcome = driver(policy, TryAgain, TryAgain("wait", delay=timedelta(seconds=7)), "done")
    assert (outcome.value, outcome.slept) == ("done", [1, 7])
    last = TryAgain("no rows")
    error = driver(policy, TryAgain, TryAgain, last).error
    assert error is last
    made = report(error)
    assert made is not None
    assert (made.reason, made.attempts[-1].text) == (Reason.ATTEMPTS, "no rows")


def test_try_again_is_an_error_like_any_other() -> None:
    """It pickles with its delay, and wrong delays are refused."""
    copied = pickle.loads(pickle.dumps(TryAgain("x", delay=2)))
    assert (copied.args, copied.delay) == (("x",), 2)
    with pytest.raises(ValueError, match="`delay` must be zero or more and finite, got -1"):
        TryAgain(delay=-1)


class Limited(Busy):
    """An error that says how long to wait."""

    seconds = 9.5


def hint(error: Any) -> float | timedelta | None:
    """Return the wait that an error names, or that a value is."""
    return timedelta(seconds=3) if error == "pending" else getattr(error, "seconds", None)


@EVERY_FORM
def test_delays_that_see_the_error(driver: Driver) -> None:
    """A delay replaces the backoff exactly; None leaves it, and the answer of `on` beats both."""
    assert driver(BUSY.replace(delay=hint), Limited, Busy, "done").slept == [9.5, 1]
    assert driver(answering(4).replace(delay=hint), Limited, "done").slept == [4]
    assert driver(BUSY.with_timeout(5).replace(delay=hint), Limited).slept == []


@EVERY_FUNCTION
def test_delays_that_see_the_value(driver: Driver) -> None:
    """A refused value counts, too."""
    assert driver(POLLING.replace(delay=hint), "pending", "done").slept == [3]


@EVERY_FORM
@pytest.mark.parametrize(
    ("delay", "text"), [("soon", "`delay` must return a number of sec"), (-1, "`delay` must be zero")]
)
def test_wrong_delays(driver: Driver, delay: Any, text: str) -> None:
    """The note on the function's own error says what is wrong."""
    outcome = driver(BUSY.with_changes(delay=lambda error: delay), Busy, "done")
    assert isinstance(outcome.error, Busy)
    assert text in outcome.report.text


@EVERY_FORM
def test_events_of_successes(driver: Driver) -> None:
    """Each success has one, the first attempt's as well; failures have none."""
    seen: list[Succeeded] = []
    events: list[Event] = []
    policy = BUSY.replace(on_success=seen.append, on_event=events.append, name="work").with_attempts(2)
    driver(policy, "done")
    driver(policy, Busy, "done")
    driver(policy, Busy, Busy)
    driver(policy, Broken)
    assert seen == [Succeeded("work", 1, 0), Succeeded("work", 2, 1)]
    assert [type(event) for event in events[:2]] == [Failed, Scheduled]


def test_events_of_updates() -> None:
    """A read-modify-write cycle that ends well is a success."""
    seen: list[Succeeded] = []
    policy = BUSY.replace(on_success=seen.append, name="work")
    with virtual_time():
        assert (
            update(read=lambda: 1, modify=lambda n: n + 1, write=lambda n: n, conflict=lambda _: False, policy=policy)
            == 2
        )
    assert seen == [Succeeded("work", 1, 0)]


def divide(event: object) -> float:
    """Fail."""
    return 1 / 0


def test_a_failing_listener_fails_no_success() -> None:
    """It only warns."""
    with pytest.warns(RuntimeWarning, match="a listener failed on Succeeded: ZeroDivisionError"):
        assert BUSY.replace(on_success=divide).call(lambda: "done") == "done"


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"delay": 5}, TypeError, "`delay` must be callable or None, got 5"),
    ({"delay": later}, TypeError, "`delay` must not be async"),
    ({"on_success": 5}, TypeError, "`on_success` must be callable or None, got 5"),
    ({"on_success": later}, TypeError, "`on_success` must not be async"),
    ({"raise_unsatisfied": 1, "on_result": callable}, TypeError, "`raise_unsatisfied` must be True or False, got 1"),
    ({"raise_unsatisfied": True}, ValueError, "`raise_unsatisfied` needs `on_result`, which refuses values"),
]


@pytest.mark.parametrize(("options", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """They are refused when the policy is made."""
    with pytest.raises(error, match=text):
        retry(Busy, **options)


FOR_FUNCTIONS: list[Policy] = [
    rfc9110.policy.replace(on_give_up=None),
    rfc9110.policy.replace(on_success=list.append),
    rfc9110.policy.replace(on_result=callable, raise_unsatisfied=True),
]


def for_redis(policy: Policy) -> object:
    """Make a client of Redis with a policy of no service."""
    from forbear.clients.redis import Redis

    return Redis(policy=policy.replace(service=None))


@pytest.mark.parametrize("policy", FOR_FUNCTIONS, ids=["on_give_up", "on_success", "raise_unsatisfied"])
def test_clients_have_no_place_for_them(policy: Policy) -> None:
    """The error says where they belong; blocks and updates return no value either."""
    from forbear.clients.grpc import RetryInterceptor
    from forbear.clients.httpx import RetryTransport

    makers: list[Any] = [RetryTransport, RetryInterceptor, for_redis]
    for make in makers:
        with pytest.raises(ValueError, match="which is for functions: decorate the one that calls"):
            make(policy)


@pytest.mark.parametrize("form", [Attempts, AsyncAttempts])
def test_blocks_have_no_value(form: Any) -> None:
    """Neither blocks nor updates have one to replace."""
    with pytest.raises(TypeError, match="`on_give_up` replaces a returned value, and a block has none"):
        form(BUSY.replace(on_give_up=None), "block")
    with pytest.raises(TypeError, match="must have no on_give_up, because it would hide whether the change was made"):
        update(read=list, modify=list, write=list, conflict=bool, policy=BUSY.replace(on_give_up=None))


def test_raise_is_a_value() -> None:
    """The default pickles, prints and compares."""
    assert pickle.loads(pickle.dumps(RAISE)) is copy.copy(RAISE) is copy.deepcopy(RAISE) is RAISE
    assert pickle.loads(pickle.dumps(retry(Busy))).on_give_up is RAISE
    assert repr(RAISE) == "RAISE"
    policy = retry(Busy, on_give_up=None, on_success=print, delay=hint)
    assert pickle.loads(pickle.dumps(policy)) == policy != retry(Busy)
    assert forbear.policies.RAISE is RAISE


def test_nothing_is_kept_alive() -> None:
    """A replaced error dies at once."""
    refs: list[weakref.ref[Exception]] = []

    def fail() -> None:
        error = Busy()
        refs.append(weakref.ref(error))
        try:
            raise error
        finally:
            del error

    gc.disable()
    try:
        assert BUSY.with_attempts(1).replace(on_give_up="nothing")(fail)() == "nothing"
        assert refs[0]() is None
    finally:
        gc.enable()

"""Every way to run an operation does the same: one table, nine drivers."""

import copy
from collections.abc import Callable

import pytest

from forbear.core.attempt import Attempt
from forbear.core.backoff import Exponential
from forbear.core.decide import Reason
from forbear.core.events import Event, Failed, GaveUp, Recovered, Scheduled
from forbear.core.report import report
from forbear.core.verdict import TRANSIENT
from forbear.policy import Policy
from forbear.run.runtime import current
from forbear.run.switch import disable, disabled, enable
from forbear_testkit.run.cases import BUSY, CASES, JUDGING, VALUE_CASES, Broken, Busy, Case, answering
from forbear_testkit.run.drivers import DRIVERS, WITH_VALUES, Driver, Outcome

every_driver = pytest.mark.parametrize("drive", DRIVERS, ids=lambda driver: driver.name)
value_drivers = pytest.mark.parametrize("drive", WITH_VALUES, ids=lambda driver: driver.name)


def fresh(policy: Policy) -> Policy:
    """The policy with a budget of its own, if it has one."""
    budget = policy.budget
    return policy if budget is None else policy.with_budget(type(budget)(copy.copy(budget._rule)))


def check(case: Case, outcome: Outcome) -> None:
    """Check that the run ended as the case says."""
    assert outcome.starts == case.starts
    assert outcome.elapsed == case.starts[-1] + case.takes
    if outcome.error is None:
        assert outcome.value == case.result
        return
    assert type(outcome.error) is case.result
    found = report(outcome.error)
    if case.reason is None:
        assert found is None
        assert not hasattr(outcome.error, "__notes__")
        return
    assert found is not None
    assert (found.reason, found.text) == (case.reason, case.text)
    assert [attempt.number for attempt in found.attempts] == list(range(1, len(case.starts) + 1))
    assert [attempt.elapsed for attempt in found.attempts] == [start + case.takes for start in case.starts]
    assert [attempt.delay for attempt in found.attempts] == [*outcome.slept, None]
    assert outcome.error.__notes__ == [found.note]


@every_driver
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_driver_does_the_same(case: Case, drive: Driver) -> None:
    """Value or error, times of all attempts, report and note are the same for every driver."""
    check(case, drive(fresh(case.policy), *case.outcomes, takes=case.takes))


@value_drivers
@pytest.mark.parametrize("case", VALUE_CASES, ids=str)
def test_table_of_values(case: Case, drive: Driver) -> None:
    """`on_result` judges values as `on` judges errors; what never satisfies it is returned in the end."""
    check(case, drive(fresh(case.policy), *case.outcomes))


@every_driver
def test_a_recovery_is_told_step_by_step(drive: Driver) -> None:
    """Failed and Scheduled before each wait, Recovered in the end."""
    told: list[Event] = []
    first, second = Busy("one"), Busy("two")
    policy = BUSY.replace(on_event=told.append, name="fetch")
    assert drive(policy, first, second, "done").value == "done"
    failures = (Attempt(1, "Busy", "one", 0, 1), Attempt(2, "Busy", "two", 1, 1))
    assert told == [
        Failed("fetch", 1, 0, first, "one", TRANSIENT, "Busy"),
        Scheduled("fetch", 2, 0, 1, failures[0]),
        Failed("fetch", 2, 1, second, "two", TRANSIENT, "Busy"),
        Scheduled("fetch", 3, 1, 1, failures[1]),
        Recovered("fetch", 3, 2, failures),
    ]


@every_driver
def test_giving_up_is_told_with_the_report(drive: Driver) -> None:
    """The last failure, then GaveUp with the report that the error carries."""
    told: list[Event] = []
    outcome = drive(BUSY.replace(on_event=told.append, name="fetch").with_attempts(2), Busy("one"), Busy("two"))
    assert outcome.error is not None
    found = report(outcome.error)
    assert found is not None
    assert [type(event) for event in told] == [Failed, Scheduled, Failed, GaveUp]
    assert told[2] == Failed("fetch", 2, 1, outcome.error, "two", TRANSIENT, "Busy")
    assert told[3] == GaveUp("fetch", found)


@value_drivers
def test_refused_values_are_told_without_the_value(drive: Driver) -> None:
    """A value may be a secret or large: its type is named, and the report says why the run ended."""
    told: list[Event] = []
    policy = JUDGING.replace(on_event=told.append, name="fetch").with_attempts(1)
    assert drive(policy, "bad").value == "bad"
    failed, gave_up = told
    assert failed == Failed("fetch", 1, 0, None, "on_result refused a value of type str", TRANSIENT, "str")
    assert isinstance(gave_up, GaveUp)
    assert gave_up.report.note == "forbear: gave up after 1 attempt in 0 s: limit of 1 attempt reached [attempts]"


@every_driver
def test_a_first_success_or_permanent_error_is_not_told(drive: Driver) -> None:
    """Nothing was retried, and nothing should have been."""
    told: list[Event] = []
    policy = BUSY.with_on_event(told.append)
    assert drive(policy, "done").value == "done"
    assert isinstance(drive(policy, Broken).error, Broken)
    assert told == []


@every_driver
def test_events_come_before_the_wait(drive: Driver) -> None:
    """When a listener gets Scheduled, the wait has not begun."""
    at: list[tuple[type, float]] = []
    policy = BUSY.with_on_event(lambda event: at.append((type(event), current.get().monotonic())))
    drive(policy, Busy, "done")
    assert at == [(Failed, 0), (Scheduled, 0), (Recovered, 1)]


@every_driver
@pytest.mark.parametrize("outcomes", [(Busy, "done"), (Busy, Busy)], ids=["recovers", "gives-up"])
def test_a_failing_listener_changes_nothing(drive: Driver, outcomes: tuple[object, ...]) -> None:
    """It is warned about, and the run goes on as if nobody listened."""

    def listen(event: Event) -> None:
        raise ValueError("no room")

    with pytest.warns(RuntimeWarning, match=r"a listener failed on \w+: ValueError: no room"):
        outcome = drive(BUSY.with_on_event(listen).with_attempts(2), *outcomes)
    assert outcome.starts == [0, 1]
    assert isinstance(outcome.error, Busy) or outcome.value == "done"


@every_driver
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "`on` must return a bool, a number of seconds or a Verdict, got None"),
        ("yes", "`on` must return a bool, a number of seconds or a Verdict, got 'yes'"),
        (-1, "`delay` must be zero or more and finite, got -1"),
    ],
)
def test_a_wrong_answer_is_refused(drive: Driver, answer: object, text: str) -> None:
    """The note on the function's own error says that a predicate forgot to return."""
    outcome = drive(answering(answer), Busy)
    assert isinstance(outcome.error, Busy)
    assert outcome.report.reason is Reason.BROKEN
    assert text in outcome.report.text


@every_driver
def test_a_failing_predicate_hides_nothing(drive: Driver) -> None:
    """The function's own error is raised; its note says what the predicate raised."""

    def judge(error: Exception) -> bool:
        raise LookupError("no such rule")

    outcome = drive(BUSY.with_on(judge), Busy)
    assert isinstance(outcome.error, Busy)
    assert outcome.report.text == "a function of the policy raised an error: LookupError: no such rule"


@every_driver
def test_disabled_in_a_block(drive: Driver) -> None:
    """Within `disabled()` a call is made once and its error is not touched."""
    with disabled(), disabled():
        outcome = drive(BUSY, Busy)
    assert outcome.starts == [0]
    assert report(outcome.error) is None
    assert not hasattr(outcome.error, "__notes__")
    assert drive(BUSY, Busy, "done").value == "done"


@every_driver
def test_disabled_everywhere(drive: Driver) -> None:
    """`disable()` holds for the whole process until `enable()`."""
    disable()
    try:
        assert isinstance(drive(BUSY, Busy).error, Busy)
    finally:
        enable()
    assert drive(BUSY, Busy, "done").value == "done"


@value_drivers
def test_disabled_hands_out_any_value(drive: Driver) -> None:
    """With retries off a refused value is returned at once."""
    with disabled():
        assert drive(JUDGING, "bad").value == "bad"


@every_driver
def test_runs_share_nothing(drive: Driver) -> None:
    """A policy can be used again and again; each run starts with all its attempts."""
    outcomes: list[Callable[[], Outcome]] = 3 * [lambda: drive(BUSY, Busy, Busy, "done")]
    assert [outcome().starts for outcome in outcomes] == 3 * [[0, 1, 2]]


@every_driver
def test_a_seed_makes_the_jitter_the_same_every_time(drive: Driver) -> None:
    """The waits of a run differ from each other, and are the same for the same seed."""
    policy = BUSY.with_backoff(Exponential(jitter="full"))
    one, other, third = (drive(policy, *(4 * [Busy]), "done", seed=seed).slept for seed in (1, 1, 2))
    assert one == other != third
    assert len(set(one)) == 4

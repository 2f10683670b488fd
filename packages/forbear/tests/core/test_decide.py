"""The decision: the table that is the product, and the limits around it, each at its boundary."""

import pickle
from functools import partial

import pytest

from forbear.core.backoff import Constant
from forbear.core.decide import Reason, Stop, Wait, decide
from forbear.core.limits import DEFAULT, Limits
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict, settle
from forbear.text.duration import show

INFINITY = float("inf")
DEFAULT_TIMEOUT = "default timeout of 60 s"


def step(
    verdict: Verdict = TRANSIENT,
    limits: Limits | None = None,
    *,
    wait: float = 2,
    attempt: int = 1,
    elapsed: float = 0,
    u: float = 0.5,
    repeatable: bool = True,
) -> float | tuple[Reason, str]:
    """The delay, or why there is none, after the first failure of a repeatable operation unless told otherwise."""
    decided = decide(
        limits or Limits(), Constant(wait), verdict, attempt=attempt, elapsed=elapsed, u=u, repeatable=repeatable
    )
    return decided.delay if isinstance(decided, Wait) else (decided.reason, decided.text)


# Is it repeatable? Always and conditional with the condition present: yes. Conditional without it and never: no.
@pytest.mark.parametrize(
    ("verdict", "repeatable", "not_repeatable"),
    [
        (NOT_EXECUTED, "retry", "retry"),
        (TRANSIENT, "retry", Reason.UNSAFE),
        (PERMANENT, Reason.PERMANENT, Reason.PERMANENT),
        (CONFLICT, Reason.CONFLICT, Reason.CONFLICT),
    ],
    ids=lambda value: value.kind.name if isinstance(value, Verdict) else None,
)
def test_the_table(verdict: Verdict, repeatable: Reason | str, not_repeatable: Reason | str) -> None:
    """Only what the failed attempt means and whether the operation may be executed twice decide together."""
    for allowed, expected in ((True, repeatable), (False, not_repeatable)):
        stop = (expected, expected.value) if isinstance(expected, Reason) else None
        assert step(verdict, repeatable=allowed) == (stop or 2)


def test_the_table_has_all_rows() -> None:
    """There are four kinds of verdict and no more, each with a ready-made value."""
    assert [verdict.kind for verdict in (NOT_EXECUTED, TRANSIENT, PERMANENT, CONFLICT)] == list(Kind)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason.PERMANENT, "the error is permanent"),
        (Reason.CONFLICT, "a conflict: only the whole read-modify-write may be repeated"),
        (Reason.UNSAFE, "the attempt may have been executed and a repeat could do harm"),
        (Reason.ATTEMPTS, "attempts"),
        (Reason.TIMEOUT, "timeout"),
        (Reason.RETRY_AFTER, "the server asked for a longer wait"),
        (Reason.BUDGET, "the retry budget is used up"),
        (Reason.BODY, "the body cannot be sent again"),
    ],
)
def test_reasons_speak_for_themselves(reason: Reason, text: str) -> None:
    """A stop says its reason in words, unless it is given better ones."""
    assert Stop(reason).text == text
    assert Stop(reason, "better").text == "better"
    assert repr(Stop(reason)) == f"Stop({reason!r}, {text!r})"


@pytest.mark.parametrize(
    ("attempts", "attempt", "expected"),
    [
        (1, 1, (Reason.ATTEMPTS, "limit of 1 attempt reached")),
        (2, 2, (Reason.ATTEMPTS, "limit of 2 attempts reached")),
        (5, 4, 2),
        (5, 5, (Reason.ATTEMPTS, "limit of 5 attempts reached")),
        (5, 6, (Reason.ATTEMPTS, "limit of 5 attempts reached")),
        (None, 10**9, 2),
    ],
)
def test_the_limit_of_attempts_counts_the_first_call(attempts: int | None, attempt: int, expected: object) -> None:
    """The limit counts the first call; None is no limit."""
    assert step(limits=Limits(attempts), attempt=attempt) == expected


@pytest.mark.parametrize(
    ("limits", "attempts", "timeout"),
    [
        (Limits(), 5, 60),
        (Limits(attempts=3), 3, None),
        (Limits(timeout=300), None, 300),
        (Limits(attempts=3, timeout=300), 3, 300),
        (Limits(attempts=None), None, 60),
        (Limits(timeout=None), 5, None),
        (Limits().replace(attempts=3), 3, None),
        (Limits().replace(timeout=300), None, 300),
        (Limits(attempts=3).replace(timeout=300), 3, 300),
        (Limits(attempts=3).replace(attempts=None), None, 60),
        (Limits(attempts=3, timeout=300).replace(attempts=9), 9, 300),
        (Limits(attempts=None, timeout=None, unlimited=True), None, None),
        (pickle.loads(pickle.dumps(Limits())).replace(attempts=3), 3, None),
        (pickle.loads(pickle.dumps(Limits(timeout=60))).replace(attempts=3), 3, 60),
    ],
)
def test_a_chosen_limit_lifts_the_default_of_the_other(
    limits: Limits, attempts: int | None, timeout: float | None
) -> None:
    """One limit that the user chose is the only limit; None lifts that default alone; copies remember the choice."""
    assert (limits.attempts, limits.timeout) == (attempts, timeout)


def test_the_text_of_a_stop_says_that_a_limit_is_a_default() -> None:
    """So a user who did not choose it knows where it comes from."""
    assert step(attempt=5) == (Reason.ATTEMPTS, "default limit of 5 attempts reached")
    assert step(limits=Limits(attempts=5), attempt=5) == (Reason.ATTEMPTS, "limit of 5 attempts reached")
    assert step(elapsed=60, wait=1) == (Reason.TIMEOUT, "default timeout of 60 s reached")


@pytest.mark.parametrize(
    ("timeout", "clamp", "elapsed", "wait", "expected"),
    [
        (60, False, 0, 60, 60),
        (60, False, 50, 10, 10),
        (60, False, 50, 10.5, (Reason.TIMEOUT, "timeout of 60 s would be passed by the next wait of 10.5 s")),
        (60, False, 59.5, 0.25, 0.25),
        (60, False, 59.5, 1, (Reason.TIMEOUT, "timeout of 60 s would be passed by the next wait of 1 s")),
        (60, False, 60, 0, (Reason.TIMEOUT, "timeout of 60 s reached")),
        (60, False, 61, 0, (Reason.TIMEOUT, "timeout of 60 s reached")),
        (60, True, 50, 10.5, 10),
        (60, True, 50, 9, 9),
        (60, True, 59.5, 64, 0.5),
        (60, True, 59.5, 0.25, 0.25),
        (60, True, 60, 0, (Reason.TIMEOUT, "timeout of 60 s reached")),
        (60, True, 61, 5, (Reason.TIMEOUT, "timeout of 60 s reached")),
        (None, False, 1e9, 64, 64),
        (None, True, 1e9, 64, 64),
    ],
)
def test_no_wait_ends_after_the_deadline(
    timeout: float | None, clamp: bool, elapsed: float, wait: float, expected: object
) -> None:
    """A wait may end at the deadline but not past it; `clamp` shortens it, if anything is left."""
    assert step(limits=Limits(5, timeout, clamp=clamp), elapsed=elapsed, wait=wait) == expected


@pytest.mark.parametrize(
    ("asked", "u", "wait", "expected"),
    [
        (0, 0.5, 2, 2),
        (0, 0.5, 0, 0.5),
        (5, 0, 2, 5),
        (5, 0.5, 2, 5.5),
        (5, 0.5, 7, 7),
        (20, 0.5, 2, 21),
        (58, 0.5, 2, 60),  # the jitter must not break the deadline
        (60, 0.5, 2, 60),
        (
            60.5,
            0,
            2,
            (
                Reason.RETRY_AFTER,
                "the server asked for a wait of 60.5 s, with 60 s left of the default timeout of 60 s",
            ),
        ),
        (INFINITY, 0, 2, (Reason.RETRY_AFTER, "the server asked not to be called again")),
    ],
)
def test_the_servers_word(asked: float, u: float, wait: float, expected: object) -> None:
    """Wait at least as long as asked, with a second or a tenth of jitter on top, or stop at once."""
    assert step(Verdict(Kind.TRANSIENT, retry_after=asked), u=u, wait=wait) == expected


def test_a_retry_after_late_in_a_run_must_fit_the_rest_of_the_timeout() -> None:
    """The rest of the timeout counts, and is never less than nothing."""
    asks = Verdict(Kind.TRANSIENT, retry_after=11)
    text = "the server asked for a wait of 11 s, with 10 s left of the default timeout of 60 s"
    assert step(asks, elapsed=49) == 11
    assert step(asks, elapsed=50) == (Reason.RETRY_AFTER, text)
    assert step(asks, elapsed=70) == (Reason.RETRY_AFTER, text.replace("10 s", "0 s"))


def test_clamp_never_shortens_what_the_server_asked_for() -> None:
    """A backoff that is too long is cut to what is left, but not below `Retry-After`."""
    limits = Limits(clamp=True)
    assert step(Verdict(Kind.TRANSIENT, retry_after=5), limits, elapsed=54, wait=30) == 6
    assert step(Verdict(Kind.TRANSIENT, retry_after=6), limits, elapsed=54, wait=30) == 6
    assert step(Verdict(Kind.TRANSIENT, retry_after=7), limits, elapsed=54, wait=30) == (
        Reason.RETRY_AFTER,
        "the server asked for a wait of 7 s, with 6 s left of the default timeout of 60 s",
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (901, "the server asked for a wait of 901 s (retry-after-ms), more than max_retry_after=900 s"),
        (INFINITY, "the server asked not to be called again (retry-after-ms)"),
    ],
)
def test_the_header_that_asked_is_named(seconds: float, text: str) -> None:
    """The reason why a run stops names the header of a wait that is too long."""
    verdict = Verdict(Kind.TRANSIENT, retry_after=seconds, wait_from="retry-after-ms")
    step = decide(Limits(5, None), Constant(1), verdict, attempt=1, elapsed=0, u=0.5, repeatable=True)
    assert isinstance(step, Stop)
    assert step.text == text


@pytest.mark.parametrize(
    ("limits", "asked", "expected"),
    [
        (Limits(5, None), 900, 900),
        (
            Limits(5, None),
            901,
            (Reason.RETRY_AFTER, "the server asked for a wait of 901 s, more than max_retry_after=900 s"),
        ),
        (Limits(5, None, max_retry_after=10), 10, 10),
        (
            Limits(5, None, max_retry_after=10),
            10.5,
            (Reason.RETRY_AFTER, "the server asked for a wait of 10.5 s, more than max_retry_after=10 s"),
        ),
        (Limits(5, None, max_retry_after=0), 0, 2),
        (Limits(5, None), INFINITY, (Reason.RETRY_AFTER, "the server asked not to be called again")),
        (Limits(5, 60, max_retry_after=10), 30, 30),  # the timeout decides where there is one
    ],
)
def test_max_retry_after(limits: Limits, asked: float, expected: object) -> None:
    """Without a timeout, a server that asks for more than 15 minutes ends the run."""
    assert step(Verdict(Kind.TRANSIENT, retry_after=asked), limits, u=0) == expected


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(Kind.TRANSIENT, delay=0), 0),
        (Verdict(Kind.TRANSIENT, delay=30), 30),
        (Verdict(Kind.NOT_EXECUTED, delay=0.25), 0.25),
        (Verdict(Kind.TRANSIENT, delay=1, retry_after=5), 5.5),
        (Verdict(Kind.TRANSIENT, delay=9, retry_after=5), 9),
        (
            Verdict(Kind.TRANSIENT, delay=61),
            (Reason.TIMEOUT, "default timeout of 60 s would be passed by the next wait of 61 s"),
        ),
        (Verdict(Kind.PERMANENT, delay=1), (Reason.PERMANENT, "the error is permanent")),
    ],
)
def test_a_delay_in_the_verdict_replaces_the_backoff(verdict: Verdict, expected: object) -> None:
    """It is exact, but neither earlier than the server asked nor past the deadline."""
    assert step(verdict) == expected


def test_an_unknown_failure_is_permanent() -> None:
    """A table without a verdict means that a retry cannot help; a CONFLICT, which is false, stays one."""
    assert settle(None) is PERMANENT
    assert settle(CONFLICT) is CONFLICT


def test_the_default_of_a_limit_is_shown_by_name() -> None:
    """Signatures in the reference name it."""
    assert repr(DEFAULT) == "DEFAULT"


def test_a_verdict_is_true_if_it_asks_for_a_retry() -> None:
    """A judge may combine verdicts with `and`, `or` and `not`."""
    assert [bool(verdict) for verdict in (TRANSIENT, NOT_EXECUTED, PERMANENT, CONFLICT)] == [True, True, False, False]


def test_the_table_comes_before_the_limits() -> None:
    """A permanent error is called permanent and an unsafe repeat unsafe, however late it is."""
    late = partial(step, attempt=5, elapsed=100)
    assert late(PERMANENT) == (Reason.PERMANENT, Reason.PERMANENT.value)
    assert late(TRANSIENT, repeatable=False) == (Reason.UNSAFE, Reason.UNSAFE.value)
    assert late(TRANSIENT) == (Reason.ATTEMPTS, "default limit of 5 attempts reached")


def test_the_backoff_is_asked_for_the_retrys_number() -> None:
    """Retry 0 follows attempt 1, with the draw and the delay before."""
    asked: list[tuple[int, float, float | None]] = []

    class Recording:
        def delay(self, n: int, u: float, previous: float | None = None) -> float:
            asked.append((n, u, previous))
            return 1

    decide(Limits(), Recording(), TRANSIENT, attempt=3, elapsed=0, u=0.25, repeatable=True, previous=7)
    decide(Limits(), Recording(), TRANSIENT, attempt=1, elapsed=0, u=0.75, repeatable=True)
    assert asked == [(2, 0.25, 7), (0, 0.75, None)]


@pytest.mark.parametrize("delay", [-1, float("nan"), INFINITY, -INFINITY])
def test_a_backoff_that_gives_nonsense_is_named(delay: float) -> None:
    """A backoff of somebody's own must return finite numbers of seconds that are zero or more."""

    class Nonsense:
        def delay(self, n: int, u: float, previous: float | None = None) -> float:
            return delay

        def __repr__(self) -> str:
            return "Nonsense()"

    with pytest.raises(ValueError, match="finite") as caught:
        decide(Limits(), Nonsense(), TRANSIENT, attempt=1, elapsed=0, u=0, repeatable=True)
    assert str(caught.value) == (
        f"`backoff` must return finite numbers of seconds that are zero or more, got {delay!r} from Nonsense()"
    )


def test_what_was_decided_prints() -> None:
    """A wait can be read in a debugger."""
    assert repr(Wait(2.5)) == "Wait(2.5)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1e-7, "1e-07 s"),
        (0.0000661, "0.000066 s"),
        (0.00012345, "0.000123 s"),
        (0.05, "0.05 s"),
        (31.23, "31.2 s"),
        (99.94, "99.9 s"),
        (100, "100 s"),
        (600, "600 s"),
        (612.6, "613 s"),
        (1800, "1800 s"),
    ],
)
def test_seconds_for_people(seconds: float, text: str) -> None:
    """Three digits below 100 seconds, whole seconds from there."""
    assert show(seconds) == text

"""The table of cases that every way to run an operation must pass alike."""

from typing import NamedTuple

from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import TokenBucket
from forbear.core.decide import Reason
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy, retry
from forbear.run.budget import Budget


class Busy(Exception):
    """An error that the policies of the table retry."""


class Broken(Exception):
    """An error that they do not retry."""


class Case(NamedTuple):
    """Outcomes played under a policy, and what must come of them.

    `result` is the value or the error's type. `starts` lists when the attempts begin; `reason` and `text` are the
    report's, None where there is none.
    """

    name: str
    policy: Policy
    outcomes: tuple[object, ...]
    result: object
    starts: list[float]
    reason: Reason | None = None
    text: str = ""
    takes: float = 0

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


BUSY = retry(on=Busy, backoff=Constant(1))
DOUBLING = retry(on=Busy, backoff=Exponential(jitter="none"))


def answering(answer: object) -> Policy:
    """A policy whose `on` gives the same answer to every error."""

    def judge(error: Exception) -> object:
        return answer

    return BUSY.replace(on=judge)


def small(capacity: float) -> Budget:
    """A budget of so many retries."""
    return Budget(TokenBucket(capacity, deposit=0))


AGAIN = "default limit of 5 attempts reached"
UNSAFE = f"{Reason.UNSAFE.value}; if it does none, say so with policy.with_repeatable(True)"

CASES = [
    Case("success", BUSY, ("done",), "done", [0]),
    Case("success with None", BUSY, (None,), None, [0]),
    Case("one failure", BUSY, (Busy, "done"), "done", [0, 1]),
    Case("growing waits", DOUBLING, (Busy, Busy, Busy, Busy, "done"), "done", [0, 1, 3, 7, 15]),
    Case("listed waits", BUSY.with_backoff(Sequence([1, 5])), (Busy, Busy, Busy, "done"), "done", [0, 1, 6, 11]),
    Case("permanent at once", BUSY, (Broken,), Broken, [0]),
    Case("permanent later", BUSY, (Busy, Broken), Broken, [0, 1], Reason.PERMANENT, "the error is permanent"),
    Case("attempts used up", BUSY, 5 * (Busy,), Busy, [0, 1, 2, 3, 4], Reason.ATTEMPTS, AGAIN),
    Case(
        "a single attempt",
        BUSY.with_attempts(1),
        (Busy,),
        Busy,
        [0],
        Reason.ATTEMPTS,
        "limit of 1 attempt reached",
    ),
    Case("subclasses of a type", BUSY.with_on((OSError, Busy)), (ConnectionError, Busy, "done"), "done", [0, 1, 2]),
    Case(
        "the next wait would pass the timeout",
        DOUBLING.with_timeout(10),
        5 * (Busy,),
        Busy,
        [0, 1, 3, 7],
        Reason.TIMEOUT,
        "timeout of 10 s would be passed by the next wait of 8 s",
    ),
    Case("an attempt at the deadline", DOUBLING.with_timeout(7), (Busy, Busy, Busy, "done"), "done", [0, 1, 3, 7]),
    Case(
        "an attempt past the deadline",
        BUSY.with_timeout(10),
        3 * (Busy,),
        Busy,
        [0, 5, 10],
        Reason.TIMEOUT,
        "timeout of 10 s reached",
        takes=4,
    ),
    Case(
        "a clamped last wait",
        DOUBLING.with_limits(DOUBLING.limits.replace(attempts=5, timeout=10, clamp=True)),
        5 * (Busy,),
        Busy,
        [0, 1, 3, 7, 10],
        Reason.ATTEMPTS,
        "limit of 5 attempts reached",
    ),
    Case(
        "a clamped last wait and its end",
        DOUBLING.with_limits(DOUBLING.limits.replace(attempts=None, timeout=10, clamp=True)),
        5 * (Busy,),
        Busy,
        [0, 1, 3, 7, 10],
        Reason.TIMEOUT,
        "timeout of 10 s reached",
    ),
    Case(
        "no limit at all",
        retry(on=Busy, attempts=None, timeout=None, unlimited=True, backoff=Constant(100)),
        (*(50 * (Busy,)), "done"),
        "done",
        [100 * n for n in range(51)],
    ),
    Case("answer True", answering(True), (Broken, "done"), "done", [0, 1]),
    Case("answer False", answering(False), (Busy,), Busy, [0]),
    Case("answer in seconds", answering(2.5), (Broken, "done"), "done", [0, 2.5]),
    Case("answer in whole seconds", answering(3), (Broken, "done"), "done", [0, 3]),
    Case("answer zero seconds", answering(0.0), (Broken, "done"), "done", [0, 0]),
    Case("answer transient", answering(TRANSIENT), (Broken, "done"), "done", [0, 1]),
    Case("answer permanent", answering(PERMANENT), (Busy,), Busy, [0]),
    Case("answer conflict", answering(CONFLICT), (Busy,), Busy, [0], Reason.CONFLICT, Reason.CONFLICT.value),
    Case("answer with a delay", answering(Verdict(Kind.TRANSIENT, delay=7)), (Busy, "done"), "done", [0, 7]),
    Case(
        "the server's word",
        answering(Verdict(Kind.TRANSIENT, retry_after=61)),
        (Busy,),
        Busy,
        [0],
        Reason.RETRY_AFTER,
        "the server asked for a wait of 61 s, with 60 s left of the default timeout of 60 s",
    ),
    Case("unsafe", BUSY.replace(repeatable=False), (Busy,), Busy, [0], Reason.UNSAFE, UNSAFE),
    Case(
        "unsafe but not executed",
        answering(NOT_EXECUTED).replace(repeatable=False),
        (Busy, Busy, "done"),
        "done",
        [0, 1, 2],
    ),
    Case("unsafe and permanent", BUSY.replace(repeatable=False), (Broken,), Broken, [0]),
    Case("budget left", BUSY.with_budget(small(2)), (Busy, Busy, "done"), "done", [0, 1, 2]),
    Case(
        "budget used up",
        BUSY.with_budget(small(2)),
        (Busy, Busy, Busy),
        Busy,
        [0, 1, 2],
        Reason.BUDGET,
        "the retry budget is used up",
    ),
    Case("attempts take time", DOUBLING, (Busy, Busy, "done"), "done", [0, 6, 13], takes=5),
]


def _unfit(value: object) -> bool:
    return value != "done"


JUDGING = BUSY.with_on_result(_unfit)

# Blocks have no value to judge.
VALUE_CASES = [
    Case("a right value", JUDGING, ("done",), "done", [0]),
    Case("a refused value", JUDGING, ("bad", None, "done"), "done", [0, 1, 2]),
    Case("refused values and errors", JUDGING, ("bad", Busy, "bad", "done"), "done", [0, 1, 2, 3]),
    Case("a value that is never right", JUDGING, (1, 2, 3, 4, 5), 5, [0, 1, 2, 3, 4]),
    Case(
        "seconds for a value",
        BUSY.with_on_result(lambda value: 4.0 if value == "bad" else False),
        ("bad", 1),
        1,
        [0, 4],
    ),
    Case(
        "a verdict for a value",
        BUSY.with_on_result(lambda value: Verdict(Kind.TRANSIENT, delay=3) if value == "bad" else PERMANENT),
        ("bad", 1),
        1,
        [0, 3],
    ),
    Case("an unsafe value", JUDGING.replace(repeatable=False), ("bad",), "bad", [0]),
    Case("a value over budget", JUDGING.with_budget(small(1)), ("bad", "worse"), "worse", [0, 1]),
    Case("a value too late", JUDGING.with_timeout(1.5), ("bad", "worse"), "worse", [0, 1]),
    Case(
        "an error after refused values",
        JUDGING,
        ("bad", Broken),
        Broken,
        [0, 1],
        Reason.PERMANENT,
        "the error is permanent",
    ),
]

"""The ways in which an error leaves a function that calls something under a policy of its own."""

import contextlib
import contextvars
import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from forbear.core.backoff import Constant
from forbear.policy import Policy, retry
from forbear.run.answers import TryAgain
from forbear_testkit.run.cases import BUSY, Broken, Busy

INNER = BUSY.with_repeatable(False)
OUTER = retry(on=Exception, attempts=3, backoff=Constant(1))


class Failed(Exception):
    """The error that a function makes of another one."""


class Closed(Exception):
    """The error of a clean-up."""


Function = Callable[[], object]


def unchanged(pay: Function) -> None:
    """The error itself."""
    pay()


def raised_from(pay: Function) -> None:
    """An error with a cause."""
    try:
        pay()
    except Busy as error:
        raise Failed("no money") from error


def raised_anew(pay: Function) -> None:
    """An error with a context."""
    try:
        pay()
    except Busy:
        raise Failed("no money")  # noqa: B904


def raised_from_none(pay: Function) -> None:
    """An error whose context is suppressed."""
    try:
        pay()
    except Busy:
        raise Failed("no money") from None


def raised_three_times(pay: Function) -> None:
    """A context of a cause of a context."""
    try:
        try:
            raised_anew(pay)
        except Failed as error:
            raise Broken from error
    except Broken:
        raise Failed from None


def swallowed(pay: Function) -> None:
    """An error after a failure that was handled."""
    with contextlib.suppress(Busy):
        pay()
    raise Failed("of something else")


def replaced_by_a_clean_up(pay: Function) -> None:
    """An error of a `finally` clause."""
    try:
        pay()
    finally:
        raise Closed


def grouped(pay: Function) -> None:
    """A group within a group, with a member that has the failure as its context."""
    try:
        raised_from_none(pay)
    except Failed as error:
        raise ExceptionGroup("several", [Broken(), ExceptionGroup("two", [Broken(), error])]) from None


def copied(pay: Function) -> None:
    """A copy, without cause and context."""
    try:
        raised_from(pay)
    except Failed as error:
        raise copy.copy(error) from None


def pickled(pay: Function) -> None:
    """A copy made by pickle, without cause and context."""
    try:
        raised_from(pay)
    except Failed as error:
        raise pickle.loads(pickle.dumps(error)) from None


def in_another_context(pay: Function) -> None:
    """A failure in a context of its own, as that of a callback."""
    contextvars.copy_context().run(raised_from_none, pay)


def in_a_thread(fail: Callable[[Function], None]) -> Callable[[Function], None]:
    """A failure in a thread of an executor."""

    def run(pay: Function) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(fail, pay).result()

    return run


def asked_to_try_again(pay: Function) -> None:
    """A request for another attempt, made while the failure is handled."""
    try:
        pay()
    except Busy:
        raise TryAgain from None


SHAPES = {
    "unchanged": unchanged,
    "from": raised_from,
    "anew": raised_anew,
    "from-none": raised_from_none,
    "three-times": raised_three_times,
    "swallowed": swallowed,
    "clean-up": replaced_by_a_clean_up,
    "group": grouped,
    "copy": copied,
    "pickle": pickled,
    "context": in_another_context,
    "thread": in_a_thread(unchanged),
    "thread-from": in_a_thread(raised_from),
    "thread-anew": in_a_thread(raised_anew),
    "thread-from-none": in_a_thread(raised_from_none),
    "thread-three-times": in_a_thread(raised_three_times),
    "thread-group": in_a_thread(grouped),
    "try-again": asked_to_try_again,
}


class Payments:
    """A function that takes effect and then fails, under a policy that does not repeat it; `made` counts."""

    def __init__(self, inner: Policy = INNER) -> None:
        self.made = 0
        self.inner = inner

    def __call__(self) -> object:
        return self.inner.call(self._pay)

    def _pay(self) -> None:
        self.made += 1
        raise Busy("lost")

"""The registry: how each contender wraps a function, all set up alike as far as they can be (see SETUP)."""

from collections.abc import AsyncIterable, Callable, Iterable
from contextlib import AbstractContextManager
from logging import WARNING, Logger
from typing import NamedTuple, TypeVar

import backoff
import opnieuw
import redis.asyncio.retry
import redis.backoff
import redis.retry
import stamina
import stamina.instrumentation
import tenacity
from google.api_core.retry import AsyncRetry, Retry, if_exception_type
from redress.errors import ErrorClass
from redress.policy.decorator import retry as redress_retry
from redress.strategies import decorrelated_jitter

import forbear
from benchmarks import by_hand
from benchmarks.table import OURS
from benchmarks.work import ATTEMPTS, ERROR, AsyncWork, Work

SETUP = """\
All retry on OSError, 5 attempts within 60 s, waits that double from 1 s up to 64 s with full jitter; nobody listens.
google-api-core knows no limit of attempts and redis-py no deadline; opnieuw derives its waits from the deadline,
stamina adds its jitter instead of multiplying by it, and redress decorrelates. L0: the bare call. L1: only catches and
calls again. L2: written by hand with all of the above."""

Blocks = Callable[[], Iterable[AbstractContextManager[object]]]
AsyncBlocks = Callable[[], AsyncIterable[AbstractContextManager[object]]]
T = TypeVar("T")
R = TypeVar("R", tenacity.Retrying, tenacity.AsyncRetrying)


class Waits(NamedTuple):
    """The seconds that the contenders are given."""

    initial: float = 1
    maximum: float = 64
    timeout: int = 60


class Contender(NamedTuple):
    """Ways to retry: a function, a coroutine function, a block, a block in a coroutine."""

    wrap: Callable[[Work, Waits], Work]
    awrap: Callable[[AsyncWork, Waits], AsyncWork]
    blocks: Callable[[Waits], Blocks] | None = None
    ablocks: Callable[[Waits], AsyncBlocks] | None = None


def _bare(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    return function


def _catch(function: Work, waits: Waits) -> Work:
    return by_hand.catch(function)


def _acatch(function: AsyncWork, waits: Waits) -> AsyncWork:
    return by_hand.acatch(function)


def _bare_blocks(waits: Waits) -> Blocks:
    return by_hand.bare_tries


def _bare_ablocks(waits: Waits) -> AsyncBlocks:
    return by_hand.abare_tries


def _careful(function: Work, waits: Waits) -> Work:
    return by_hand.careful(function, timeout=waits.timeout, initial=waits.initial, maximum=waits.maximum)


def _acareful(function: AsyncWork, waits: Waits) -> AsyncWork:
    return by_hand.acareful(function, timeout=waits.timeout, initial=waits.initial, maximum=waits.maximum)


def _careful_blocks(waits: Waits) -> Blocks:
    return by_hand.careful_tries


def _careful_ablocks(waits: Waits) -> AsyncBlocks:
    return by_hand.acareful_tries


def policy(waits: Waits) -> forbear.Policy:
    """Ours, as it is set up here."""
    growing = forbear.Exponential(initial=waits.initial, maximum=waits.maximum)
    return forbear.retry(on=ERROR, attempts=ATTEMPTS, timeout=waits.timeout, backoff=growing)


def _forbear(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    return policy(waits)(function)


def _forbear_blocks(waits: Waits) -> Blocks:
    return policy(waits).__iter__


def _forbear_ablocks(waits: Waits) -> AsyncBlocks:
    return policy(waits).__aiter__


def _tenacity(kind: type[R], waits: Waits) -> R:
    return kind(
        retry=tenacity.retry_if_exception_type(ERROR),
        stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_after_delay(waits.timeout),
        wait=tenacity.wait_random_exponential(multiplier=waits.initial, max=waits.maximum),
        reraise=True,
    )


def _tenacity_wrap(function: Work, waits: Waits) -> Work:
    return _tenacity(tenacity.Retrying, waits).wraps(function)


def _tenacity_awrap(function: AsyncWork, waits: Waits) -> AsyncWork:
    return _tenacity(tenacity.AsyncRetrying, waits).wraps(function)


def _tenacity_blocks(waits: Waits) -> Blocks:
    return _tenacity(tenacity.Retrying, waits).__iter__


def _tenacity_ablocks(waits: Waits) -> AsyncBlocks:
    return _tenacity(tenacity.AsyncRetrying, waits).__aiter__


def tenacity_logged(logger: Logger) -> Callable[[Work], Work]:
    """Tenacity with a line of logging before each wait."""
    retrying = _tenacity(tenacity.Retrying, Waits())
    retrying.before_sleep = tenacity.before_sleep_log(logger, WARNING)
    return retrying.wraps


def _stamina(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    stamina.instrumentation.set_on_retry_hooks([])
    return stamina.retry(
        on=ERROR, attempts=ATTEMPTS, timeout=waits.timeout, wait_initial=waits.initial, wait_max=waits.maximum
    )(function)


def _stamina_blocks(waits: Waits) -> Blocks:
    stamina.instrumentation.set_on_retry_hooks([])
    return lambda: stamina.retry_context(
        on=ERROR, attempts=ATTEMPTS, timeout=waits.timeout, wait_initial=waits.initial, wait_max=waits.maximum
    )


def _stamina_ablocks(waits: Waits) -> AsyncBlocks:
    stamina.instrumentation.set_on_retry_hooks([])
    return lambda: stamina.retry_context(
        on=ERROR, attempts=ATTEMPTS, timeout=waits.timeout, wait_initial=waits.initial, wait_max=waits.maximum
    )


def _backoff(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    return backoff.on_exception(
        backoff.expo, ERROR, max_tries=ATTEMPTS, max_time=waits.timeout, factor=waits.initial, max_value=waits.maximum
    )(function)


def _google(function: Work, waits: Waits) -> Work:
    return Retry(if_exception_type(ERROR), waits.initial, waits.maximum, timeout=waits.timeout)(function)


def _agoogle(function: AsyncWork, waits: Waits) -> AsyncWork:
    return AsyncRetry(if_exception_type(ERROR), waits.initial, waits.maximum, timeout=waits.timeout)(function)


def _opnieuw(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    return opnieuw.retry(
        retry_on_exceptions=ERROR, max_calls_total=ATTEMPTS, retry_window_after_first_call_in_seconds=waits.timeout
    )(function)


def _ignore(error: Exception) -> None:
    """redis-py tells of every failure; nobody listens to any contender."""


async def _aignore(error: Exception) -> None:
    """redis-py tells of every failure; nobody listens to any contender."""


def _redis(function: Work, waits: Waits) -> Work:
    retry = redis.retry.Retry(redis.backoff.FullJitterBackoff(waits.maximum, waits.initial), ATTEMPTS - 1, (ERROR,))
    return lambda key: retry.call_with_retry(lambda: function(key), _ignore)


def _aredis(function: AsyncWork, waits: Waits) -> AsyncWork:
    growing = redis.backoff.FullJitterBackoff(waits.maximum, waits.initial)
    retry = redis.asyncio.retry.Retry(growing, ATTEMPTS - 1, (ERROR,))  # type: ignore[arg-type] # it takes any
    return lambda key: retry.call_with_retry(lambda: function(key), _aignore)


def _classified(error: BaseException) -> ErrorClass:
    return ErrorClass.TRANSIENT if isinstance(error, ERROR) else ErrorClass.PERMANENT


def _redress(function: Callable[[bytes], T], waits: Waits) -> Callable[[bytes], T]:
    return redress_retry(
        classifier=_classified, deadline_s=waits.timeout, max_attempts=ATTEMPTS,
        strategy=decorrelated_jitter(waits.initial, waits.maximum),
    )(function)  # fmt: skip


BARE, CATCH, CAREFUL = "L0 bare", "L1 catch", "L2 careful"

YARDSTICKS = {
    BARE: Contender(_bare, _bare),
    CATCH: Contender(_catch, _acatch, _bare_blocks, _bare_ablocks),
    CAREFUL: Contender(_careful, _acareful, _careful_blocks, _careful_ablocks),
}

PEERS = {
    "tenacity": Contender(_tenacity_wrap, _tenacity_awrap, _tenacity_blocks, _tenacity_ablocks),
    "stamina": Contender(_stamina, _stamina, _stamina_blocks, _stamina_ablocks),
    "backoff": Contender(_backoff, _backoff),
    "google-api-core": Contender(_google, _agoogle),
    "opnieuw": Contender(_opnieuw, _opnieuw),
    "redis-py": Contender(_redis, _aredis),
    "redress": Contender(_redress, _redress),
}

CONTENDERS = YARDSTICKS | {OURS: Contender(_forbear, _forbear, _forbear_blocks, _forbear_ablocks)} | PEERS

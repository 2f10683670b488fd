"""Wrong uses in Python, as newcomers wrote them: each is refused with the parameter, the rule and the cure."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import backoff
import celery
import click
import pytest
import stamina
import tenacity

import forbear
from forbear.clients.aiohttp import RetryMiddleware
from forbear.clients.google import retry_for
from forbear.clients.grpc import RetryInterceptor
from forbear.clients.httpx import RetryTransport
from forbear.clients.redis import Redis
from forbear.clients.requests import RetryAdapter
from forbear.clients.urllib3 import Retry
from forbear.services import cloud_storage, redis

retry: Any = forbear.retry
task = celery.Celery("shop", set_as_current=False).task
policy: Any = forbear.retry(OSError)
made: Any = {
    each.__name__: each
    for each in (RetryTransport, RetryAdapter, RetryMiddleware, RetryInterceptor, Retry, Redis, retry_for)
}
shapes: Any = forbear


async def _work() -> None:
    """Do nothing."""


def _plain() -> None:
    """Do nothing."""


def _items() -> Any:
    yield 1


async def _loop() -> None:
    for _ in policy:
        pass


WRONG: list[tuple[Callable[[], object], str]] = [
    # forbear.retry: names of other libraries
    (lambda: retry(OSError, wait=3), "`retry` takes no `wait`: write `backoff`"),
    (lambda: retry(OSError, max_attempts=3), "write `attempts`"),
    (lambda: retry(OSError, max_tries=3), "write `attempts`"),
    (lambda: retry(OSError, total=3), "write `attempts`"),
    (lambda: retry(OSError, retries=3), "write `attempts`, which counts the first call, too"),
    (lambda: retry(OSError, reraise=True), "leave it out, because the last error is always raised"),
    (lambda: retry(OSError, deadline=3), "write `timeout`"),
    (lambda: retry(OSError, giveup=bool), "write `on`"),
    (lambda: retry(OSError, attempt=3), "did you mean `attempts`?"),
    (lambda: retry(OSError, stop=tenacity.stop_after_attempt(3)), "tenacity's stop_after_attempt: write attempts=3"),
    (lambda: retry(on=tenacity.retry_if_exception_type(OSError)), "`on` must not be tenacity's"),
    (lambda: retry(OSError, backoff=tenacity.wait_fixed(2)), "write backoff=forbear.Constant(2.0)"),
    (lambda: retry(OSError, backoff=backoff.expo), "`backoff` must not be backoff's expo"),
    (lambda: retry(on=stamina.retry), "`on` must not be stamina's retry"),
    # forbear.retry: what to retry
    (retry, "`retry` needs the errors to retry, as in forbear.retry(OSError)"),
    (lambda: retry(_items), "write @forbear.retry(OSError)"),
    (lambda: retry(on="OSError"), "`on` must be exception types or a callable"),
    (lambda: retry(on=OSError()), "`on` must be exception types or a callable"),
    (lambda: retry(on=[OSError]), "`on` must be exception types or a callable"),
    (lambda: retry(on=()), "`on` must list at least one exception type"),
    (lambda: retry(int, str), "must be exception types, as in retry(OSError)"),
    (lambda: retry(KeyboardInterrupt), "which ends programs or tasks"),
    (lambda: retry(OSError, on=KeyError), "list them all in one place"),
    (lambda: retry(on=_work), "`on` must not be async"),
    (lambda: retry(OSError, on_result=forbear.transient), "`on_result` judges returned values, and this judges errors"),
    (lambda: retry(OSError, on_result=True), "`on_result` must be callable or None"),
    (lambda: retry(OSError, raise_unsatisfied=True), "`raise_unsatisfied` needs `on_result`"),
    (lambda: retry(OSError, key="order"), "pass a function of the arguments, such as lambda order: order.key"),
    (lambda: retry(on=[503]), "write on=forbear.transient, and call response.raise_for_status()"),
    (lambda: retry(OSError, status_codes=[503]), "write on=forbear.transient, and call response.raise_for_status()"),
    (lambda: retry(3), "got 3; write attempts=3"),
    # forbear.retry: limits and waits
    (lambda: retry(OSError, attempts="3"), "`attempts` must be a whole number or None"),
    (lambda: retry(OSError, attempts=0), "`attempts` must be 1 or more"),
    (lambda: retry(OSError, attempts=True), "`attempts` must be a whole number or None"),
    (lambda: retry(OSError, attempts=2.5), "`attempts` must be a whole number or None"),
    (lambda: retry(OSError, timeout=-1), "`timeout` must be positive and finite or None"),
    (lambda: retry(OSError, timeout=float("nan")), "`timeout` must be a number of seconds or None"),
    (lambda: retry(OSError, attempts=None, timeout=None), "pass unlimited=True if that is what you want"),
    (lambda: retry(OSError, backoff=2), "such as forbear.Exponential()"),
    (lambda: retry(OSError, backoff=forbear.Exponential), "such as forbear.Exponential()"),
    (lambda: retry(OSError, budget=5), "`budget` must be a forbear.budgets.Budget or None"),
    (lambda: policy.with_preset("fast"), "`name` must be one of interactive, mobile, ci, batch"),
    (lambda: policy.with_changes(max_tries=3), "write `attempts`"),
    (lambda: shapes.Exponential(max=3), "`Exponential` takes no `max`: write `maximum`"),
    (lambda: shapes.Exponential(base=3), "write `multiplier`"),
    (lambda: shapes.Exponential(10, maximum=5), "`maximum` must be at least `initial`"),
    (lambda: shapes.Exponential(jitter=True), "`jitter` must be one of full"),
    (lambda: shapes.Constant(delay=1), "`Constant` takes no `delay`: write `seconds`"),
    (lambda: shapes.Sequence(1, 2), "`delays` must list waits in seconds, such as [1, 5, 30]"),
    (lambda: shapes.Limits(max_attempts=3), "`Limits` takes no `max_attempts`: write `attempts`"),
    # What is decorated or called
    (lambda: policy(3), "only a callable can be retried"),
    (lambda: policy.call(None), "only a callable can be retried"),
    (lambda: policy(_items), "repeating it would yield items twice"),
    (lambda: policy(dict), "decorate its methods"),
    (lambda: policy.call(_work), "call it with `policy.acall`"),
    (
        lambda: policy(task(_plain)),
        "celery.local.PromiseProxy, which another decorator made of tests.test_wrong_uses._pl",
    ),
    (lambda: policy(task(bind=True)(_plain)), "put @forbear.retry(...) below that decorator, next to the function"),
    (lambda: policy(click.command()(_plain)), "click.core.Command, which another decorator made of"),
    (lambda: policy(pytest.fixture(_plain)), "_pytest.fixtures.FixtureFunctionDefinition, which another decorator"),
    (lambda: policy(property(str)), "@forbear.retry(...) belongs below @property"),
    (policy.__enter__, "write `for attempt in forbear.retry(...):` and in it `with attempt:`"),
    (lambda: retry(OSError, attempt_timeout=3)(len), "`attempt_timeout` cannot be enforced"),
    (lambda: asyncio.run(_loop()), "would block the event loop while it waits: write `async for attempt in policy`"),
    (lambda: forbear.with_policy(len, timeout=3), "is not decorated by a policy"),
    # Adapters
    (lambda: made["RetryTransport"](forbear.transient), "`policy` must be a forbear.Policy or None"),
    (lambda: made["RetryTransport"](retry(OSError)), "leave `on` out and pass the limits alone (attempts=3)"),
    (lambda: made["RetryAdapter"](retry(ConnectionError)), "none that it raises here is of the type ConnectionError"),
    (lambda: made["RetryTransport"](max_retries=3), "write `attempts`, which counts the first call, too"),
    (lambda: made["RetryMiddleware"](attempts=0), "`attempts` must be 1 or more"),
    (lambda: made["RetryTransport"](on=OSError), "the tables decide what is retried"),
    (lambda: made["RetryTransport"](repeatable=True), "vouch for the requests that may be executed twice"),
    (lambda: made["RetryTransport"](redis.policy), "`policy` must not be the policy of Redis"),
    (lambda: made["RetryTransport"](safe="/search"), 'such as "POST https://api.example.com/v1/search*"'),
    (lambda: made["RetryTransport"](safe="POST https://a.example/<fill in>"), "write what your URL has there"),
    (lambda: made["RetryTransport"](safe=3), "`safe` must be a pattern such as"),
    (lambda: made["Retry"](safe="POST https://a.example/"), "use requests with forbear's RetryAdapter"),
    (lambda: made["Retry"](retry(forbear.transient, on_result=bool)), "which urllib3 has no place for"),
    (lambda: made["RetryInterceptor"](retry(forbear.transient, attempt_timeout=3)), "pass `timeout` to the call"),
    (lambda: made["retry_for"]("GetRole"), "`method` must be the full name of an RPC"),
    (lambda: made["Redis"](safe="FOO BAR"), "there is no FOO"),
    (lambda: made["Redis"](safe="INCRR"), 'is it "INCR"?'),
    (lambda: made["Redis"](safe="EXEC"), "list the commands of the transaction instead"),
    (lambda: made["Redis"](retry_on_timeout=True), "the client's own retries repeat any command; use policy="),
    (lambda: made["Redis"](policy=cloud_storage.policy), "must not be the policy of an HTTP service"),
    (forbear.safe_to_repeat, "needs at least one pattern"),
    (lambda: forbear.stop_on(3), "`event` must have is_set() and wait(timeout)"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("use", "text"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_use(use: Callable[[], object], text: str) -> None:
    """It raises TypeError or ValueError at once, with the text that cures it."""
    with pytest.raises((TypeError, ValueError), match=re.escape(text)):
        use()

"""Both libraries, sync and asyncio, behind one interface, so that every test runs on all four."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from inspect import isawaitable
from types import ModuleType
from typing import Any, NamedTuple

import redis
import redis.asyncio
import valkey
import valkey.asyncio
from redis.exceptions import RedisClusterException
from valkey.exceptions import ValkeyClusterException

import forbear.clients.redis as ours_for_redis
import forbear.clients.valkey as ours_for_valkey
from forbear import AttemptTimeout
from forbear.core.backoff import Constant
from forbear.services.redis.errors import policy

AT_ONCE = policy().with_backoff(Constant(0))
"""The recommended policy, without the waits."""


class Session:
    """A client, and how to run what it returns."""

    def __init__(self, client: Any, runner: asyncio.Runner | None) -> None:
        self.client = client
        self._runner = runner

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Return what a method of the client returns."""
        return self.run(lambda client: getattr(client, name)(*args, **kwargs))

    def run(self, function: Callable[[Any], Any]) -> Any:
        """Call `function` with the client, and return its value, awaited where it is awaitable."""
        if self._runner is None:
            return function(self.client)

        async def awaited() -> Any:
            value = function(self.client)
            return await value if isawaitable(value) else value

        return self._runner.run(awaited(), context=copy_context())

    def execute(self, commands: list[tuple[Any, ...]], **kwargs: Any) -> Any:
        """Execute these commands in a pipeline, and return the responses."""

        def run(client: Any) -> Any:
            pipe = client.pipeline(**kwargs)
            for command in commands:
                pipe.execute_command(*command)
            return pipe.execute()

        return self.run(run)


Connect = AbstractContextManager[Session]


class Flavour(NamedTuple):
    """One library in one style; `errors` has the names of its exceptions."""

    name: str
    errors: ModuleType
    is_async: bool
    ours: Any
    stock: Any
    no_retry: Callable[[], Any]

    @contextmanager
    def session(self, make: Callable[[], Any]) -> Generator[Session]:
        """A client, closed in the end."""
        if not self.is_async:
            with make() as client:
                yield Session(client, None)
            return
        with asyncio.Runner() as runner:

            async def made() -> Any:
                return make()

            client = runner.run(made())
            try:
                yield Session(client, runner)
            finally:
                runner.run(client.aclose())

    def connect(self, port: int, **kwargs: Any) -> Connect:
        """A session with our client, to be used in a `with` block; it waits for nothing between attempts."""
        kwargs = {"policy": AT_ONCE} | kwargs
        return self.session(lambda: self.ours(host="127.0.0.1", port=port, **kwargs))

    def connect_stock(self, port: int, **kwargs: Any) -> Connect:
        """A session with the library's own client and its own retries."""
        return self.session(lambda: self.stock(host="127.0.0.1", port=port, **kwargs))


TOO_SLOW = (
    AttemptTimeout,
    redis.TimeoutError,
    valkey.TimeoutError,
    RedisClusterException,
    ValkeyClusterException,
)


def wait_patiently(attempt: Callable[[float], None]) -> None:
    """Do `attempt` with a limit of 0.25 s, and where a busy machine took longer, with one of 3 s."""
    try:
        attempt(0.25)
    except TOO_SLOW:
        attempt(3)


def no_retry(errors: Any, library: Any) -> Callable[[], Any]:
    """Return a function that makes a `retry` object of a library which repeats nothing."""
    return lambda: library.retry.Retry(errors.backoff.NoBackoff(), 0)


FLAVOURS = [
    Flavour("redis", redis, False, ours_for_redis.Redis, redis.Redis, no_retry(redis, redis)),
    Flavour("redis-async", redis, True, ours_for_redis.AsyncRedis, redis.asyncio.Redis, no_retry(redis, redis.asyncio)),
    Flavour("valkey", valkey, False, ours_for_valkey.Valkey, valkey.Valkey, no_retry(valkey, valkey)),
    Flavour(
        "valkey-async",
        valkey,
        True,
        ours_for_valkey.AsyncValkey,
        valkey.asyncio.Valkey,
        no_retry(valkey, valkey.asyncio),
    ),
]

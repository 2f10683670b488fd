"""A lost response to EXEC, after which the clean-up of the library fails, too: the change is applied once.

The library lifts the WATCH on a connection that it opens for that, and its failure hides the loss.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

import forbear
from forbear.clients._redis.aio import AsyncPipelineMixin
from forbear.clients._redis.client import PipelineMixin
from forbear.core.report import report
from forbear.services.redis import is_conflict
from forbear_testkit.clients.redis.flavours import AT_ONCE, FLAVOURS, Flavour
from forbear_testkit.clients.redis.proxy import FORWARD, HANG, LOSE, Command, Fate, Script, proxy
from forbear_testkit.clients.redis.watched import add_one, loop
from forbear_testkit.rows import sampled

LATER: dict[str, Fate] = {
    "gone": HANG,
    "BUSY": b"-BUSY Redis is busy running a script.\r\n",
    "LOADING": b"-LOADING Redis is loading the dataset in memory\r\n",
    "TRYAGAIN": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "READONLY": b"-READONLY You can't write against a read only replica.\r\n",
    "NOPERM": b"-NOPERM this user has no permissions to run the command\r\n",
}
"""Fates of the commands by which the library cleans up, and of the handshake before them."""

_CLEANUP = (b"HELLO", b"CLIENT", b"SELECT", b"AUTH", b"UNWATCH")


def lost_exec(later: Fate) -> Script:
    """The response to the first EXEC is lost, and the next three commands that clean up meet `later`."""
    lost, left = [False], [3]

    def script(command: Command) -> Fate:
        if command[0] == b"EXEC" and not lost[0]:
            lost[0] = True
            return LOSE
        if lost[0] and command[0] in _CLEANUP and left[0]:
            left[0] -= 1
            return later
        return FORWARD

    return script


@contextmanager
def losing(path: str, flavour: Flavour, later: str) -> Generator[tuple[Any, Any]]:
    """A session through a proxy, and the commands that the proxy has seen."""
    with (
        proxy(path, lost_exec(LATER[later])) as seen,
        flavour.connect(seen.port, socket_timeout=0.25 if later == "gone" else 10, client_name="me") as session,
    ):
        yield seen, session


@pytest.fixture
def _cleanup(request: pytest.FixtureRequest, flavour: Flavour, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pipelines clean up by forbear's `reset` or by the library's, whose failures must not hide the outcome."""
    if request.param:
        clean_up_as_the_library(flavour, monkeypatch)


def _cleans_up(flavour: Flavour) -> bool:
    """Return whether the library cleans up by itself: one leaves its connection open."""
    return flavour.name != "valkey-async"


def clean_up_as_the_library(flavour: Flavour, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove forbear's own `reset` from the pipelines."""
    monkeypatch.delattr(AsyncPipelineMixin if flavour.is_async else PipelineMixin, "reset")


CLEANUPS = [
    pytest.param(flavour, library, id=f"{flavour.name}-{'of-the-library' if library else 'ours'}")
    for flavour in FLAVOURS
    for library in (False, True)
    if not library or _cleans_up(flavour)
]


@pytest.mark.usefixtures("_cleanup")
@pytest.mark.parametrize(("flavour", "_cleanup"), CLEANUPS, indirect=["_cleanup"])
@pytest.mark.parametrize("later", sampled(LATER, 2))
@pytest.mark.parametrize("change", [add_one, loop], ids=["transaction", "loop"])
def test_the_change_is_applied_once(flavour: Flavour, server: redis.Redis, path: str, later: str, change: Any) -> None:
    """The error is that of the loss; its report says that the transaction may have been executed."""
    errors = flavour.errors
    with (
        losing(path, flavour, later) as (seen, session),
        pytest.raises((errors.ConnectionError, errors.TimeoutError, errors.ResponseError)) as caught,
    ):
        change(session, errors=errors) if change is loop else change(session)
    assert server.get("k") == b"1"
    assert seen.executed.count("EXEC") == 1
    assert forbear.events.Reason.UNSAFE in _reasons(caught.value)


def _reasons(error: BaseException | None) -> Iterator[forbear.events.Reason]:
    """Return why the runs gave up whose reports an error carries, or the errors that it hides."""
    while error is not None:
        result = report(error)
        if result is not None:
            yield result.reason
        error = error.__context__


@pytest.mark.parametrize("later", sampled(["gone", "LOADING", "TRYAGAIN"], 1))
def test_update_asks_for_its_own_write(flavour: Flavour, server: redis.Redis, path: str, later: str) -> None:
    """With `mine` forbear finds the change, and does not make it again."""
    server.set("k", "0:")
    seen_values: list[bytes] = []

    def mine(value: bytes) -> bool:
        seen_values.append(value)
        return value.endswith(b":me")

    def modify(value: bytes) -> bytes:
        return b"%d:me" % (int(value.split(b":")[0]) + 1)

    def update(client: Any) -> Any:
        pipe = client.pipeline()

        def read() -> Any:
            pipe.reset()
            pipe.watch("k")
            return pipe.get("k")

        def write(value: bytes) -> None:
            pipe.multi()
            pipe.set("k", value)
            pipe.execute()

        return forbear.update(read=read, modify=modify, write=write, conflict=is_conflict, mine=mine, policy=AT_ONCE)

    async def aupdate(client: Any) -> Any:
        async with client.pipeline() as pipe:

            async def read() -> Any:
                await pipe.reset()
                await pipe.watch("k")
                return await pipe.get("k")

            async def write(value: bytes) -> None:
                pipe.multi()
                pipe.set("k", value)
                await pipe.execute()

            return await forbear.aupdate(
                read=read, modify=modify, write=write, conflict=is_conflict, mine=mine, policy=AT_ONCE
            )

    with losing(path, flavour, later) as (seen, session):
        assert session.run(aupdate if flavour.is_async else update) == b"1:me"
    assert server.get("k") == b"1:me"
    assert seen_values == [b"1:me"]
    assert seen.executed.count("EXEC") == 1


@pytest.mark.parametrize(
    "flavour", [flavour for flavour in FLAVOURS if flavour.is_async and _cleans_up(flavour)], ids=lambda it: it.name
)
def test_an_attempt_that_is_cut_short_while_it_cleans_up(
    flavour: Flavour, server: redis.Redis, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt timeout ends the handshake of a connection made to lift the WATCH; EXEC was executed before."""
    clean_up_as_the_library(flavour, monkeypatch)
    with (
        proxy(path, lost_exec(HANG)) as seen,
        flavour.connect(seen.port, policy=AT_ONCE.with_attempt_timeout(0.5)) as session,
        pytest.raises((flavour.errors.ConnectionError, forbear.AttemptTimeout)) as caught,
    ):
        loop(session, flavour.errors)
    assert server.get("k") == b"1"
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("later", sampled(["BUSY", "NOPERM", "gone"], 1))
def test_a_watch_that_is_not_lifted(flavour: Flavour, server: redis.Redis, path: str, later: str) -> None:
    """The connection is closed instead, so no later transaction fails because of it; the caller's own error is kept."""

    def script(command: Command) -> Fate:
        return LATER[later] if command[0] == b"UNWATCH" else FORWARD

    def run(client: Any) -> Any:
        with client.pipeline() as pipe:
            pipe.watch("k")
            raise KeyError("k")

    async def arun(client: Any) -> Any:
        async with client.pipeline() as pipe:
            await pipe.watch("k")
            raise KeyError("k")

    seconds = 0.25 if later == "gone" else 10
    with proxy(path, script) as seen, flavour.connect(seen.port, socket_timeout=seconds) as session:
        with pytest.raises(KeyError):
            session.run(arun if flavour.is_async else run)
        server.set("k", "changed")
        assert session.execute([("INCRBY", "n", 1)], transaction=True) == [1]
        assert seen.connections == 2

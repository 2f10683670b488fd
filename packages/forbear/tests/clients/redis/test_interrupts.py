"""Signal handlers that raise while a command is under way: the error passes through, and no response is mixed up."""

import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import product
from random import Random
from typing import Any

import pytest
import redis

from forbear.core.report import report
from forbear_testkit.clients.redis.clusters import CLUSTERS, WITH_TRANSACTIONS, open_with
from forbear_testkit.clients.redis.flavours import AT_ONCE, FLAVOURS, Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, proxied
from forbear_testkit.clients.redis.proxy import FORWARD, Command, Fate, proxy
from forbear_testkit.clients.redis.pubsub import done, heard

MINE, YOURS = f"{HERE}mine", f"{HERE}yours"


class Stop(BaseException):
    """An error that no `except Exception` catches, as KeyboardInterrupt is."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "a BaseException": Stop,
    "an Exception": partial(Exception, "time is up"),
    "a TimeoutError": partial(TimeoutError, "time is up"),
    "a ConnectionError": partial(ConnectionError, "time is up"),
}


class Interrupt:
    """A signal that arrives once, when it is `armed`: after a command was sent, or while its response is read.

    The proxy holds the responses to commands for `MINE` until the next command is sent.
    """

    def __init__(self, kind: Callable[[], BaseException]) -> None:
        self.armed = self.comes = False
        self.error = kind()
        self.next_is_sent = threading.Event()

    def arm(self) -> None:
        self.armed = self.comes = True

    def handle(self, *_: object) -> None:
        raise self.error

    def strike(self) -> None:
        if self.armed:
            self.armed = False
            signal.raise_signal(signal.SIGUSR1)
        else:
            self.release()

    def release(self) -> None:
        """Let the held response go, unless the signal is still to come."""
        if not self.armed:
            self.next_is_sent.set()

    def script(self, command: Command) -> Fate:
        """Hold the response to a command for `MINE`."""
        if MINE.encode() in command and self.comes:
            self.comes = False
            self.next_is_sent.wait(5)
        return FORWARD


def _patched(method: Callable[..., Any], before: Callable[[], None], after: Callable[[], None], is_async: bool) -> Any:
    def sync(*args: Any, **kwargs: Any) -> Any:
        before()
        value = method(*args, **kwargs)
        after()
        return value

    async def awaited(*args: Any, **kwargs: Any) -> Any:
        before()
        value = await method(*args, **kwargs)
        after()
        return value

    return awaited if is_async else sync


@contextmanager
def interrupting(flavour: Flavour, place: str, kind: Callable[[], BaseException]) -> Generator[Interrupt]:
    """Yield an interrupt that comes after sending or while reading, as `place` says, in one library and style."""
    interrupt, library = Interrupt(kind), flavour.errors.__name__
    connections = import_module(f"{library}.asyncio.connection" if flavour.is_async else f"{library}.connection")
    parsers = import_module(f"{library}._parsers")
    prefix = "_Async" if flavour.is_async else "_"

    def nothing() -> None:
        pass

    before = signal.signal(signal.SIGUSR1, interrupt.handle)
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, sends in (
            (connections.AbstractConnection, "send_packed_command", True),
            (getattr(parsers, f"{prefix}RESP2Parser"), "read_response", False),
            (getattr(parsers, f"{prefix}RESP3Parser"), "read_response", False),
        ):
            if sends is (place == "sent") or sends:
                strike = interrupt.strike if sends is (place == "sent") else interrupt.release
                steps = (nothing, strike) if sends else (strike, nothing)
                patch.setattr(owner, name, _patched(getattr(owner, name), *steps, flavour.is_async))
        try:
            yield interrupt
        finally:
            signal.signal(signal.SIGUSR1, before)


def _watched(session: Session, interrupt: Interrupt) -> None:
    def run(client: Any) -> Any:
        with client.pipeline(True) as pipe:
            pipe.watch(YOURS)
            interrupt.arm()
            pipe.get(MINE)

    async def arun(client: Any) -> Any:
        async with client.pipeline(True) as pipe:
            await pipe.watch(YOURS)
            interrupt.arm()
            await pipe.get(MINE)

    session.run(arun if hasattr(session.client, "aclose") else run)


def _at_once(step: Callable[[Session], object]) -> Callable[[Session, Interrupt], None]:
    def run(session: Session, interrupt: Interrupt) -> None:
        interrupt.arm()
        step(session)

    return run


def _transact(session: Session) -> None:
    def change(pipe: Any) -> None:
        pipe.multi()
        pipe.get(MINE)

    session("transaction", change, YOURS)


TWICE = [("GET", MINE), ("GET", MINE)]
Form = Callable[[Session, Interrupt], None]
FORMS: dict[str, Form] = {
    "a command": _at_once(lambda session: session("get", MINE)),
    "a blocking command": _at_once(lambda session: session("blpop", [MINE], timeout=1)),
    "a pipeline": _at_once(lambda session: session.execute(TWICE, transaction=False)),
    "a transaction": _at_once(lambda session: session.execute(TWICE, transaction=True)),
    "under WATCH": _watched,
    "transaction()": _at_once(_transact),
}
ON_A_CLUSTER: dict[str, Form] = {
    **FORMS,
    "a pipeline": _at_once(lambda session: session.execute(TWICE)),
}
PLACES = ("sent", "reading")


def _check(flavour: Flavour, session: Session, interrupt: Interrupt, form: Form) -> None:
    """Interrupt what `form` sends; then every key has its own value."""
    session("mset", {MINE: "MINE", YOURS: "YOURS"})
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - the library may replace it by its own
        form(session, interrupt)
    assert [session("get", key) for key in (YOURS, YOURS, MINE)] == [b"YOURS", b"YOURS", b"MINE"]
    assert interrupt.error in _chain(caught.value)
    assert caught.value is interrupt.error or isinstance(interrupt.error, OSError)
    assert report(caught.value) is None or len(report(caught.value).attempts) == 1  # type: ignore[union-attr]


def _chain(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None:
        chain.append(error)
        error = error.__context__
    return chain


def _rows(flavours: Sequence[Flavour], forms: dict[str, Form], few: int) -> pytest.MarkDecorator:
    """All combinations in random order: the first few of them for `make test`."""
    rows = list(product(flavours, forms, PLACES, RAISED))
    Random(7).shuffle(rows)
    return pytest.mark.parametrize(
        ("flavour", "form", "place", "raised"),
        [
            pytest.param(*row, id="-".join((row[0].name, *row[1:])), marks=[pytest.mark.soak] * (number >= few))
            for number, row in enumerate(rows)
        ],
    )


@_rows(FLAVOURS, FORMS, 30)
def test_on_one_server(flavour: Flavour, path: str, form: str, place: str, raised: str) -> None:
    """Whatever is interrupted, with a pool and with one connection, is sent once, and its response is never read."""
    with (
        interrupting(flavour, place, RAISED[raised]) as interrupt,
        proxy(path, interrupt.script) as seen,
        flavour.connect(seen.port, single_connection_client=form == "a command") as session,
    ):
        _check(flavour, session, interrupt, FORMS[form])
    assert seen.asked.count("GET") <= (5 if form in ("a pipeline", "a transaction") else 4)


@_rows(CLUSTERS, ON_A_CLUSTER, 6)
def test_on_a_cluster(flavour: Flavour, nodes: tuple[int, ...], form: str, place: str, raised: str) -> None:
    """The same through the connections of its nodes."""
    if "WATCH" in form or "transaction" in form:
        flavour = flavour if flavour in WITH_TRANSACTIONS else WITH_TRANSACTIONS[flavour.is_async]
    with (
        interrupting(flavour, place, RAISED[raised]) as interrupt,
        proxied(nodes, interrupt.script, interrupt.script) as (_, options),
        open_with(flavour, options) as session,
    ):
        _check(flavour, session, interrupt, ON_A_CLUSTER[form])


@pytest.mark.parametrize("place", PLACES)
def test_an_outer_policy_repeats_no_unsafe_command(flavour: Flavour, path: str, place: str) -> None:
    """The error of the handler carries that the interrupted INCR may have been executed."""
    with (
        interrupting(flavour, place, RAISED["an Exception"]) as interrupt,
        proxy(path, interrupt.script) as seen,
        flavour.connect(seen.port) as session,
    ):
        session("ping")
        interrupt.arm()
        with pytest.raises(Exception, match="time is up"):
            AT_ONCE.with_on(Exception).call(session, "incr", MINE)
    assert seen.asked.count("INCRBY") == 1


@pytest.mark.parametrize("flavour", [*FLAVOURS, *WITH_TRANSACTIONS], ids=lambda flavour: flavour.ours.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_a_watch_does_not_outlive_its_connection(
    flavour: Flavour, path: str, nodes: tuple[int, ...], place: str
) -> None:
    """Who goes on after the interruption gets a WatchError, not an EXEC without WATCH; then the cycle begins again."""
    conflicts: list[bool] = []

    async def cycle(pipe: Any) -> None:
        await done(pipe.watch(YOURS))
        interrupt.arm()
        with pytest.raises(Stop):
            await done(pipe.get(MINE))
        for _ in range(2):
            try:
                pipe.multi()
                pipe.set(YOURS, "changed")
                await done(pipe.execute())
                conflicts.append(False)
            except flavour.errors.WatchError:
                conflicts.append(True)
                await done(pipe.watch(YOURS))

    async def run(client: Any) -> None:
        pipe = client.pipeline(True)
        try:
            await cycle(pipe)
        finally:
            await done(pipe.reset())

    def run_sync(client: Any) -> None:
        with pytest.raises(StopIteration):
            run(client).send(None)

    with interrupting(flavour, place, Stop) as interrupt:
        if flavour in FLAVOURS:
            with proxy(path, interrupt.script) as seen, flavour.connect(seen.port) as session:
                session.run(run if flavour.is_async else run_sync)
        else:
            with (
                proxied(nodes, interrupt.script, interrupt.script) as (_, options),
                open_with(flavour, options) as session,
            ):
                session.run(run if flavour.is_async else run_sync)
    assert conflicts == [True, False]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("raised", [kind for kind in RAISED if kind != "a TimeoutError"])  # "no message" to the library
def test_a_subscription_goes_on(flavour: Flavour, server: redis.Redis, path: str, place: str, raised: str) -> None:
    """The error passes through, and the next message is the next one."""

    async def run(client: Any) -> None:
        pubsub = client.pubsub()
        try:
            await done(pubsub.subscribe("c"))
            assert await heard(pubsub, server, b"first")
            server.publish("c", "second")
            interrupt.arm()
            with pytest.raises(BaseException) as caught:  # noqa: PT011
                await done(pubsub.subscribe("d") if place == "sent" else pubsub.get_message(timeout=5))
            assert interrupt.error in _chain(caught.value)
            assert report(caught.value) is None
            assert await heard(pubsub, server, b"third")
        finally:
            await done(pubsub.aclose() if hasattr(pubsub, "aclose") else pubsub.close())

    def run_sync(client: Any) -> None:
        with pytest.raises(StopIteration):
            run(client).send(None)

    with (
        interrupting(flavour, place, RAISED[raised]) as interrupt,
        flavour.session(lambda: flavour.ours(unix_socket_path=path)) as session,
    ):
        session.run(run if flavour.is_async else run_sync)

"""A caller's own loop around WATCH: refusals before EXEC begin it again, held back and limited by the policy."""

from typing import Any

import pytest
import redis

import forbear
from forbear.core.backoff import Constant
from forbear.core.report import report
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.proxy import CUT, FORWARD, LOSE, Command, Fate, in_turn, proxy
from forbear_testkit.clients.redis.watched import REFUSALS, add_one, loop
from forbear_testkit.rows import sampled


@pytest.mark.parametrize("change", [add_one, loop], ids=["transaction", "loop"])
@pytest.mark.parametrize("command", ["GET", "SET"])
@pytest.mark.parametrize("refusal", sampled(REFUSALS, 2))
def test_a_refusal_begins_the_cycle_again(
    flavour: Flavour, server: redis.Redis, path: str, refusal: str, command: str, change: Any
) -> None:
    """A refusal at once, as of GET, or of a queued command executes nothing; the next cycle makes the change."""
    with (
        proxy(path, in_turn(**{command: [REFUSALS[refusal]] * 2})) as seen,
        flavour.connect(seen.port) as session,
    ):
        change(session, errors=flavour.errors) if change is loop else change(session)
    assert server.get("k") == b"1"
    assert seen.asked.count("WATCH") == 3


def test_a_loop_without_an_end_is_ended(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """The policy limits the cycles in a row that fail; after them the refusal itself is raised."""

    def script(command: Command) -> Fate:
        return REFUSALS["LOADING"] if command[0] == b"SET" else FORWARD

    heard: list[forbear.events.Event] = []
    policy = AT_ONCE.with_attempts(4).with_backoff(Constant(0.001)).with_on_event(heard.append)
    with (
        proxy(path, script) as seen,
        flavour.connect(seen.port, policy=policy) as session,
        pytest.raises(flavour.errors.BusyLoadingError) as caught,
    ):
        loop(session, flavour.errors)
    result = report(caught.value)
    assert result is not None
    assert (result.reason, len(result.attempts)) == (forbear.events.Reason.ATTEMPTS, 4)
    assert [attempt.delay for attempt in result.attempts] == [0.001, 0.001, 0.001, None]
    assert seen.asked.count("WATCH") == 4
    assert [type(event) for event in heard].count(forbear.events.Scheduled) == 3
    assert isinstance(heard[-1], forbear.events.GaveUp)


def test_a_cycle_that_is_through_ends_the_row(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """Each change has all attempts of the policy; the listener hears of the recovery."""
    heard: list[forbear.events.Event] = []
    policy = AT_ONCE.with_attempts(2).with_on_event(heard.append)
    refused: list[Fate] = [REFUSALS["NOREPLICAS"], FORWARD]
    with proxy(path, in_turn(SET=refused * 3)) as seen, flavour.connect(seen.port, policy=policy) as session:
        for _ in range(3):
            loop(session, flavour.errors)
    assert server.get("k") == b"3"
    assert [type(event) for event in heard].count(forbear.events.Recovered) == 3


def test_a_conflict_is_not_held_back(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """Another client was quicker: the caller's loop goes on at once, as often as it likes."""
    left = [3]

    def script(command: Command) -> Fate:
        if command[0] == b"MULTI" and left[0]:
            left[0] -= 1
            server.incrby("k", 10)
        return FORWARD

    policy = AT_ONCE.with_attempts(2).with_backoff(Constant(1000))
    with proxy(path, script) as seen, flavour.connect(seen.port, policy=policy) as session:
        loop(session, flavour.errors)
    assert server.get("k") == b"31"


@pytest.mark.parametrize("off", [True, False], ids=["disabled", "no-policy"])
def test_without_a_policy_the_library_has_its_way(flavour: Flavour, server: redis.Redis, path: str, off: bool) -> None:
    """LOADING is a WatchError then, and other refusals are raised unchanged."""
    options = {} if off else {"policy": None}
    with (
        proxy(path, in_turn(SET=[REFUSALS["LOADING"], FORWARD, REFUSALS["READONLY"]])) as seen,
        flavour.connect(seen.port, **options) as session,
    ):

        def change() -> None:
            loop(session, flavour.errors)

        if off:
            change_ = change

            def change() -> None:
                with forbear.disabled():
                    change_()

        change()
        with pytest.raises(flavour.errors.exceptions.ReadOnlyError):
            change()
    assert server.get("k") == b"1"


@pytest.mark.parametrize("fate", [LOSE, CUT])
def test_a_write_at_once_is_no_reason_to_begin_again(
    flavour: Flavour, server: redis.Redis, path: str, fate: Fate
) -> None:
    """INCR under WATCH is executed at once, so the caller gets its loss."""

    def run(client: Any) -> Any:
        with client.pipeline() as pipe:
            pipe.watch("k")
            return pipe.incr("n")

    async def arun(client: Any) -> Any:
        async with client.pipeline() as pipe:
            await pipe.watch("k")
            return await pipe.incr("n")

    with (
        proxy(path, in_turn(INCRBY=[fate])) as seen,
        flavour.connect(seen.port) as session,
        pytest.raises(flavour.errors.ConnectionError) as caught,
    ):
        session.run(arun if flavour.is_async else run)
    result = report(caught.value)
    assert result is not None
    assert result.reason is forbear.events.Reason.UNSAFE
    assert seen.asked.count("INCRBY") == 1


def test_update_begins_again(flavour: Flavour, server: redis.Redis, path: str) -> None:
    """A loss or refusal before EXEC leaves no doubt, so forbear.update needs no `mine` to go on."""
    from forbear.services.redis import is_conflict

    def update(client: Any) -> Any:
        with client.pipeline() as pipe:

            def read() -> Any:
                pipe.reset()
                pipe.watch("k")
                return pipe.get("k") or b"0"

            def write(value: bytes) -> None:
                pipe.multi()
                pipe.set("k", value)
                pipe.execute()

            return forbear.update(
                read=read, modify=lambda old: b"%d" % (int(old) + 1), write=write, conflict=is_conflict, policy=AT_ONCE
            )

    async def aupdate(client: Any) -> Any:
        async with client.pipeline() as pipe:

            async def read() -> Any:
                await pipe.reset()
                await pipe.watch("k")
                return await pipe.get("k") or b"0"

            async def write(value: bytes) -> None:
                pipe.multi()
                pipe.set("k", value)
                await pipe.execute()

            return await forbear.aupdate(
                read=read, modify=lambda old: b"%d" % (int(old) + 1), write=write, conflict=is_conflict, policy=AT_ONCE
            )

    script = in_turn(GET=[LOSE, REFUSALS["LOADING"]], SET=[REFUSALS["LOADING"], REFUSALS["BUSY"]])
    with proxy(path, script) as seen, flavour.connect(seen.port) as session:
        assert session.run(aupdate if flavour.is_async else update) == b"1"
    assert server.get("k") == b"1"

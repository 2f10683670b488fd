"""Any items and any commands whose targets may be sources of others: the result is that of one step at a time.

Paths begin with the bucket, as in `forbear_testkit.transfer.overlaps`, which has the commands and the model.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings

from forbear.adapters import replace
from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit.transfer.overlaps import (
    BUCKETS,
    CASES,
    GRAPHS,
    Case,
    Contents,
    Graph,
    Pairs,
    read,
    take_steps,
)
from forbear_transfer import Finished, Item, Settings, Summary, TransferError, TransferEvent, Url, aplan, cp, mv
from forbear_transfer.items import Action
from forbear_transfer.plans.order import OrderedItems
from forbear_transfer.progress import Progress
from forbear_transfer.runs import run_blocking
from forbear_transfer.storage.client import Storage
from forbear_transfer.workers.worker_pool import WorkerPool


def check_kept(before: Contents, after: Contents, pairs: Pairs, *, replaces: bool) -> None:
    """Nothing is lost but what a copy replaces."""
    sources = {source for source, _ in pairs}
    replaced = {target for _, target in pairs if replaces} - sources
    assert {data for name, data in before.items() if name not in replaced} <= {*after.values()}


def check_places(before: Contents, after: Contents, pairs: Pairs) -> None:
    """Nothing is where it does not belong."""
    assert {*after.items()} <= {*before.items(), *((target, before.get(source, b"")) for source, target in pairs)}


def url_of(path: str) -> Url:
    """Return the address of an object."""
    bucket, _, name = path.partition("/")
    return Url(bucket, name)


def path_of(place: Url | str) -> str:
    """Return the path of an object."""
    return str(place).removeprefix("gs://")


async def order(graph: Graph, after: Contents) -> bool:
    """Do what the items say in rounds, those of a round in small steps by chance; return whether all went well."""

    async def listed() -> AsyncGenerator[Item]:
        for source, target in graph.pairs:
            item = Item(url_of(source), url_of(target), Action.MOVE if graph.moves else Action.COPY)
            if source == target or source not in graph.names:
                item = replace(item.refuse("as cp does"), is_absent=source != target)
            yield item

    dice, ok = Random(graph.seed), True
    with OrderedItems() as ordered:
        await ordered.fill(listed())
        for number in range(ordered.rounds):
            doing = [do(graph, item, after) async for item in ordered.items_of(number, allowed=ok)]
            while doing:
                one = dice.choice(doing)
                try:
                    await anext(one)
                except StopAsyncIteration:
                    doing.remove(one)
                except TransferError:
                    ok = False
                    doing.remove(one)
    return ok


async def do(graph: Graph, item: Item, after: Contents) -> AsyncGenerator[None]:
    """Read, write and delete, or fail in between."""
    source, target = path_of(item.source), path_of(item.target)
    if item.action is Action.REFUSE or graph.broken.get(source) == "before" or source not in after:
        raise TransferError("it cannot be read")
    read = after[source]
    yield
    if item.generation == 0 and after.get(target, read) != read:
        raise TransferError("it is there already")
    after[target] = read
    yield
    if item.action is Action.MOVE:
        if graph.broken.get(source) or after.get(source) != read:
            raise TransferError("it is written meanwhile")
        del after[source]


@given(GRAPHS)
@settings(max_examples=settings().max_examples * 5)
def test_any_items_are_as_one_step_at_a_time(graph: Graph) -> None:
    """Items among few objects, in rounds: no order within a round and no failure loses or mixes anything.

    Items with nothing in their way succeed. Circles and two moves of one object are refused. The same items again, of
    what is there then, replace no only copy.
    """
    before = {name: name.encode() for name in graph.names}
    after, sources = dict(before), [source for source, _ in graph.pairs]
    whole = all(source in before and source != target for source, target in graph.pairs)
    step = take_steps(before, graph.pairs, moves=graph.moves)
    twice = graph.moves and len({*sources}) < len(sources)
    try:
        ok = asyncio.run(order(graph, after))
    except ValueError:
        assert after == before
        assert step is None or twice
        return
    assert not (whole and (step is None or twice))
    check_kept(before, after, graph.pairs, replaces=not graph.moves)
    check_places(before, after, graph.pairs)
    broken = any(source in graph.broken for source in sources if source in before)
    assert ok or not whole or step is None or not step.clean or broken
    if ok:
        assert step is not None
        assert after == step.after
    elif not broken and all(source != target for source, target in graph.pairs):  # what waits for nothing is done
        free = [(source, target) for source, target in graph.pairs if source in before and target not in before]
        assert all(target in sources or after.get(target) == before[source] for source, target in free)
    with suppress(ValueError):
        asyncio.run(order(graph._replace(names=sorted(after), broken={}), after))
    check_kept(before, after, graph.pairs, replaces=not graph.moves)


def contents(cloud: Cloud) -> Contents:
    """Return all objects by their paths."""
    return {
        f"{bucket}/{one.name}": bytes(one.content)
        for bucket in BUCKETS
        for one in cloud.store.bucket(bucket).versions()
    }


def prepare(cloud: Cloud, names: Sequence[str], folder: Path) -> Contents:
    """Have just these objects, each of which holds its path, and no state; return them."""
    cloud.reset()
    cloud.clear_faults()
    shutil.rmtree(folder, ignore_errors=True)
    for bucket in BUCKETS:
        cloud.store.create_bucket(bucket)
    for name in names:
        bucket, _, rest = name.partition("/")
        cloud.store.put(bucket, rest, name.encode())
    return contents(cloud)


def make_run(cloud: Cloud, case: Case, folder: Path) -> Callable[..., Summary]:
    """Return what runs a command, or carries out the items of `plan` in any order."""
    sources, target, there = [f"gs://{source}" for source in case.sources], f"gs://{case.target}", Settings(cloud.url)

    def run(**more: Any) -> Summary:
        with virtual_time(seed=1):
            if case.how == "plan":
                return run_blocking(there, execute_plan, "aexecute")
            return (mv if case.moves else cp)(sources, target, settings=there, **case.options, state=folder, **more)

    async def shuffle(storage: Storage) -> AsyncGenerator[Item]:
        items = await aplan(storage, sources, target, **case.options)
        Random(len(items)).shuffle(items)
        for item in items:
            yield item

    async def execute_plan(storage: Storage) -> Summary:
        pool = WorkerPool(storage, Progress(None), state=folder)
        await pool.run(shuffle(storage))
        return pool.summary

    return run


def list_dry(run: Callable[..., Summary]) -> Pairs:
    """Return what a dry run lists, no item before one that reads its target."""
    events: list[TransferEvent] = []
    with suppress(ValueError):
        run(dry_run=True, on_event=events.append)
    written: set[Url | str] = set()
    items = [one.outcome.item for one in events if isinstance(one, Finished)]
    for item in items:
        if item.action in (Action.COPY, Action.MOVE):
            assert item.source not in written
            written |= {item.target} - {item.source}
    return [(path_of(item.source), path_of(item.target)) for item in items]


@given(CASES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=settings().max_examples * 2)
def test_any_command_is_as_one_step_at_a_time(cloud: Cloud, tmp_path: Path, case: Case) -> None:
    """Commands over folders, patterns and names, with trouble: they succeed if nothing is in their way.

    The result is that of the model; or nothing was changed; or what failed has lost nothing, and does not when it runs
    again. Items that `plan` returns can be carried out in any order.
    """
    before, run = prepare(cloud, case.names, tmp_path), make_run(cloud, case, tmp_path)
    pairs, dirty, refused = read(case)
    skips = "no_clobber" in case.options
    step = take_steps(before, pairs, moves=case.moves, skips=skips)
    is_clean = step is not None and step.clean and not (dirty or refused)
    if case.how == "dry run first":
        listed = list_dry(run)
        assert contents(cloud) == before
        assert not is_clean or {*pairs} <= {*listed}
    is_clean = is_clean and not case.trouble.refused
    case.trouble.befall(cloud)
    try:
        summary = run()
    except (ValueError, TransferError):
        assert contents(cloud) == before
        chains = {source for source, _ in pairs} & {target for _, target in pairs}
        assert not is_clean or (case.how == "plan" and chains)
        return
    check_kept(before, contents(cloud), pairs, replaces=not skips)
    check_places(before, contents(cloud), pairs)
    assert summary.ok or not is_clean, summary.failures
    assert not refused or case.trouble.refused  # a folder that cannot be listed is no clash
    if summary.ok:
        assert step is not None
        assert contents(cloud) == step.after
    if refused:
        return  # the folder that could not be listed hid a clash: what has been moved, a second move may replace
    cloud.clear_faults()
    with suppress(ValueError, TransferError):
        run()
    check_kept(before, contents(cloud), pairs, replaces=not skips)

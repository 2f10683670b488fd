"""A trial: carries out one plan with forbear_transfer, in virtual time, and has the judge look at the result."""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import closing, contextmanager, nullcontext
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import BinaryIO
from unittest.mock import patch

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_cloud.storage.fields import query_integer
from forbear_testkit.transfer.campaign import judge
from forbear_testkit.transfer.campaign.judge import SOURCE, TARGET, Violation, World
from forbear_testkit.transfer.campaign.line import Line
from forbear_testkit.transfer.campaign.plans import CHUNK, KIB, LARGEST, Plan, armed
from forbear_testkit.transfer.recorder import Receiver
from forbear_transfer.downloads.download import download
from forbear_transfer.errors import TransferError
from forbear_transfer.objects import Object, Url
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.rewrite import copy
from forbear_transfer.storage.client import Storage
from forbear_transfer.uploads.upload import upload

STALL_TIMEOUT = 0.08
SMALL = 128 * KIB
_PATIENCE = 30  # real seconds: more means that it hangs
_BYTES = Random(4).randbytes(4 * LARGEST)


def try_plan(plan: Plan, cloud: Cloud, folder: Path) -> str:
    """Carry out a plan, again without faults if it failed, and return how it ended; Violation where that is not right.

    `folder` is emptied before.
    """
    dice = Random(plan.seed)
    begin, older = dice.randrange(LARGEST), dice.randrange(LARGEST)
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    right, other = _BYTES[begin : begin + plan.size], _BYTES[older : older + 100_000]
    world = World.of(plan, cloud, folder, right, right if plan.same else other)
    try:
        with small_thresholds(), virtual_time(plan.seed):
            return asyncio.run(_trial(world))
    except Violation as violation:
        raise Violation(f"{violation}\n{plan}\n{_log(world)}") from violation.__cause__
    finally:
        cloud.clear_faults()
        cloud.store.sessions.clear()


async def _trial(world: World) -> str:
    """Once with faults, and if that failed once without, at the same address: what is kept belongs to a server."""
    plan, cloud = world.plan, world.cloud
    cloud.fault(*(Fault.from_json({**armed(fault), "path": f"/b/{world.bucket}/"}) for fault in plan.faults))
    with Line(cloud.url, plan.cuts) if plan.cuts else nullcontext(cloud) as place:
        error = await _run(world, place.url, plan.attempts)
        if error is None:
            return "done"
        if not plan.excuses:
            raise Violation(f"it failed, with nothing to excuse it: {error!r}") from error
        _check_kind(error)
        cloud.clear_faults()
        if isinstance(place, Line):
            place.mend()
        return await _try_again(world, place.url, error)


async def _try_again(world: World, url: str, error: Exception) -> str:
    """Carry out the plan without faults, after a run that ended with `error`."""
    plan, cloud = world.plan, world.cloud
    settle(cloud)
    if plan.direction not in ("up", "stream") and world.live(SOURCE) is None:
        world.put_source()
    again: Exception | None = error
    for _ in range(2 if plan.disturbed else 1):  # a session may find out at its end only what somebody else has done
        again = await _run(world, url, None)
        settle(cloud)
        if again is None:
            return f"failed: {type(error).__name__}"
    # What was to be there or to be read is gone for good; or the first run made it, without knowing.
    if (plan.disturbed or (plan.writes and world.ours)) and (plan.pinned or plan.generation != "any"):
        return f"failed again: {type(error).__name__}, {type(again).__name__}"
    raise Violation(f"it failed again, without faults: {again!r}, after {error!r}") from again


def settle(cloud: Cloud) -> None:
    """Wait until the cloud has ended all that a run has sent: what it took long for would be taken for the next run's.

    It accepts connections in order, so a request that is answered follows all that came before.
    """
    with closing(HTTPConnection(cloud.url.removeprefix("http://"))) as connection:
        connection.request("GET", "/_cloud/faults")
        connection.getresponse().read()
    wait = threading.Event()
    while cloud.connections:
        wait.wait(0.001)


async def _run(world: World, url: str, attempts: int | None) -> Exception | None:
    """Transfer once, judge the result, and return the error if it failed."""
    told, before = _Told(), world.ours if world.plan.writes else []
    current_progress.set(Progress(told))
    world.out.clear()
    timer = asyncio.timeout(_PATIENCE)
    policy = cloud_storage.policy if attempts is None else cloud_storage.policy.with_attempts(attempts)
    try:
        async with timer, Storage(endpoint=url, policy=policy, stall_timeout=STALL_TIMEOUT) as storage:
            made = await _transfer(world, storage)
    except Exception as error:
        if timer.expired():
            raise Violation("it hangs") from error
        judge.failed(world, error, before)
        return error
    judge.done(world, made.generation, told.count, before)
    return None


async def _transfer(world: World, storage: Storage) -> Object:
    plan, state = world.plan, world.state
    source, target = Url(world.bucket, SOURCE), Url(world.bucket, TARGET)
    wanted = {"any": None, "absent": 0, "older": world.first}[plan.generation]
    match plan.direction:
        case "up":
            return await upload(storage, world.local_source, target, generation=wanted, chunk_size=CHUNK, state=state)
        case "stream":
            return await upload(storage, _stream(world), target, generation=wanted, chunk_size=CHUNK, state=state)
        case "copy":
            return await copy(storage, source, target, generation=wanted, state=state)
        case _:
            known: Url | Object = source
            if plan.pinned:
                known = Url(world.bucket, SOURCE, world.live(SOURCE))
            elif plan.seekable:
                known = await storage.stat(source) or source
            slices = 3 if plan.direction == "sliced" else None
            place = _Out(world.out) if plan.direction == "out" else world.local_target
            return await download(storage, known, place, slices=slices, decode=plan.decode, state=state)


def _stream(world: World) -> AsyncIterator[bytes] | BinaryIO:
    if world.plan.seekable:
        return BytesIO(world.right)

    async def pieces() -> AsyncIterator[bytes]:
        dice, place = Random(world.plan.seed), 0
        while place < len(world.right):
            size = dice.choice((1, 1000, 65_536, 300_000))
            yield world.right[place : place + size]
            place += size

    return pieces()


class _Out(BytesIO):
    """A stream that notes what it is given."""

    def __init__(self, given: list[bytes]) -> None:
        super().__init__()
        self._given = given

    def write(self, data: object) -> int:
        self._given.append(bytes(data))  # type: ignore[call-overload]
        return len(self._given[-1])

    def seekable(self) -> bool:
        return False


class _Told(Receiver):
    """A listener that adds up."""

    def __init__(self) -> None:
        self.count = 0

    def moved(self, count: int) -> None:
        self.count += count


class _Renewed:
    """Credentials that can be had anew, as often as the server wants others."""

    def __init__(self) -> None:
        self._number = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._number}"}

    async def renew(self, rejected: Mapping[str, str]) -> bool:
        if rejected == await self.headers():
            self._number += 1
        return True


async def _tokens(*_: object) -> _Renewed:
    return _Renewed()


@contextmanager
def small_thresholds() -> Generator[None]:
    """Let objects of a mebibyte count as large, rewrites take several calls, and credentials expire."""
    with (
        patch("forbear_transfer.downloads.download.SMALL", SMALL),
        patch("forbear_transfer.downloads.slices._MIN_SLICE", SMALL // 2),
        patch("forbear_transfer.downloads.slices._SAVED_EVERY", SMALL),
        patch("forbear_transfer.rewrite.SMALL", SMALL),
        patch("forbear_transfer.storage.client.tokens", _tokens),
        rewrites_in_steps(),
    ):
        yield


@contextmanager
def rewrites_in_steps() -> Generator[None]:
    """Have the cloud copy no more than a mebibyte in one call, as one of several places may."""

    def limited(query: Mapping[str, str], name: str) -> int | None:
        return 1024 * KIB if name == "maxBytesRewrittenPerCall" else query_integer(query, name)

    with patch("forbear_cloud.api.copies.query_integer", limited):
        yield


def _check_kind(error: Exception) -> None:
    if not isinstance(error, TransferError | OSError):
        raise Violation(f"no clear error: {error!r}") from error


def _log(world: World) -> str:
    """The requests, and the events."""
    lines = [
        f"  {each.method} {each.operation} {each.headers.get('content-range', '')}{each.headers.get('range', '')} "
        f"{each.size} bytes: {each.status}" + (f" ({each.fault})" if each.fault else "")
        for each in list(world.cloud.requests)[-60:]
        if world.bucket in each.path
    ]
    return "\n".join(("requests:", *lines))

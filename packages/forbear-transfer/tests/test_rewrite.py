"""Copies within the cloud: one new generation each, whatever happens to the responses."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_cloud.http.messages import Json
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.transfer.recorder import Receiver
from forbear_transfer import HttpError, Object, Storage, TargetChanged, TargetExists, TransferError, Url
from forbear_transfer.progress import Progress, current_progress
from forbear_transfer.rewrite import copy

REWRITE = "storage.objects.rewrite"
MIB = 1024 * 1024
SOURCE, TARGET = Url("bkt", "from"), Url("bkt", "to/it")
BIG = b"0123456789abcdef" * (9 * MIB // 16)


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """Yield a bucket with an object that has metadata."""
    fields: dict[str, Json] = {"contentType": "text/plain", "metadata": {"key": "value"}}
    cloud.store.put("bkt", "from", b"hello", fields)
    return cloud


def content(cloud: Cloud, name: str = "to/it") -> bytes:
    """Return the data of an object."""
    return bytes(cloud.store.object("bkt", name).content)


def made(cloud: Cloud) -> int:
    """Return how many generations were made by copies."""
    return cloud.effects.count(REWRITE)


async def copied(
    cloud: Cloud, source: Url | Object = SOURCE, generation: int | None = None, chunk_size: int | None = None
) -> Object:
    """Copy in virtual time."""
    with virtual_time():
        async with Storage(endpoint=cloud.url) as storage:
            return await copy(storage, source, TARGET, generation=generation, chunk_size=chunk_size)


async def test_what_makes_no_sense_is_refused(cloud: Cloud) -> None:
    """Invalid sources, targets and chunk sizes are refused before any request."""
    async with Storage(endpoint=cloud.url) as storage:
        for source, target, size, text in [
            (Url("bkt"), TARGET, None, "`source` must name an object"),
            (SOURCE, Url("bkt"), None, "`target` must name an object"),
            (SOURCE, Url("bkt", "x", 5), None, "`target` must not name a version"),
            (SOURCE, TARGET, 1000, "`chunk_size` must be a multiple of 1048576"),
        ]:
            with pytest.raises(ValueError, match=text):
                await copy(storage, source, target, chunk_size=size)


async def test_a_copy_has_the_data_and_the_metadata(filled: Cloud) -> None:
    """A copy is one new generation with data and metadata of the source."""
    made_object = await copied(filled)
    assert content(filled) == b"hello"
    assert (made_object.content_type, made_object.metadata) == ("text/plain", {"key": "value"})
    assert made(filled) == 1


async def test_what_is_there_is_replaced_by_its_generation(filled: Cloud) -> None:
    """An existing target is replaced under its generation; the first guess is that it does not exist."""
    filled.store.put("bkt", "to/it", b"old")
    await copied(filled)
    assert content(filled) == b"hello"
    assert all("ifGenerationMatch=" in one.query for one in filled.requests if one.operation == REWRITE)


@pytest.mark.parametrize("lose", [Fault.reset, Fault.close, partial(Fault.status, 503)])
@pytest.mark.parametrize("there", [False, True])
async def test_a_lost_response_makes_no_new_generation(lose: Callable[..., Fault], there: bool, filled: Cloud) -> None:
    """After a lost response, the repeated request is refused (412), and the copy is found at the target."""
    if there:
        filled.store.put("bkt", "to/it", b"old")
    filled.fault(lose(when="after", operation=REWRITE, skip=int(there)))
    made_object = await copied(filled)
    assert content(filled) == b"hello"
    assert made(filled) == 1
    assert filled.pending_faults == 0
    assert made_object.generation == filled.store.object("bkt", "to/it").generation


async def test_faults_before_it_are_retried(filled: Cloud) -> None:
    """A failed call is repeated under its precondition."""
    filled.fault(Fault.status(429, operation=REWRITE, times=2), Fault.reset(operation=REWRITE))
    await copied(filled)
    assert made(filled) == 1


async def test_what_must_not_be_there_stays(filled: Cloud) -> None:
    """With generation=0, an existing target stays."""
    filled.store.put("bkt", "to/it", b"old")
    with pytest.raises(TargetExists):
        await copied(filled, generation=0)
    assert content(filled) == b"old"


async def test_a_version_that_is_gone_is_not_replaced(filled: Cloud) -> None:
    """If the target is another generation than the required one, the copy fails."""
    old = filled.store.put("bkt", "to/it", b"old").generation
    filled.store.put("bkt", "to/it", b"newer")
    with pytest.raises(TargetChanged):
        await copied(filled, generation=old)
    assert content(filled) == b"newer"


async def test_a_large_object_takes_several_calls(cloud: Cloud) -> None:
    """Each call has the token of the one before, and reports its progress."""
    cloud.store.put("bkt", "from", BIG)
    heard: list[int] = []

    class Heard(Receiver):
        def moved(self, count: int) -> None:
            heard.append(count)

    current_progress.set(Progress(Heard()))
    await copied(cloud, chunk_size=4 * MIB)
    assert content(cloud) == BIG
    assert made(cloud) == 1
    assert (sum(heard), heard[0]) == (len(BIG), 4 * MIB)


async def test_a_source_that_is_replaced_is_copied_anew(cloud: Cloud) -> None:
    """If the source is replaced, the copy starts again; the parts of two versions never mix."""
    cloud.store.put("bkt", "from", BIG)
    newer = bytes(reversed(BIG))
    cloud.fault(Fault.replace_object(newer, operation=REWRITE, skip=1))
    await copied(cloud, chunk_size=4 * MIB)
    assert content(cloud) == newer
    assert made(cloud) == 1


async def test_a_version_that_was_named_is_that_or_nothing(filled: Cloud) -> None:
    """If the generation that the source names is gone, the copy fails."""
    pinned = Url("bkt", "from", filled.store.object("bkt", "from").generation)
    filled.fault(Fault.replace_object(operation=REWRITE))
    with pytest.raises(HttpError, match="404"):
        await copied(filled, pinned)
    assert made(filled) == 0


@pytest.mark.parametrize("source", [Url("bkt", "nothing"), Url("nowhere", "from")])
async def test_a_source_that_is_not_there_is_an_error(source: Url, filled: Cloud) -> None:
    """The error names the missing source."""
    with pytest.raises(HttpError, match=f"copy {source}: 404"):
        await copied(filled, source)


async def test_a_target_bucket_that_is_not_there_is_an_error(filled: Cloud) -> None:
    """A missing target bucket is not taken for a replaced source."""
    async with Storage(endpoint=filled.url) as storage:
        with pytest.raises(HttpError, match="404"):
            await copy(storage, SOURCE, Url("nowhere", "x"))


async def cut_short(cloud: Cloud, calls: int) -> None:
    """Let a copy end after a number of calls, as if the process had died."""
    with virtual_time():
        async with Storage(endpoint=cloud.url) as storage:
            task = asyncio.create_task(copy(storage, SOURCE, TARGET, chunk_size=2 * MIB))
            while sum(one.operation == REWRITE for one in cloud.requests) < calls:
                await asyncio.wait([task], timeout=0.001)
            task.cancel()
            await asyncio.wait([task])


async def test_the_next_run_goes_on_with_the_token(cloud: Cloud) -> None:
    """The next run continues with the saved token."""
    cloud.store.put("bkt", "from", BIG)
    cloud.fault(Fault.delay(30, operation=REWRITE, skip=2, when="after"))
    await cut_short(cloud, 3)
    cloud.clear_faults()
    before = len(cloud.requests)
    await copied(cloud, chunk_size=2 * MIB)
    assert content(cloud) == BIG
    first = next(one for one in list(cloud.requests)[before:] if one.operation == REWRITE)
    assert "rewriteToken=" in first.query
    assert made(cloud) == 1


async def test_a_copy_that_was_done_when_the_process_died_is_found(cloud: Cloud) -> None:
    """If the copy was done when the process died, the next run finds it at the target."""
    cloud.store.put("bkt", "from", BIG)
    cloud.fault(Fault.delay(30, operation=REWRITE, skip=4, when="after"))
    await cut_short(cloud, 5)
    assert made(cloud) == 1
    cloud.clear_faults()
    await copied(cloud, chunk_size=2 * MIB)
    assert made(cloud) == 1


@pytest.mark.parametrize("change", ["source", "token"])
async def test_a_state_that_does_not_fit_any_more_is_dropped(change: str, cloud: Cloud) -> None:
    """If the source was replaced or the token is unknown, the copy starts again."""
    cloud.store.put("bkt", "from", BIG)
    cloud.fault(Fault.delay(30, operation=REWRITE, skip=2, when="after"))
    await cut_short(cloud, 3)
    cloud.clear_faults()
    if change == "source":
        cloud.store.put("bkt", "from", b"newer" + BIG)
    else:
        cloud.store.rewrites.clear()
    await copied(cloud, chunk_size=2 * MIB)
    assert content(cloud) == content(cloud, "from")
    assert made(cloud) == 1


async def test_a_continued_copy_keeps_to_its_own_precondition(cloud: Cloud) -> None:
    """A run that must not replace the target does not continue one that was about to."""
    cloud.store.put("bkt", "from", BIG)
    cloud.store.put("bkt", TARGET.name, b"precious")
    cloud.fault(Fault.delay(30, operation=REWRITE, skip=3, when="after"))
    await cut_short(cloud, 4)
    cloud.clear_faults()
    with pytest.raises(TargetExists):
        await copied(cloud, chunk_size=2 * MIB, generation=0)
    assert content(cloud) == b"precious"


async def test_nothing_stays_on_disk_once_it_is_done(cloud: Cloud, tmp_path: Path) -> None:
    """The state of a large copy is deleted at its end; a small copy has none."""
    cloud.store.put("bkt", "from", BIG)
    async with Storage(endpoint=cloud.url) as storage:
        await copy(storage, SOURCE, TARGET, state=tmp_path / "states", chunk_size=4 * MIB)
        assert list((tmp_path / "states").iterdir()) == []
        cloud.store.put("bkt", "from", b"small")
        await copy(storage, SOURCE, TARGET, state=tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("answer", ["{}", '{"done": false}', '{"done": false, "rewriteToken": "t"}', '{"done": true}'])
async def test_a_service_that_does_not_come_to_an_end(answer: str) -> None:
    """An invalid response is an error at once; a service without progress is abandoned at the limits of the policy."""
    source = Object("bkt", "from", 1, 5, crc32c="AAAAAA==")
    with virtual_time(seed=1), Wire(reply(200, answer.encode())) as wire:
        async with Storage(endpoint=wire.url) as storage:
            with pytest.raises(TransferError, match=r"does not say|nothing more|does not describe"):
                await copy(storage, source, TARGET)
        assert len(wire.seen) < 50

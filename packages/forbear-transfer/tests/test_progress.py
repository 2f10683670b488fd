"""Progress as events: what a listener gets, and the keywords of the public functions."""

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forbear.core.attempt import Attempt
from forbear.core.events import Scheduled
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_transfer import (
    Item,
    Moved,
    Retried,
    Settings,
    Sized,
    Storage,
    TransferEvent,
    Url,
    Warned,
    acp,
    aplan,
    arsync,
    cp,
    download,
    listening,
    plan,
    rsync,
    upload,
)
from forbear_transfer.plans.arguments import CopyOptions
from forbear_transfer.progress import Progress, current_progress

RETRY = Scheduled("upload", 2, 0.0, 1.0, Attempt(1, "OSError", "x", 0.0))


async def test_listening_gets_the_events_of_single_transfers(cloud: Cloud, tmp_path: Path) -> None:
    """Their events have no item; after the block the listener gets nothing more."""
    events: list[TransferEvent] = []
    source = tmp_path / "source"
    source.write_bytes(b"data")
    cloud.fault(Fault.status(503, times=1))
    with virtual_time():
        async with Storage(endpoint=cloud.url) as storage:
            with listening(events.append):
                made = await upload(storage, source, Url("bkt", "one"))
                await download(storage, made.url, tmp_path / "target")
            await download(storage, made.url, tmp_path / "another")
    assert [type(event) for event in events if not isinstance(event, Moved)] == [Retried, Sized]
    assert sum(event.bytes for event in events if isinstance(event, Moved)) == 8
    assert all(event.item is None for event in events if isinstance(event, Moved | Sized | Retried))
    assert current_progress.get().on_event is None


def test_retries_of_a_listing_are_events_without_an_item(cloud: Cloud, tmp_path: Path) -> None:
    """The plan of a run sends them to the same listener."""
    events: list[TransferEvent] = []
    cloud.store.put("bkt", "d/x", b"x")
    cloud.fault(Fault.status(503, times=1))
    with virtual_time():
        assert cp("gs://bkt/d/*", f"{tmp_path}/", settings=Settings(endpoint=cloud.url), on_event=events.append).ok
    assert [event.item for event in events if isinstance(event, Retried)] == [None]


def test_sizes_that_the_plan_knew_are_not_sent() -> None:
    """Only a size that is news is an event."""
    events: list[TransferEvent] = []
    progress = Progress(events.append)
    progress.start(Item("a", "gs://bkt/a", size=5))
    progress.sized(5)
    progress.start(Item("-", "gs://bkt/a"))
    progress.sized(7)
    assert [event.size for event in events if isinstance(event, Sized)] == [7]


def test_retries_are_counted_by_item() -> None:
    """Each item starts at zero, with and without a listener."""
    progress = Progress()
    progress.start(Item("a", "gs://bkt/a"))
    progress.retried(RETRY)
    assert progress.retries == 1
    progress.start(Item("b", "gs://bkt/b"))
    assert progress.retries == 0


def test_warnings_come_once_for_a_run() -> None:
    """Runs that share a set of texts send each text once; without a listener it is a RuntimeWarning."""
    events: list[TransferEvent] = []
    texts: set[str] = set()
    for _ in range(2):
        Progress(events.append, texts).warned("no state")
    assert events == [Warned("no state")]
    with pytest.warns(RuntimeWarning, match="no state"):
        Progress().warned("no state")
    with warnings.catch_warnings(action="error"):
        Progress(None, texts).warned("no state")


KEYWORDS = {
    cp: "settings recursive literal no_clobber generation dry_run manifest on_event parallel state",
    acp: "recursive literal no_clobber generation dry_run manifest on_event parallel state",
    rsync: "settings manifest on_event parallel state recursive delete checksum size_only update max_delete "
    "exclude include dry_run gzip packed",
    arsync: "manifest on_event parallel state recursive delete checksum size_only update max_delete "
    "exclude include dry_run gzip packed",
    plan: "settings recursive literal no_clobber generation",
    aplan: "recursive literal no_clobber generation",
}


@pytest.mark.parametrize("function", KEYWORDS, ids=lambda function: function.__name__)
def test_signatures_show_every_keyword(function: Callable[..., Any]) -> None:
    """help() and editors see the options, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    keywords = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {each.name for each in keywords} == {*KEYWORDS[function].split(), *CopyOptions.__annotations__}
    assert all(each.default is (False if each.annotation is bool else None) for each in keywords)
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters}


@pytest.mark.parametrize("function", [cp, rsync, plan], ids=lambda function: function.__name__)
def test_an_unknown_keyword_is_a_type_error(function: Callable[..., Any]) -> None:
    """As Python says it, with the name of the function."""
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'recursiv'"):
        function("a", "gs://bkt/", recursiv=True)
    if function is plan:
        with pytest.raises(TypeError, match=r"plan\(\) got an unexpected keyword argument 'manifest'"):
            function("a", "gs://bkt/", manifest="m")


@pytest.mark.parametrize("function", [cp, rsync], ids=lambda function: function.__name__)
def test_parallel_must_be_positive(function: Callable[..., Any]) -> None:
    """The error names the parameter."""
    with pytest.raises(ValueError, match="`parallel` must be at least 1, got 0"):
        function("a", "gs://bkt/", parallel=0)

"""Single items: named pipes, and folders without `recursive`."""

import os
import threading
from pathlib import Path

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_transfer import Settings, Url, cp, plan, rm
from forbear_transfer.execution import perform_one
from forbear_transfer.items import Item


@pytest.mark.parametrize("size", [5, 9 * 1024 * 1024])
def test_a_pipe_that_the_user_names_is_read(here: Path, cloud: Cloud, size: int) -> None:
    """Once, to its end; in a folder it is left out."""
    os.mkfifo("pipe")
    data = b"hello"[:size] * (size // 5)
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(data))
    writer.start()
    assert cp("pipe", "gs://bkt/", settings=Settings(endpoint=cloud.url)).ok
    writer.join()
    assert cloud.store.object("bkt", "pipe").data == data
    assert cp(".", "gs://bkt/folder/", recursive=True, settings=Settings(endpoint=cloud.url)).skipped == 1


def test_a_file_that_became_a_pipe_is_not_waited_for(here: Path, cloud: Cloud) -> None:
    """A listing has found a file; nothing may hang because it is a pipe now."""
    os.mkfifo("pipe")
    outcome = perform_one(Item("pipe", Url("bkt", "x"), size=3), Settings(endpoint=cloud.url))
    assert "neither a file nor a folder" in (outcome.error or "")


@pytest.mark.parametrize("target", ["x", "gs://bkt/x"])
def test_a_folder_without_recursive_is_said_to_be_one(here: Path, cloud: Cloud, target: str) -> None:
    """An object that does not exist, below which there are others, is named as such; the cure is `recursive`."""
    cloud.store.put("bkt", "d/a", b"1")
    settings = Settings(endpoint=cloud.url)
    with virtual_time(seed=1):
        (failure,) = cp("gs://bkt/d", target, settings=settings).failures
        (missing,) = cp("gs://bkt/e", target, settings=settings).failures
    assert (failure.error, failure.hint) == ("gs://bkt/d does not exist", "there are objects below it: use `recursive`")
    assert "404" in (missing.error or "")
    assert len(plan("gs://bkt/d", target, settings=settings)) == 1


def test_a_folder_without_recursive_is_said_to_be_one_also_where_a_folder_is_in_the_way(
    here: Path, cloud: Cloud
) -> None:
    """The folder here is from an earlier copy. Where there is an object of that name, the folder is in its way."""
    cloud.store.put("bkt", "d/a", b"1")
    (here / "d").mkdir()
    settings = Settings(endpoint=cloud.url)
    (failure,) = cp("gs://bkt/d", ".", settings=settings).failures
    assert (failure.error, failure.hint) == ("gs://bkt/d does not exist", "there are objects below it: use `recursive`")
    cloud.store.put("bkt", "d", b"2")
    (failure,) = cp("gs://bkt/d", ".", settings=settings).failures
    assert failure.error == "cannot write ./d: it is a folder"


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"temporaryHold": True}, "have its hold released, then start again"),
        ({"eventBasedHold": True}, "have its hold released, then start again"),
        ({}, "start again when its retention has ended"),
    ],
)
def test_what_may_not_be_deleted_yet_has_its_own_cure(cloud: Cloud, fields: dict[str, bool], hint: str) -> None:
    """No permission helps against a hold or a retention."""
    if not fields:
        cloud.store.bucket("bkt").fields["retentionPolicy"] = {"retentionPeriod": "1000"}
    cloud.store.put("bkt", "a", b"1", fields)
    cloud.store.put("bkt", "b", b"2")
    settings = Settings(endpoint=cloud.url)
    for summary in (rm("gs://bkt/a", settings=settings), cp("gs://bkt/b", "gs://bkt/a", settings=settings)):
        assert [one.hint for one in summary.failures] == [hint]
    assert cloud.store.object("bkt", "a").data == b"1"

"""Small uploads over what is there: their data is sent once, and those of new files cost no question."""

from pathlib import Path

import pytest

from forbear.testing.cloud import Cloud, Fault
from forbear.transfer import Settings, Summary, cp
from forbear.transfer.storage.client import Expectation

INSERT, GET = "storage.objects.insert", "storage.objects.get"
KIB = 1024


def folder_of(here: Path, count: int, size: int) -> Path:
    """A folder with so many files of one size."""
    folder = here / "dir"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}").write_bytes(b"%03d" % number + b"x" * (size - 3))
    return folder


def copied(cloud: Cloud, folder: Path, *, parallel: int | None, no_clobber: bool = False) -> Summary:
    """Copy a folder to gs://bkt/x/."""
    cloud.requests.clear()
    settings = Settings(endpoint=cloud.url)
    return cp(f"{folder}/*", "gs://bkt/x/", settings=settings, parallel=parallel, no_clobber=no_clobber)


@pytest.mark.parametrize("parallel", [1, None])
@pytest.mark.parametrize(("there", "most"), [("all", 1.05), ("half", 1.1)])
def test_data_is_sent_once(tmp_path: Path, cloud: Cloud, parallel: int | None, there: str, most: float) -> None:
    """Bytes that arrive, all told, are those of the files, whatever is there already."""
    count, size = 60, 24 * KIB
    folder = folder_of(tmp_path, count, size)
    for number in range(0, count, 1 if there == "all" else 2):
        cloud.store.put("bkt", f"x/{number:03}", b"older")
    assert copied(cloud, folder, parallel=parallel).done == count
    assert cloud.requests.received(INSERT) <= count * (size + KIB) * most
    assert cloud.effects.count(INSERT) == count
    assert {len(item.data) for item in cloud.store.bucket("bkt").versions()} == {size}


@pytest.mark.parametrize(("parallel", "questions"), [(1, 0), (8, 7)])
def test_new_files_cost_hardly_a_question(tmp_path: Path, cloud: Cloud, parallel: int, questions: int) -> None:
    """Only those ask that begin before the first one has been answered."""
    folder = folder_of(tmp_path, 50, 10)
    assert copied(cloud, folder, parallel=parallel).done == 50
    assert cloud.requests.count(GET) <= questions
    assert cloud.requests.count(INSERT) == 50


def test_what_must_stay_is_not_sent(tmp_path: Path, cloud: Cloud) -> None:
    """With `no_clobber` files that are there are skipped by a question each."""
    folder = folder_of(tmp_path, 50, 24 * KIB)
    for number in range(50):
        cloud.store.put("bkt", f"x/{number:03}", b"older")
    summary = copied(cloud, folder, parallel=None, no_clobber=True)
    assert (summary.done, summary.skipped, summary.failed) == (0, 50, 0)
    assert cloud.requests.received(INSERT) <= 2 * 25 * KIB
    assert cloud.effects.count(INSERT) == 0


def test_who_may_not_ask_uploads_all_the_same(tmp_path: Path, cloud: Cloud) -> None:
    """Somebody may only create objects: the question is refused once, and no more are asked."""
    folder = folder_of(tmp_path, 20, 10)
    cloud.fault(Fault.status(403, operation=GET, times=None))
    cloud.fault(Fault.status(400, operation=INSERT, times=1))  # so that nothing is known after the first
    summary = copied(cloud, folder, parallel=1)
    assert (summary.done, summary.failed) == (19, 1)
    assert cloud.requests.count(GET) == 1


def test_an_object_that_is_made_after_the_question_is_replaced_by_its_version(tmp_path: Path, cloud: Cloud) -> None:
    """The condition is what the question found, so nobody's write is lost unseen."""
    folder = folder_of(tmp_path, 3, 10)
    for number in range(3):
        cloud.store.put("bkt", f"x/{number:03}", b"older")
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, nth=3))
    assert copied(cloud, folder, parallel=1).done == 3
    assert [each.status for each in cloud.requests if each.operation == INSERT] == [412, 200, 412, 200, 200]


def test_one_that_is_there_makes_the_next_ones_ask() -> None:
    """Until sixteen in a row have found nothing."""
    expectation = Expectation()
    assert [expectation.asks() for _ in range(3)] == [False, True, True]
    expectation.met(there=False)
    assert not expectation.asks()
    expectation.met(there=True)
    asked = 0
    while expectation.asks():
        asked += 1
        expectation.met(there=False)
    assert asked == 16
    expectation.met(there=True)
    expectation.forbid()
    assert not expectation.asks()

"""Small uploads over existing objects: their data is sent once, and new files cost no further request."""

from pathlib import Path

import pytest

from forbear_cloud import Cloud, Fault
from forbear_transfer import Settings, Summary, cp
from forbear_transfer.storage.expectation import Expectation

INSERT, GET = "storage.objects.insert", "storage.objects.get"
KIB = 1024


def folder_of(here: Path, count: int, size: int) -> Path:
    """Make a folder with a number of files of one size."""
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
    """Hardly more bytes are sent than the files have, whatever exists already."""
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
    """Only uploads that begin before the first one is finished look at their target."""
    folder = folder_of(tmp_path, 50, 10)
    assert copied(cloud, folder, parallel=parallel).done == 50
    assert cloud.requests.count(GET) <= questions
    assert cloud.requests.count(INSERT) == 50


def test_what_must_stay_is_not_sent(tmp_path: Path, cloud: Cloud) -> None:
    """With `no_clobber`, an existing target costs one look each, and no data."""
    folder = folder_of(tmp_path, 50, 24 * KIB)
    for number in range(50):
        cloud.store.put("bkt", f"x/{number:03}", b"older")
    summary = copied(cloud, folder, parallel=None, no_clobber=True)
    assert (summary.done, summary.skipped, summary.failed) == (0, 50, 0)
    assert cloud.requests.received(INSERT) <= 2 * 25 * KIB
    assert cloud.effects.count(INSERT) == 0


def test_who_may_not_ask_uploads_all_the_same(tmp_path: Path, cloud: Cloud) -> None:
    """If the user may only create objects, the first look is refused, and there are no others."""
    folder = folder_of(tmp_path, 20, 10)
    cloud.fault(Fault.status(403, operation=GET, times=None))
    cloud.fault(Fault.status(400, operation=INSERT, times=1))  # so that nothing is known after the first
    summary = copied(cloud, folder, parallel=1)
    assert (summary.done, summary.failed) == (19, 1)
    assert cloud.requests.count(GET) == 1


def test_an_object_that_is_made_after_the_question_is_replaced_by_its_version(tmp_path: Path, cloud: Cloud) -> None:
    """The precondition is the result of the look, so that a later write of somebody else is noticed."""
    folder = folder_of(tmp_path, 3, 10)
    for number in range(3):
        cloud.store.put("bkt", f"x/{number:03}", b"older")
    cloud.fault(Fault.replace_object(b"theirs", operation=INSERT, nth=3))
    assert copied(cloud, folder, parallel=1).done == 3
    assert [each.status for each in cloud.requests if each.operation == INSERT] == [412, 200, 412, 200, 200]


def test_one_that_is_there_makes_the_next_ones_ask() -> None:
    """After an existing target, the next uploads look first, until 16 in a row do not exist."""
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

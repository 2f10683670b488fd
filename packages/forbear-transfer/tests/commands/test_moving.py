"""mv: one copy and one deletion of the same version, whatever happens to requests, responses and other clients."""

from typing import Unpack

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, random_faults
from forbear_transfer import Finished, Settings, Storage, Summary, TransferEvent, amv, mv
from forbear_transfer.commands.moving import MvOptions

COPY, DELETE = "storage.objects.rewrite", "storage.objects.delete"


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """A bucket with objects, one of which stands for a folder."""
    for name in ("a", "b", "dir/", "dir/c", "dir/deep/d"):
        cloud.store.put("bkt", name, name.encode(), {"metadata": {"of": name}})
    cloud.store.create_bucket("other")
    return cloud


def moved(cloud: Cloud, *sources: str, target: str, **options: Unpack[MvOptions]) -> Summary:
    """Move in virtual time."""
    with virtual_time(seed=3):
        return mv(sources, target, settings=Settings(endpoint=cloud.url), **options)


def contents(cloud: Cloud, bucket: str = "bkt") -> dict[str, bytes]:
    """Return all objects by name."""
    return {one.name: bytes(one.content) for one in cloud.store.bucket(bucket).versions()}


@pytest.mark.parametrize(
    ("sources", "target", "recursive", "names"),
    [
        (["gs://bkt/a"], "gs://other/x", False, {"x": b"a"}),
        (["gs://bkt/a", "gs://bkt/b"], "gs://other/x/", False, {"x/a": b"a", "x/b": b"b"}),
        (["gs://bkt/?"], "gs://other/", False, {"a": b"a", "b": b"b"}),
        (
            ["gs://bkt/dir"],
            "gs://other/",
            True,
            {"dir/": b"dir/", "dir/c": b"dir/c", "dir/deep/d": b"dir/deep/d"},
        ),
    ],
)
def test_what_goes_where(
    sources: list[str], target: str, recursive: bool, names: dict[str, bytes], filled: Cloud
) -> None:
    """By the rules of `cp`; the metadata is kept."""
    before = contents(filled)
    summary = moved(filled, *sources, target=target, recursive=recursive)
    assert (summary.done, summary.failed) == (len(names), 0)
    assert contents(filled, "other") == names
    assert contents(filled) == {name: data for name, data in before.items() if data not in names.values()}
    assert all(one.fields["metadata"] for one in filled.store.bucket("other").versions())


def test_a_dry_run(filled: Cloud) -> None:
    """It changes nothing, and says which items the move would skip and refuse."""
    before = contents(filled)
    lines = list[str]()

    def listen(event: TransferEvent) -> None:
        if isinstance(event, Finished):
            lines.append(f"{event.outcome.item.action.value} {event.outcome.item.target}: {event.outcome.error}")

    for source, target in (("a", "bkt/b"), ("none", "bkt/x"), ("dir", "other/")):
        options = MvOptions(dry_run=True, on_event=listen, no_clobber=True, recursive=source == "dir")
        moved(filled, f"gs://bkt/{source}", target=f"gs://{target}", **options)
    assert lines == [
        "skip gs://bkt/b: gs://bkt/b exists already",
        "refuse gs://bkt/x: gs://bkt/none does not exist",
        "move gs://other/dir/: would move",
        "move gs://other/dir/c: would move",
        "move gs://other/dir/deep/d: would move",
    ]
    assert contents(filled) == before
    assert contents(filled, "other") == {}


@pytest.mark.parametrize("operation", [COPY, DELETE])
@pytest.mark.parametrize("kind", ["lost", "unavailable", "cut"])
def test_faults_change_nothing(operation: str, kind: str, filled: Cloud) -> None:
    """One copy and one deletion take effect."""
    faults = {
        "lost": Fault.reset(when="after", operation=operation),
        "unavailable": Fault.status(503, operation=operation, times=2),
        "cut": Fault.close(when="after", operation=operation),
    }
    filled.fault(faults[kind])
    summary = moved(filled, "gs://bkt/a", target="gs://bkt/x")
    assert (summary.done, summary.failed) == (1, 0)
    assert (filled.effects.count(COPY), filled.effects.count(DELETE)) == (1, 1)
    assert contents(filled)["x"] == b"a"
    assert "a" not in contents(filled)


def test_a_version_written_after_the_copy_survives(filled: Cloud) -> None:
    """The error says that the version of before was copied to the target, and that the source was written."""
    filled.fault(Fault.replace_object(b"theirs", operation=DELETE))
    summary = moved(filled, "gs://bkt/a", target="gs://bkt/x")
    assert (summary.done, summary.failed) == (0, 1)
    error = summary.failures[0].error or ""
    assert "gs://bkt/a was written meanwhile" in error
    assert error.endswith(" was copied to gs://bkt/x")
    assert (contents(filled)["a"], contents(filled)["x"]) == (b"theirs", b"a")


def test_a_source_that_may_not_be_deleted(filled: Cloud) -> None:
    """The error says why, and that there is a copy."""
    filled.fault(Fault.status(403, operation=DELETE, message="no"))
    (failure,) = moved(filled, "gs://bkt/a", target="gs://bkt/x").failures
    assert (failure.error or "").startswith("delete gs://bkt/a#")
    assert (failure.error or "").endswith(" was copied to gs://bkt/x")
    assert failure.hint == "ask the owner of the bucket for the permission"
    assert {"a", "x"} <= contents(filled).keys()


@pytest.mark.parametrize("pattern", ["gs://bkt/a", "gs://bkt/a*"])
def test_a_version_written_before_the_copy_survives(pattern: str, filled: Cloud) -> None:
    """It is neither copied nor deleted: it is not what was listed."""
    filled.fault(Fault.replace_object(b"theirs", operation=COPY))
    summary = moved(filled, pattern, target="gs://other/")
    assert (summary.done, summary.failed) == (0, 1)
    assert "gs://bkt/a was written or deleted meanwhile, and is not moved" in (summary.failures[0].error or "")
    assert contents(filled)["a"] == b"theirs"
    assert not contents(filled, "other")


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("gs://bkt/none", "gs://bkt/x", "gs://bkt/none does not exist"),
        ("gs://bkt/dir", "gs://bkt/x", "gs://bkt/dir does not exist"),
        ("gs://bkt/a", "gs://bkt/a", "source and target are the same"),
        ("gs://bkt/a", "gs://nowhere/a", "404"),
        ("gs://bkt/dir/", "gs://other/", "it is a folder"),
    ],
)
def test_a_failed_move_deletes_nothing(source: str, target: str, text: str, filled: Cloud) -> None:
    """Nothing is deleted, the error is the right one, and there is a hint; for a folder, it names the option."""
    before = contents(filled)
    summary = moved(filled, source, target=target)
    assert (summary.done, summary.failed) == (0, 1)
    assert text in (summary.failures[0].error or "")
    assert summary.failures[0].hint
    assert (text == "gs://bkt/dir does not exist") == (
        summary.failures[0].hint == "there are objects below it: use `recursive`"
    )
    assert contents(filled) == before


def test_no_clobber(filled: Cloud) -> None:
    """A target that exists stays, and so does its source."""
    filled.store.put("other", "a", b"theirs")
    summary = moved(filled, "gs://bkt/?", target="gs://other/", no_clobber=True)
    assert (summary.done, summary.skipped, summary.failed) == (1, 1, 0)
    assert contents(filled, "other") == {"a": b"theirs", "b": b"b"}
    assert "a" in contents(filled)


@pytest.mark.parametrize(
    ("sources", "target", "text"),
    [
        (["local"], "gs://bkt/x", "`sources` must begin with gs://, got 'local'"),
        (["gs://bkt/a"], "here", "`target` must begin with gs://, got 'here'"),
        ([], "gs://bkt/x", "`sources` must name at least one object"),
        (["gs://bkt/a", "gs://bkt/b"], "gs://bkt/x", "`target` must be a folder for several sources"),
        (["gs://bkt/a", "gs://other/a"], "gs://bkt/x/", "would have the same target"),
    ],
)
def test_arguments_are_checked(sources: list[str], target: str, text: str, filled: Cloud) -> None:
    """Before anything is changed."""
    filled.store.put("other", "a", b"")
    with pytest.raises(ValueError, match=text):
        moved(filled, *sources, target=target)
    assert not filled.effects.count(COPY)


@pytest.mark.parametrize("seed", range(2))
async def test_random_faults(seed: int, cloud: Cloud) -> None:
    """Each object is copied and deleted once; a folder is moved into no folder of its own."""
    for number in range(10):
        cloud.store.put("bkt", f"x/{number}", str(number).encode())
    cloud.fault(random_faults(seed, unavailable=0.2, reset_after=0.15, truncated=0.1))
    with virtual_time(seed=seed):
        async with Storage(endpoint=cloud.url) as storage:
            summary = await amv(storage, "gs://bkt/x", "gs://bkt/y", recursive=True, parallel=4)
            again = await amv(storage, "gs://bkt/y", "gs://bkt/y/z", recursive=True)
    assert (summary.done, summary.failed) == (10, 0)
    assert contents(cloud) == {f"y/{number}": str(number).encode() for number in range(10)}
    assert (cloud.effects.count(COPY), cloud.effects.count(DELETE)) == (10, 10)
    assert again.failed == 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"temporaryHold": True}, "it is under a temporary hold"),
        ({"eventBasedHold": True}, "it is under an event-based hold"),
        ({"retentionExpirationTime": "2999-01-31T12:00:00Z"}, "it is retained until 2999-01-31T12:00:00+00:00"),
    ],
)
@pytest.mark.parametrize("source", ["gs://bkt/held", "gs://bkt/h*"])
def test_what_cannot_be_deleted_is_not_copied(
    cloud: Cloud, source: str, fields: dict[str, bool | str], why: str
) -> None:
    """The metadata of the source say so before anything is written."""
    cloud.store.put("bkt", "held", b"1", fields)
    (failure,) = moved(cloud, source, target="gs://bkt/to/").failures
    assert failure.error == f"gs://bkt/held is not moved, since it cannot be deleted: {why}"
    assert contents(cloud) == {"held": b"1"}


@pytest.mark.parametrize("no_clobber", [False, True])
@pytest.mark.parametrize("other", [{}, {"cacheControl": "no-store"}])
def test_a_copy_that_an_earlier_run_has_left_is_not_made_again(
    filled: Cloud, other: dict[str, str], no_clobber: bool
) -> None:
    """The target equals the source with all its metadata: only the deletion is left. With -n, it is skipped."""
    fields = {"metadata": {"of": "a"}}
    made = filled.store.put("other", "a", b"a", {**fields, **other})
    summary = moved(filled, "gs://bkt/a", target="gs://other/", no_clobber=no_clobber)
    assert (summary.done, summary.skipped) == ((0, 1) if no_clobber else (1, 0))
    assert ("a" in contents(filled)) is no_clobber
    kept = filled.store.object("other", "a").generation == made.generation
    assert kept is (no_clobber or not other)

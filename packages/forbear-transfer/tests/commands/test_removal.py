"""rm: it deletes what was listed, in the version that was listed, once, and nothing else."""

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, random_faults
from forbear_testkit.transfer.recorder import Recorder
from forbear_transfer import Settings, Status, Storage, Summary, arm, cp, ls, rm

DELETE, LIST = "storage.objects.delete", "storage.objects.list"
NAMES = ("a", "a.txt", "dir/", "dir/b", "dir/deep/c", "dirt")


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """A bucket with objects, one of which stands for a folder."""
    for name in NAMES:
        cloud.store.put("bkt", name, name.encode())
    return cloud


def removed(cloud: Cloud, *addresses: str, recorder: Recorder | None = None, **options: bool) -> Summary:
    """Delete in virtual time."""
    with virtual_time(seed=3):
        return rm(addresses, settings=Settings(endpoint=cloud.url), on_event=recorder, **options)


def versioned(cloud: Cloud) -> Cloud:
    """Return the cloud with a bucket that keeps versions: two of each object, and one object that is deleted."""
    cloud.store.create_bucket("old", fields={"versioning": {"enabled": True}})
    for name in (*NAMES, *NAMES, "gone"):
        cloud.store.put("old", name, b"1")
    with virtual_time():
        assert rm("gs://old/gone", settings=Settings(endpoint=cloud.url)).ok
    return cloud


def kept(cloud: Cloud) -> dict[str, int]:
    """Return how many versions each object has."""
    return {name: len(versions) for name, versions in cloud.store.bucket("old").objects.items() if versions}


EVERY = dict.fromkeys(NAMES, 2) | {"gone": 1}


@pytest.mark.parametrize(
    ("address", "recursive", "gone"),
    [
        ("gs://old/a", False, {"a"}),
        ("gs://old/gone", False, {"gone"}),
        ("gs://old/dir/", False, {"dir/"}),
        ("gs://old/d*", False, {"dirt"}),
        ("gs://old/d*", True, {"dir/", "dir/b", "dir/deep/c", "dirt"}),
        ("gs://old/dir", True, {"dir/", "dir/b", "dir/deep/c"}),
        ("gs://old/dir/", True, {"dir/", "dir/b", "dir/deep/c"}),
        ("gs://old/**", False, set(EVERY)),
        ("gs://old", True, set(EVERY)),
    ],
)
@pytest.mark.parametrize("stormy", [False, True])
def test_all_versions_go_for_good(address: str, recursive: bool, gone: set[str], stormy: bool, cloud: Cloud) -> None:
    """Also those of an object that is deleted already, whatever fails; others keep all of theirs."""
    versioned(cloud)
    if stormy:
        cloud.fault(random_faults(5, unavailable=0.2, reset_before=0.1, reset_after=0.2))
    summary = removed(cloud, address, recursive=recursive, all_versions=True)
    assert (summary.deleted, summary.ok) == (sum(EVERY[name] for name in gone), True)
    assert kept(cloud) == {name: count for name, count in EVERY.items() if name not in gone}


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("gs://old/none", "gs://old/none does not exist"),
        ("gs://old/x*", "nothing matches gs://old/x*"),
        ("gs://old", "gs://old/ is a bucket"),
        ("gs://old/dir/deep/", "gs://old/dir/deep/ is a folder"),
        ("gs://old/a#5", "gs://old/a#5 is one version, and all are to be deleted"),
        ("gs://nowhere/a", "404"),
    ],
)
def test_all_versions_of_nothing_are_a_failure(address: str, problem: str, cloud: Cloud) -> None:
    """Nothing is deleted, and the others are."""
    versioned(cloud)
    (failure,) = removed(cloud, address, "gs://old/gone", all_versions=True).failures
    assert problem in str(failure.error)
    assert kept(cloud) == dict.fromkeys(NAMES, 2)


def test_a_name_with_a_wildcard_may_have_old_versions_alone(cloud: Cloud) -> None:
    """Then it is a name, too: if the pattern matches others, nothing is done until it is said which is meant."""
    cloud.store.create_bucket("old", fields={"versioning": {"enabled": True}})
    for name in ("a*", "ab"):
        cloud.store.put("old", name, b"1")
    assert removed(cloud, "gs://old/a*", literal=True).ok
    with pytest.raises(ValueError, match="is the name of an object, and as a pattern or version it means others"):
        removed(cloud, "gs://old/a*", all_versions=True)
    assert removed(cloud, "gs://old/a*", all_versions=True, literal=True).deleted == 1
    assert kept(cloud) == {"ab": 1}


@pytest.mark.parametrize("number", [0, 1])
def test_one_version_is_copied_and_deleted_by_its_number(number: int, cloud: Cloud) -> None:
    """The other version stays, and so does the object if it was not the live one."""
    versioned(cloud)
    settings = Settings(endpoint=cloud.url)
    one, other = (version.generation for version in ls("gs://old/a", versions=True, settings=settings))
    chosen, rest = ((one, other), (other, one))[number]
    assert cp(f"gs://old/a#{chosen}", "gs://bkt/copy", settings=settings).ok
    assert removed(cloud, f"gs://old/a#{chosen}").deleted == 1
    assert [version.generation for version in ls("gs://old/a", versions=True, settings=settings)] == [rest]


def left(cloud: Cloud) -> set[str]:
    """Return the names of the live objects."""
    return set(cloud.store.bucket("bkt").objects)


@pytest.mark.parametrize(
    ("addresses", "recursive", "gone"),
    [
        (["gs://bkt/a"], False, {"a"}),
        (["gs://bkt/a", "gs://bkt/a*"], False, {"a", "a.txt"}),
        (["gs://bkt/a", "gs://bkt/a", "gs://bkt/[a]"], False, {"a"}),
        (["gs://bkt/*"], False, {"a", "a.txt", "dirt"}),
        (["gs://bkt/dir"], True, {"dir/", "dir/b", "dir/deep/c"}),
        (["gs://bkt/dir/"], True, {"dir/", "dir/b", "dir/deep/c"}),
        (["gs://bkt/dir*"], True, {"dir/", "dir/b", "dir/deep/c", "dirt"}),
        (["gs://bkt/dir/**", "gs://bkt/**/"], False, {"dir/", "dir/b", "dir/deep/c"}),
        (["gs://bkt"], True, set(NAMES)),
    ],
)
def test_what_an_address_names(addresses: list[str], recursive: bool, gone: set[str], filled: Cloud) -> None:
    """An object, a pattern, a folder or a bucket; what two addresses name is deleted once."""
    summary = removed(filled, *addresses, recursive=recursive)
    assert (summary.deleted, summary.ok) == (len(gone), True)
    assert left(filled) == set(NAMES) - gone
    assert filled.effects.count(DELETE) == len(gone)
    assert all("ifGenerationMatch=" in one.query for one in filled.requests if one.operation == DELETE)


def test_an_empty_bucket(filled: Cloud) -> None:
    """There is nothing to delete, which is no failure: the bucket exists."""
    filled.store.create_bucket("empty")
    summary = removed(filled, "gs://empty", recursive=True)
    assert (summary.done, summary.skipped, summary.failed) == (0, 0, 0)


@pytest.mark.parametrize(
    ("address", "problem", "hint"),
    [
        ("gs://bkt/none", "gs://bkt/none does not exist", "check the name"),
        ("gs://bkt/dir", "gs://bkt/dir does not exist", "there are objects below it: use `recursive`"),
        ("gs://bkt/dir/", "gs://bkt/dir/ is a folder", "use `recursive`, or `literal` for an object of just this name"),
        ("gs://bkt", "gs://bkt/ is a bucket", "use `recursive`"),
        ("gs://bkt/x*", "nothing matches gs://bkt/x*", "quote the pattern if the shell may have read it"),
        (
            "gs://bkt/a#5",
            "gs://bkt/a#5 does not exist",
            "check the number; for an object with # in its name write gs://bkt/a[#]5",
        ),
        ("gs://nowhere/a*", "list gs://nowhere/a: 404 Not Found: ", "check the names of the bucket and the object"),
    ],
)
def test_what_is_not_deleted(address: str, problem: str, hint: str, filled: Cloud) -> None:
    """An address that names no object fails, says why, and stops no other one."""
    summary = removed(filled, address, "gs://bkt/dirt")
    assert (summary.deleted, summary.failed) == (1, 1)
    assert (summary.failures[0].error or "").startswith(problem)
    assert summary.failures[0].hint == hint
    assert left(filled) == {*NAMES} - {"dirt"}


@pytest.mark.parametrize(
    ("addresses", "text"),
    [
        ([], "`addresses` must name at least one object"),
        (["local"], "`addresses` must begin with gs://, got 'local'"),
        (["gs://B/x"], "must name a bucket"),
    ],
)
def test_addresses_are_checked(addresses: list[str], text: str, cloud: Cloud) -> None:
    """Before any request."""
    with pytest.raises(ValueError, match=text):
        removed(cloud, *addresses)
    with pytest.raises(ValueError, match="`parallel` must be at least 1, got 0"):
        rm("gs://bkt/a", parallel=0)
    assert not cloud.requests


@pytest.mark.parametrize(
    "fault",
    [
        Fault.reset(when="after", operation=DELETE),
        Fault.close(when="after", operation=DELETE),
        Fault.status(503, operation=DELETE),
    ],
)
def test_a_lost_response_is_no_failure(fault: Fault, filled: Cloud) -> None:
    """The repeated request finds nothing (404), which the first one has deleted; a 503 deletes nothing."""
    filled.fault(fault)
    summary = removed(filled, "gs://bkt/a")
    assert (summary.deleted, summary.ok) == (1, True)
    assert filled.effects.count(DELETE) == 1


def test_an_object_that_is_gone_before_the_first_request_is_a_failure(filled: Cloud) -> None:
    """Another client has deleted it since it was listed: it was not this command."""
    filled.fault(Fault.delete_object(operation=DELETE))
    summary = removed(filled, "gs://bkt/a")
    assert (summary.deleted, summary.failed) == (0, 1)
    assert "it is gone already" in (summary.failures[0].error or "")
    assert summary.failures[0].hint is None


@pytest.mark.parametrize("lost", [False, True])
def test_a_new_version_survives(lost: bool, filled: Cloud) -> None:
    """A version that another client writes after the listing stays, also if that is between two attempts to delete."""
    if lost:
        filled.fault(Fault.reset(when="after", operation=DELETE))
    filled.fault(Fault.replace_object(b"theirs", operation=DELETE))
    summary = removed(filled, "gs://bkt/a")
    assert (summary.deleted, summary.failed) == (0, 1)
    assert "gs://bkt/a was written meanwhile" in (summary.failures[0].error or "")
    assert filled.store.object("bkt", "a").data == b"theirs"
    assert filled.effects.count(DELETE) == lost


def test_a_generation_is_deleted_for_good(cloud: Cloud) -> None:
    """Only if the address names it; otherwise a bucket with versions keeps the object as a noncurrent one."""
    kept = cloud.store.create_bucket("kept", fields={"versioning": {"enabled": True}})
    old, live = cloud.store.put("kept", "a", b"old"), cloud.store.put("kept", "a", b"live")
    assert removed(cloud, f"gs://kept/a#{old.generation}").deleted == 1
    assert removed(cloud, "gs://kept/a").deleted == 1
    assert [one.generation for one in kept.versions()] == [live.generation]
    assert kept.live("a") is None


def test_a_dry_run(filled: Cloud) -> None:
    """It reports what would be deleted, and what cannot be, and deletes nothing."""
    recorder = Recorder()
    summary = removed(filled, "gs://bkt/*", "gs://bkt/none", recorder=recorder, dry_run=True)
    assert (summary.deleted, summary.skipped, summary.failed) == (0, 4, 1)
    assert recorder.said(Status.SKIPPED) == {
        "gs://bkt/a": "would delete",
        "gs://bkt/a.txt": "would delete",
        "gs://bkt/dir/": "gs://bkt/dir/ is a folder",
        "gs://bkt/dirt": "would delete",
    }
    assert not filled.effects.count(DELETE)


@pytest.mark.parametrize("seed", range(3))
async def test_random_faults_change_nothing(seed: int, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are listed again, none is lost, and each object is deleted once."""
    monkeypatch.setattr("forbear_transfer.storage.listing._PAGE_ITEMS", 3)
    for number in range(20):
        cloud.store.put("bkt", f"x/{number}", b"x")
    cloud.store.put("bkt", "y", b"x")
    cloud.fault(random_faults(seed, unavailable=0.2, reset_after=0.2, truncated=0.1))
    with virtual_time(seed=seed):
        async with Storage(endpoint=cloud.url) as storage:
            summary = await arm(storage, "gs://bkt/x", recursive=True, parallel=4)
    assert (summary.deleted, summary.ok) == (20, True)
    assert cloud.effects.count(DELETE) == 20
    assert left(cloud) == {"y"}

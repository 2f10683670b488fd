"""The metadata of new objects: set by uploads and copies, kept through faults and resumptions, and refused if wrong."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest

from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.uploads import CHUNK, INSERT, MIB, SEND, TARGET, file_of, steps, storing, versions
from forbear_transfer import MetadataOptions, ObjectMetadata, Settings, Url, cp, execute, plan, rsync
from forbear_transfer.objects import MTIME
from forbear_transfer.rewrite import copy
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import WireError

When = Literal["before", "after"]

pytestmark = pytest.mark.anyio

CHOSEN: MetadataOptions = {
    "content_type": "text/csv; charset=utf-8",
    "cache_control": "no-store",
    "content_disposition": 'attachment; filename="a.csv"',
    "content_encoding": "identity",
    "content_language": "de",
    "storage_class": "NEARLINE",
    "metadata": {"team": "billing", "empty": ""},
}
STORED = {
    "contentType": "text/csv; charset=utf-8",
    "cacheControl": "no-store",
    "contentDisposition": 'attachment; filename="a.csv"',
    "contentEncoding": "identity",
    "contentLanguage": "de",
    "storageClass": "NEARLINE",
}
SIZES = {"small": 1000, "large": 5 * CHUNK}
REWRITE = "storage.objects.rewrite"


def fields(cloud: Cloud, name: str = TARGET.name) -> dict[str, Any]:
    """Return the metadata of the live object, as the API has it."""
    resource = cloud.store.object("bkt", name).fields
    return {key: resource.get(key) for key in STORED} | {"metadata": dict(resource.get("metadata", {}))}  # type: ignore[arg-type]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_an_upload_sets_it(size: int, when: When, cloud: Cloud, tmp_path: Path) -> None:
    """All of it is stored beside the file's time, once, although a connection is reset."""
    cloud.fault(Fault.reset(when=when, operation=INSERT if size < CHUNK else SEND, nth=1))
    path = file_of(tmp_path, size)
    async with storing(cloud) as storage:
        made = await upload(storage, path, TARGET, chunk_size=CHUNK, **CHOSEN)
    time = {MTIME: str(int(path.stat().st_mtime))}
    assert fields(cloud) == {**STORED, "metadata": {"team": "billing", "empty": "", **time}}
    assert versions(cloud) == 1
    assert (made.cache_control, made.storage_class) == ("no-store", "NEARLINE")


@pytest.mark.parametrize(("changed", "sessions"), [({}, 1), ({"cache_control": "public"}, 2)], ids=["same", "other"])
async def test_a_resumed_upload_keeps_it(changed: MetadataOptions, sessions: int, cloud: Cloud, tmp_path: Path) -> None:
    """The next process continues the session of equal metadata; for other metadata it begins a new one."""
    path = file_of(tmp_path, SIZES["large"])
    cloud.fault(Fault.reset(operation=SEND, nth=3))
    async with storing(cloud, policy=cloud_storage.policy.with_attempts(1)) as storage:
        with pytest.raises(WireError):
            await upload(storage, path, TARGET, chunk_size=CHUNK, **CHOSEN)
    async with storing(cloud) as storage:
        again: MetadataOptions = {**CHOSEN, **changed}
        await upload(storage, path, TARGET, chunk_size=CHUNK, **again)
    assert steps(cloud).count("start") == sessions
    assert fields(cloud)["cacheControl"] == changed.get("cache_control", "no-store")
    assert fields(cloud)["metadata"]["team"] == "billing"
    assert versions(cloud) == 1


async def test_equal_bytes_with_other_metadata_are_not_ours(cloud: Cloud, tmp_path: Path) -> None:
    """After a lost response an object with the same bytes counts only if its metadata is that of the upload."""
    path = file_of(tmp_path, 1000)
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET)
    cloud.fault(Fault.reset(when="after", operation=INSERT, nth=1), Fault.reset(when="before", operation=INSERT, nth=2))
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET, cache_control="no-store")
    assert fields(cloud)["cacheControl"] == "no-store"
    assert versions(cloud) == 2


@pytest.mark.parametrize("fault", [None, "before", "after"])
@pytest.mark.parametrize("chunk_size", [None, MIB], ids=["one call", "several calls"])
async def test_a_copy_changes_it(fault: When | None, chunk_size: int | None, cloud: Cloud) -> None:
    """A copy has what was chosen, and the rest from its source; a lost response makes no second generation."""
    source = {"contentType": "text/plain", "cacheControl": "public", "customTime": "2026-01-02T03:04:05Z",
              "contentLanguage": "fr", "metadata": {"team": "sales", "kept": "yes"}}  # fmt: skip
    cloud.store.put("bkt", "from", b"x" * (3 * MIB), source)  # type: ignore[arg-type]
    if fault is not None:
        cloud.fault(Fault.reset(when=fault, operation=REWRITE, nth=1 if chunk_size is None else 3))
    async with storing(cloud) as storage:
        await copy(
            storage, Url("bkt", "from"), TARGET, chunk_size=chunk_size, cache_control="no-store", metadata={"team": "b"}
        )
    made = fields(cloud)
    assert (made["contentType"], made["cacheControl"], made["contentLanguage"]) == ("text/plain", "no-store", "fr")
    assert made["metadata"] == {"team": "b", "kept": "yes"}
    assert str(cloud.store.object("bkt", TARGET.name).fields["customTime"]).startswith("2026-01-02T03:04:05")
    assert cloud.effects.count(REWRITE) == 1


async def test_a_copy_without_options_has_all_of_its_source(cloud: Cloud) -> None:
    """Nothing is sent then, and the service copies what it knows."""
    cloud.store.put("bkt", "from", b"x", {"contentType": "text/plain", "cacheControl": "public"})
    async with storing(cloud) as storage:
        await copy(storage, Url("bkt", "from"), TARGET)
    assert (fields(cloud)["contentType"], fields(cloud)["cacheControl"]) == ("text/plain", "public")
    assert cloud.requests[-1].size == 0


def test_cp_and_rsync_and_plans_set_it(cloud: Cloud, tmp_path: Path) -> None:
    """Every object of a folder gets it: by cp, by rsync, and by items that were planned before."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name)
    settings = Settings(endpoint=cloud.url)
    assert cp(folder, "gs://bkt/cp", recursive=True, settings=settings, **CHOSEN).ok
    assert rsync(folder, "gs://bkt/rsync", settings=settings, **CHOSEN).ok
    assert cp("gs://bkt/cp/a", "gs://bkt/copy/", settings=settings, content_type="text/x").ok
    items = plan(folder, "gs://bkt/plan/", recursive=True, settings=settings, **CHOSEN)
    with ThreadPoolExecutor(1) as executor:
        assert all(outcome.error is None for outcome in execute(items, executor, settings))
    for name in ("cp/a", "cp/b", "rsync/a", "rsync/b", "plan/folder/a", "plan/folder/b"):
        assert fields(cloud, name)["cacheControl"] == "no-store"
        assert fields(cloud, name)["metadata"]["team"] == "billing"
    assert fields(cloud, "copy/a")["contentType"] == "text/x"
    assert fields(cloud, "copy/a")["cacheControl"] == "no-store"


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"content_type": ""}, ValueError, "`content_type` must be printable and not empty, got ''"),
        ({"content_type": "text/plain\r\nX: y"}, ValueError, "`content_type` must be printable"),
        ({"cache_control": 5}, TypeError, "`cache_control` must be a string, got int"),
        ({"metadata": {"": "x"}}, ValueError, "`metadata` must have printable keys"),
        ({"metadata": {"a\n": "x"}}, ValueError, "`metadata` must have printable keys"),
        ({"metadata": {"a": 1}}, TypeError, "`metadata` must map strings to strings, got 'a': 1"),
        ({"metadata": {MTIME: "1"}}, ValueError, f"`metadata` must not set {MTIME}"),
    ],
)
def test_what_cannot_be_set(options: dict[str, Any], error: type[Exception], text: str) -> None:
    """Wrong metadata is refused before anything is read or sent."""
    with pytest.raises(error, match=text):
        ObjectMetadata.of(options)
    with pytest.raises(error, match=text):
        cp("a", "gs://bkt/", **options)


@pytest.mark.parametrize("function", [cp, plan, rsync], ids=lambda function: function.__name__)
def test_files_have_no_metadata(function: Any, tmp_path: Path) -> None:
    """For a target on this machine, the options are refused and not ignored."""
    with pytest.raises(ValueError, match=r"`cache_control` is for targets in the cloud, got .*; leave it out"):
        function("gs://bkt/a", tmp_path, cache_control="no-store")

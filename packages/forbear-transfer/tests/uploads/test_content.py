"""Compressed transfers: uploads that become gzip on the way, and downloads that stay packed."""

import gzip
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.uploads import (
    CHUNK,
    INSERT,
    SEND,
    TARGET,
    data_of,
    file_of,
    metered,
    states,
    steps,
    stored,
    storing,
    versions,
)
from forbear_transfer import Settings, SourceChanged, Summary, cp, rsync
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.response import WireError

pytestmark = pytest.mark.anyio

SIZES = {"empty": 0, "tiny": 5, "a piece": 256 * 1024, "large": 4 * CHUNK + 7}


def encoding(cloud: Cloud, name: str = TARGET.name) -> object:
    """Return the content encoding of an object."""
    return cloud.store.object("bkt", name).fields.get("contentEncoding")


@pytest.mark.parametrize("when", [None, "before", "after"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
async def test_an_upload_is_compressed(
    size: int, when: Literal["before", "after"] | None, cloud: Cloud, tmp_path: Path
) -> None:
    """The object is the gzip of the file, made once, whatever connection is reset; its time and type are the file's."""
    if when is not None:
        cloud.fault(Fault.reset(when=when, operation=INSERT if size < CHUNK else SEND, nth=1))
    path = file_of(tmp_path, size, "page.html")
    with metered() as total:
        async with storing(cloud) as storage:
            made = await upload(storage, path, TARGET, gzip=True, chunk_size=CHUNK)
    assert gzip.decompress(stored(cloud)) == data_of(size)
    assert (encoding(cloud), made.content_type, made.mtime) == ("gzip", "text/html", int(path.stat().st_mtime))
    assert (versions(cloud), total.bytes) == (1, made.size)


async def test_streams_are_compressed(cloud: Cloud) -> None:
    """A binary file object and an async iterable are compressed as well."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, 4 * CHUNK, 1000):
            yield data_of(4 * CHUNK)[start : start + 1000]

    for source in (io.BytesIO(data_of(4 * CHUNK)), pieces()):
        async with storing(cloud) as storage:
            await upload(storage, source, TARGET, gzip=True, chunk_size=CHUNK)
        assert gzip.decompress(stored(cloud)) == data_of(4 * CHUNK)


async def failed(cloud: Cloud, path: Path, nth: int, when: Literal["before", "after"] = "before") -> None:
    """Begin a compressed upload that fails at a chunk, and leaves its state."""
    cloud.fault(Fault.reset(when=when, operation=SEND, nth=nth))
    async with storing(cloud, policy=cloud_storage.policy.with_attempts(1)) as storage:
        with pytest.raises(WireError):
            await upload(storage, path, TARGET, gzip=True, chunk_size=CHUNK)
    assert len(states()) == 1


@pytest.mark.parametrize(("nth", "when", "sent"), [(3, "before", 3), (5, "before", 1), (5, "after", 0)])
async def test_an_upload_continues(
    nth: int, when: Literal["before", "after"], sent: int, cloud: Cloud, tmp_path: Path
) -> None:
    """The next process compresses the file again, and sends only what the server lacks."""
    path = file_of(tmp_path, 5 * CHUNK - 5000)
    await failed(cloud, path, nth, when)
    before = cloud.requests.count(SEND)
    with metered() as total:
        async with storing(cloud) as storage:
            made = await upload(storage, path, TARGET, gzip=True, chunk_size=CHUNK)
    assert (steps(cloud).count("start"), cloud.requests.count(SEND) - before) == (1, sent)
    assert gzip.decompress(stored(cloud)) == path.read_bytes()
    assert (versions(cloud), total.bytes, states()) == (1, made.size, [])


@pytest.mark.parametrize("known", [True, False])
async def test_another_compression_is_never_mixed_in(
    known: bool, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other bytes of the same file start over: at once if the library has another version, else by their checksum."""
    path = tmp_path / "text"
    path.write_bytes(data_of(3 * CHUNK).hex().encode())
    await failed(cloud, path, 3)
    monkeypatch.setattr("forbear_transfer.uploads.content._LEVEL", 1)
    if known:
        monkeypatch.setattr("forbear_transfer.uploads.upload.COMPRESSION", "another")
    async with storing(cloud) as storage:
        await upload(storage, path, TARGET, gzip=True, chunk_size=CHUNK)
    assert gzip.decompress(stored(cloud)) == path.read_bytes()
    assert (versions(cloud), steps(cloud).count("start"), states()) == (1, 2, [])


async def test_a_file_that_changes_makes_no_object(cloud: Cloud, tmp_path: Path) -> None:
    """A file that is written to while it is compressed is refused, and its session is cancelled."""
    path = file_of(tmp_path, 6 * CHUNK)
    cloud.fault(Fault.reset(operation=SEND, nth=2))

    def change(*_: object) -> None:
        with path.open("ab") as file:
            file.write(b"more")

    async with storing(cloud) as storage:
        storage.policy = storage.policy.with_on_event(change)
        with pytest.raises(SourceChanged):
            await upload(storage, path, TARGET, gzip=True, chunk_size=CHUNK)
    assert steps(cloud)[-1] == "cancel"
    assert versions(cloud) == 0


def transferred(function: Any, cloud: Cloud, *args: Any, **options: Any) -> Summary:
    """Call cp or rsync in virtual time."""
    with virtual_time():
        done: Summary = function(*args, settings=Settings(endpoint=cloud.url), **options)
        return done


def test_up_and_down(cloud: Cloud, tmp_path: Path) -> None:
    """A folder goes up compressed and comes down plain, or packed; after that, rsync finds only what has changed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text(name * 1000)
        os.utime(folder / name, (1_000_000_000, 1_000_000_000))
    assert transferred(rsync, cloud, folder, "gs://bkt/x", gzip=True).done == 2
    assert transferred(rsync, cloud, folder, "gs://bkt/x", gzip=True).done == 0
    assert len(stored(cloud, "x/a")) < 100
    assert transferred(cp, cloud, "gs://bkt/x/*", f"{tmp_path}/plain/").done == 2
    assert (tmp_path / "plain" / "a").read_text() == "a" * 1000
    assert transferred(rsync, cloud, "gs://bkt/x", tmp_path / "plain").done == 0
    for _ in range(2):
        assert transferred(cp, cloud, "gs://bkt/x/*", f"{tmp_path}/packed/", packed=True).done == 2
        assert gzip.decompress((tmp_path / "packed" / "a").read_bytes()) == b"a" * 1000
    assert transferred(rsync, cloud, "gs://bkt/x", tmp_path / "packed", packed=True).done == 0
    assert transferred(rsync, cloud, "gs://bkt/x", tmp_path / "synced", packed=True).done == 2
    assert (tmp_path / "synced" / "b").read_bytes() == stored(cloud, "x/b")
    (folder / "a").write_text("new")
    assert transferred(rsync, cloud, folder, "gs://bkt/x", gzip=True).done == 1
    assert gzip.decompress(stored(cloud, "x/a")) == b"new"


@pytest.mark.parametrize(
    ("source", "target", "options", "text"),
    [
        ("gs://bkt/a", "gs://bkt/b", {"gzip": True}, "`gzip` is for uploads, got gs://bkt/a to gs://bkt/b"),
        ("gs://bkt/a", "here", {"gzip": True}, "`gzip` is for uploads, got gs://bkt/a to here"),
        ("a", "gs://bkt/b", {"packed": True}, "`packed` is for downloads, got a to gs://bkt/b"),
        ("gs://bkt/a", "gs://bkt/b", {"packed": True}, "`packed` is for downloads"),
        ("a", "gs://bkt/b", {"gzip": True, "content_encoding": "br"}, "`content_encoding` must be gzip or None"),
    ],
)
def test_what_makes_no_sense(source: str, target: str, options: dict[str, Any], text: str) -> None:
    """Options that would do nothing are refused, by cp and by rsync."""
    for function in (cp, rsync):
        with pytest.raises(ValueError, match=text):
            function(source, target, **options)

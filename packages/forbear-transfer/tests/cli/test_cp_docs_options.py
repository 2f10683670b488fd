"""The table of options in docs/transfer.md: each command of forbear does on the embedded cloud what its row says."""

import base64
import csv
import gzip
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke
from forbear_testkit.transfer.files import make

PAGE = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("| what | `gsutil` |")[2].partition("\n\n")[0].splitlines()[2:]
]
COMMANDS = {row[0]: row[-1].strip("`") for row in ROWS if row[-1].startswith("`forbear")}
PHOTOS = ["photos/1.jpg", "photos/2.tmp", "photos/link"]


class Done(NamedTuple):
    """A command that is done: its cloud, what it printed, and the seconds that it took."""

    cloud: Cloud
    stdout: str
    seconds: float
    again: Callable[[], int]
    """Runs it once more, and returns its exit code."""

    def names(self, start: str = "photos/") -> list[str]:
        """Return the names of the live objects that begin so."""
        return sorted(name for name in self.cloud.store.bucket("my-bucket").objects if name.startswith(start))

    def data(self, name: str) -> bytes:
        """Return the contents of an object."""
        return self.cloud.store.object("my-bucket", name).data

    def fields(self, name: str) -> dict[str, Any]:
        """Return the metadata of an object."""
        return dict(self.cloud.store.object("my-bucket", name).fields)


def put(cloud: Cloud, name: str, data: bytes) -> None:
    """Store an object of other contents than the file of its name."""
    cloud.store.put("my-bucket", name, data)


def put_versions(cloud: Cloud) -> None:
    """Have two versions of an object."""
    cloud.store.bucket("my-bucket").fields["versioning"] = {"enabled": True}
    put(cloud, "old/a", b"older")
    put(cloud, "old/a", b"old")


def put_many(cloud: Cloud) -> None:
    """Have more than ten objects."""
    for number in range(20):
        put(cloud, f"old/{number}", b"")


def put_same_time(cloud: Cloud) -> None:
    """Have an object that has the size and the time of a file, and other contents."""
    status = Path("photos/1.jpg").stat()
    fields: dict[str, Any] = {"metadata": {"goog-reserved-file-mtime": str(int(status.st_mtime))}}
    cloud.store.put("my-bucket", "photos/1.jpg", b"x" * status.st_size, fields)


def put_newer(cloud: Cloud) -> None:
    """Have an object that is newer than its file, and one that is older."""
    for name in ("photos/1.jpg", "photos/2.tmp"):
        cloud.store.put("my-bucket", name, b"other", {"metadata": {"goog-reserved-file-mtime": "1700000000"}})
    os.utime("photos/1.jpg", (1_600_000_000, 1_600_000_000))


def write_much(_: Cloud) -> None:
    """Have a file that takes a while."""
    Path("a.txt").write_bytes(bytes(2_000_000))


BEFORE: dict[str, Callable[[Cloud], object]] = {
    "limit the speed": write_much,
    "compare contents": put_same_time,
    "compare sizes": lambda cloud: put(cloud, "photos/1.jpg", b"x" * len("photos/1.jpg")),
    "skip what is newer": put_newer,
    "stop at too many deletions": put_many,
    "list all versions": put_versions,
    "part of an object": lambda cloud: put(cloud, "old/a", b"older"),
    "delete all versions": put_versions,
}
FIRST = {"read with a key": "forbear cp --encryption-key-file key a.txt gs://my-bucket/old/a"}
"""Commands to run before."""
HASHES = ["/7oBBA==", "FJYD5sA1FjYqjaI/Yk25RQ=="]
"""The CRC32C and the MD5 of "old"."""
EXITS = {"stop at too many deletions": 1}
EFFECTS: dict[str, Callable[[Done], object]] = {
    "copy a folder": lambda done: done.names() == PHOTOS and done.data("photos/1.jpg") == b"photos/1.jpg",
    "copy side by side": lambda done: done.names() == PHOTOS,
    "keep what exists": lambda done: done.data("old/a.txt") == b"old",
    "replace one version only": lambda done: done.data("new") == b"a.txt" and done.again() == 1,
    "names from a file": lambda done: done.names("a") == ["a.txt"],
    "a record of what is done": lambda done: (
        [row["Result"] for row in csv.DictReader(Path("done.csv").read_text(encoding="utf-8").splitlines())]
        == ["OK"] * 3
    ),
    "permissions": lambda done: done.fields("photos/1.jpg")["metadata"]["goog-reserved-posix-mode"] == "640",
    "leave out links": lambda done: done.names() == PHOTOS[:2],
    "compress": lambda done: (
        done.fields("a.txt")["contentEncoding"] == "gzip"
        and gzip.decompress(bytes(done.cloud.store.object("my-bucket", "a.txt").content)) == b"a.txt"
    ),
    "leave it compressed": lambda done: gzip.decompress(Path("packed.txt").read_bytes()) == b"old",
    "content type": lambda done: done.fields("a.txt")["contentType"] == "text/csv",
    "caching": lambda done: done.fields("a.txt")["cacheControl"] == "no-store",
    "custom metadata": lambda done: done.fields("a.txt")["metadata"]["k"] == "v",
    "storage class": lambda done: done.fields("a.txt")["storageClass"] == "NEARLINE",
    "other metadata in place": lambda done: (
        (done.fields("old/a")["cacheControl"], done.data("old/a")) == ("no-store", b"old")
    ),
    "another class in place": lambda done: (
        {done.fields(name)["storageClass"] for name in done.names("old/")} == {"NEARLINE"}
    ),
    "a key of yours": lambda done: done.cloud.store.object("my-bucket", "a.txt").keys.sha256,
    "read with a key": lambda _: Path("a").read_bytes() == b"a.txt",
    "a key of Cloud KMS": lambda done: done.cloud.store.object("my-bucket", "a.txt").keys.kms_version,
    "limit the speed": lambda done: 2 < done.seconds < 8,
    "who pays": lambda done: all("my-project" in str(request) for request in done.cloud.requests),
    "stdin and stdout": lambda done: done.stdout == "old",
    "mirror a folder": lambda done: (done.names() == PHOTOS, done.again(), done.cloud.effects.count()) == (True, 0, 3),
    "delete the rest": lambda done: done.names("old/") == ["old/1.jpg", "old/2.tmp", "old/link"],
    "try it first": lambda done: (
        done.cloud.effects.count() == 0 and "copy photos/1.jpg -> gs://my-bucket/photos/1.jpg" in done.stdout
    ),
    "compare contents": lambda done: done.data("photos/1.jpg") == b"photos/1.jpg",
    "compare sizes": lambda done: (done.data("photos/1.jpg") == b"x" * 12, done.names()) == (True, PHOTOS),
    "skip what is newer": lambda done: (
        (done.data("photos/1.jpg"), done.data("photos/2.tmp")) == (b"other", b"photos/2.tmp")
    ),
    "leave out names": lambda done: done.names() == ["photos/1.jpg", "photos/link"],
    "stop at too many deletions": lambda done: len(done.names("old/")) == 20 + 3 + 3,
    "compare, and copy nothing": lambda done: done.cloud.effects.count() == 0,
    "list": lambda done: re.search(r"^ +3  \S+  gs://my-bucket/old/a$", done.stdout, re.MULTILINE),
    "list all versions": lambda done: len(re.findall(r"^gs://my-bucket/old/a#\d+$", done.stdout, re.MULTILINE)) >= 2,
    "all metadata": lambda done: all(f"\n  {name} " in done.stdout for name in ("size", "md5", "storage class")),
    "sizes of folders": lambda done: re.fullmatch(r" *29  gs://my-bucket\n", done.stdout),
    "part of an object": lambda done: done.stdout == "old",
    "checksums": lambda done: done.stdout.splitlines()[1].split() == [*HASHES, "gs://my-bucket/old/a"],
    "move": lambda done: (done.data("new/a"), "old/a" in done.names("old/")) == (b"old", False),
    "delete a folder": lambda done: not done.names(""),
    "delete all versions": lambda done: (
        "old/a" not in [each.name for each in done.cloud.store.bucket("my-bucket").versions()]
    ),
}


@pytest.fixture
def filled(here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud that the environment names, and a folder, with all that the commands of the table name."""
    cloud.store.create_bucket("my-bucket")
    for name in ("old/a", "old/a.txt"):
        put(cloud, name, b"old")
    cloud.store.put("my-bucket", "old/packed.txt", gzip.compress(b"old"), {"contentEncoding": "gzip"})
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    make(here, "a.txt", "photos/1.jpg", "photos/2.tmp")
    (here / "photos" / "1.jpg").chmod(0o640)
    (here / "photos" / "link").symlink_to("1.jpg")
    (here / "list.txt").write_text("a.txt\n")
    (here / "key").write_text(base64.b64encode(bytes(range(32))).decode())
    return cloud


@pytest.mark.parametrize("what", COMMANDS)
def test_the_table_of_options(what: str, filled: Cloud, invoke: Invoke) -> None:
    """Each command of the table does on the embedded cloud what it is said to do."""
    words = shlex.split(COMMANDS[what])[1:]
    BEFORE.get(what, bool)(filled)
    if what in FIRST:
        assert invoke(*shlex.split(FIRST[what])[1:]).exit_code == 0
    with virtual_time() as time:
        done = invoke(*words)
    assert done.exit_code == EXITS.get(what, 0), done.output
    assert filled.requests
    assert EFFECTS[what](Done(filled, done.stdout, time.elapsed, lambda: invoke(*words).exit_code))


def test_the_table_says_why_where_there_is_no_command() -> None:
    """Forty options at least, each with its effect; what is left out has a reason."""
    assert len(ROWS) > 40
    assert all(len(row) == 5 for row in ROWS)
    assert EFFECTS.keys() == COMMANDS.keys()
    reasons = [row[-1] for row in ROWS if row[0] not in COMMANDS]
    assert all(re.match(r"left out( for now)?: |always: |`--", reason) for reason in reasons)

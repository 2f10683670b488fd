"""The manifest: what was done, and what need not be done again."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.errors import TransferError
from forbear_transfer.items import Item, Outcome, Status
from forbear_transfer.objects import Url
from forbear_transfer.workers.manifest import COLUMNS, Manifest


def outcome(source: str, status: Status = Status.DONE, **fields: object) -> Outcome:
    """An outcome of copying `source` to the cloud."""
    return Outcome(Item(source, Url("bkt", "name"), size=3), status, **fields)  # type: ignore[arg-type]


def test_it_says_what_was_done(tmp_path: Path) -> None:
    """A line for each item, in the columns of gsutil's manifest."""
    path = tmp_path / "manifest.csv"
    with Manifest(path) as manifest:
        manifest.add(outcome("a", bytes=3, generation=7, crc32c="AAAAAA==", began=1.0, seconds=1.5))
        manifest.add(outcome("b", Status.FAILED, error="no"))
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert tuple(first) == COLUMNS
    assert first == {
        "Source": "a",
        "Destination": "gs://bkt/name",
        "Start": "1970-01-01T00:00:01+00:00",
        "End": "1970-01-01T00:00:02.500000+00:00",
        "Crc32c": "AAAAAA==",
        "Generation": "7",
        "Source Size": "3",
        "Bytes Transferred": "3",
        "Result": "OK",
        "Description": "",
    }
    assert (second["Result"], second["Description"]) == ("error", "no")


def test_only_failures_are_done_again(tmp_path: Path) -> None:
    """An item that failed is done again, and so is the same source with another target."""
    path = tmp_path / "manifest.csv"
    with Manifest(path) as manifest:
        manifest.add(outcome("done"))
        manifest.add(outcome("skipped", Status.SKIPPED))
        manifest.add(outcome("failed", Status.FAILED))
        assert not manifest.has(outcome("done").item)  # it was done by this very run
    with Manifest(path) as manifest:
        found = {name: manifest.has(outcome(name).item) for name in ("done", "skipped", "failed", "new")}
        assert found == {"done": True, "skipped": True, "failed": False, "new": False}
        assert not manifest.has(Item("done", Url("bkt", "elsewhere")))
    with Manifest(path, skips=False) as manifest:
        assert not manifest.has(outcome("done").item)


@given(st.lists(st.text('ab,"\n\r\udcff', min_size=1, max_size=6), unique=True), st.integers(0, 400))
def test_odd_names_and_unfinished_lines_do_no_harm(names: list[str], cut: int) -> None:
    """Wherever a dying process cut the file, what was whole before counts, and more can be added."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "manifest.csv")
        ends = []
        with Manifest(path) as manifest:
            header = path.stat().st_size
            for name in names:
                manifest.add(outcome(name))
                ends.append(path.stat().st_size)
        kept = max(path.stat().st_size - cut, 0)
        with path.open("r+b") as file:
            file.truncate(kept)
        with Manifest(path) as manifest:
            for name, end in zip(names, ends, strict=True):
                assert manifest.has(outcome(name).item) is (end <= kept >= header)
            manifest.add(outcome("more"))
        with Manifest(path) as manifest:
            assert manifest.has(outcome("more").item)


def test_a_manifest_of_gsutil_is_continued_in_its_own_columns(tmp_path: Path) -> None:
    """Its columns stay, and what it has as done counts."""
    path = tmp_path / "manifest.csv"
    header = "Source,Destination,Start,End,Md5,UploadId,Source Size,Bytes Transferred,Result,Description"
    path.write_text(f"{header}\na,gs://bkt/name,s,e,m,u,3,3,OK,\n")
    with Manifest(path) as manifest:
        assert manifest.has(outcome("a").item)
        manifest.add(outcome("b", bytes=3, crc32c="AAAAAA=="))
    assert path.read_bytes().splitlines()[2].decode() == "b,gs://bkt/name,,,,,3,3,OK,"


def test_a_file_that_is_none_stays_as_it_is(tmp_path: Path) -> None:
    """Who names the wrong file loses nothing."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir,\n")
    with pytest.raises(TransferError, match="is not a manifest"), Manifest(path):
        pass
    assert path.read_text() == "Dear Sir,\n"


@pytest.mark.parametrize("length", [0, 1, 50, 96])
def test_a_header_that_was_left_unfinished_is_written_anew(length: int, tmp_path: Path) -> None:
    """However little of it there is."""
    path = tmp_path / "manifest.csv"
    with Manifest(path):
        whole = path.read_bytes()
    path.write_bytes(whole[:length])
    with Manifest(path):
        assert path.read_bytes() == whole


def test_a_file_without_a_line_end_stays_as_it_is(tmp_path: Path) -> None:
    """Only what a manifest left unfinished is cut off."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir")
    with pytest.raises(TransferError, match="is not a manifest"), Manifest(path):
        pass
    assert path.read_text() == "Dear Sir"


@pytest.mark.parametrize(
    "spoilt",
    [b'"never closed,b,c\r\n', b"x" * 200_000 + b",b,c\r\n", b"\r\n", b"\0\xff,\r,\r\n"],
    ids=["quote", "long", "empty", "bytes"],
)
def test_a_spoilt_line_spoils_no_other(tmp_path: Path, spoilt: bytes) -> None:
    """The file still has the lines after a spoiled one, and their items are not done again."""
    path = tmp_path / "manifest"
    first, second = Item("first", Url("bkt", "first")), Item("second", Url("bkt", "second"))
    for item in (first, second):
        with Manifest(path) as manifest:
            manifest.add(Outcome(item, Status.DONE))
        with path.open("ab") as file:
            file.write(spoilt)
    before = path.read_bytes()
    with Manifest(path) as manifest:
        assert manifest.has(first)
        assert manifest.has(second)
    assert path.read_bytes() == before


def test_where_it_cannot_be_written_it_says_so(tmp_path: Path) -> None:
    """A folder that is not there is an error with a name in it."""
    with pytest.raises(TransferError, match=r"cannot write the manifest .*nowhere.*: No such file"):
        Manifest(tmp_path / "nowhere" / "m.csv").__enter__()

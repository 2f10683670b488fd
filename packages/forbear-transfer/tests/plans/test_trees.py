"""Trees: what lies in local folders."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_testkit.transfer.files import make
from forbear_transfer.plans.matches import expand
from forbear_transfer.plans.trees import walk


def test_files_come_in_the_order_of_whole_names(tmp_path: Path) -> None:
    """The order is that of Cloud Storage's listings, in which a slash is a character like others."""
    names = ["a", "a-b", "a.d/x", "b/c", "b/c.d", "b-", "b.x", "ä", "B"]
    make(tmp_path, *names)
    assert [entry.name for entry in walk(str(tmp_path))] == sorted(names)


def test_what_cannot_be_copied_comes_with_a_reason(tmp_path: Path) -> None:
    """Links that lead nowhere or in circles, pipes, sockets and parts of downloads are there, with a note."""
    make(tmp_path, "sub/file", "other/file", ".big.0123456789ab.forbear")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the name of a socket must be short
        server.bind("socket")
        os.chdir(here)
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "sub" / "other").symlink_to("../other")
    (tmp_path / "nowhere").symlink_to("nothing")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "link").symlink_to("sub/file")
    assert {entry.name: entry.note for entry in walk(str(tmp_path))} == {
        ".big.0123456789ab.forbear": "a part of an unfinished download",
        "link": "",
        "nowhere": "a symbolic link to nothing",
        "other/file": "",
        "pipe": "neither a file nor a folder",
        "self": "a symbolic link to nothing",
        "socket": "neither a file nor a folder",
        "sub/file": "",
        "sub/other/file": "",
        "sub/up": "a symbolic link to a folder that it lies in",
    }


def test_folders_that_are_not_walked_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that a link to one above leads into again, and the one with the states of transfers."""
    make(tmp_path, "a/b", "states/c")
    (tmp_path / "a" / "up").symlink_to("..")
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(tmp_path / "states"))
    assert {entry.name: entry.note for entry in walk(str(tmp_path / "a"))} == {
        "b": "",
        "up/a": "a folder that it lies in, by a symbolic link",
        "up/states": "the states of transfers under way",
    }


def test_links_to_folders_may_be_left_alone_and_folders_not_entered(tmp_path: Path) -> None:
    """A listing for deletions follows no links, and one that is not recursive says only which folders there are."""
    make(tmp_path, "a", "sub/b")
    (tmp_path / "link").symlink_to("sub")
    assert [(entry.name, entry.note) for entry in walk(str(tmp_path), follow=False)] == [
        ("a", ""),
        ("link", "a symbolic link to a folder"),
        ("sub/b", ""),
    ]
    assert [(entry.name, entry.note) for entry in walk(str(tmp_path), recursive=False)] == [
        ("a", ""),
        ("link", "a folder"),
        ("sub", "a folder"),
    ]


def test_folders_that_lie_too_deep_are_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that lie too deep are reported like others that cannot be read, and the rest is listed."""
    make(tmp_path, "b")
    monkeypatch.chdir(tmp_path)
    for _ in range(530):
        Path("a").mkdir()
        os.chdir("a")
    below, beside = walk(str(tmp_path))
    assert "more folders" in below.problem
    assert (beside.name, beside.problem) == ("b", "")


def test_a_folder_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    """It is no end of the walk."""
    assert [(entry.name, entry.problem) for entry in walk(str(tmp_path / "nothing"))] == [
        ("", "No such file or directory")
    ]
    make(tmp_path, "file")
    assert [entry.problem for entry in walk(str(tmp_path / "file"))] == ["Not a directory"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.txt", "b", "c"]),
        ("*.txt", ["a.txt"]),
        (".*", [".hidden"]),
        ("[bc]", ["b", "c"]),
        ("*/*.txt", ["b/d.txt"]),
        ("b/?.txt", ["b/d.txt"]),
        ("**.txt", ["a.txt", "b/d.txt", "b/e/f.txt"]),
        ("b/**/f.txt", ["b/e/f.txt"]),
        ("**/d.txt", ["b/d.txt"]),
        ("c*/", ["c"]),
        ("a.txt/*", []),
        ("x*", []),
    ],
)
def test_patterns_find_paths(pattern: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns that the shell did not see are expanded as it would, and ** across folders."""
    make(tmp_path, "a.txt", ".hidden", "b/d.txt", "b/e/f.txt", "b/.g", "c/h")
    monkeypatch.chdir(tmp_path)
    assert list(expand(pattern)) == found
    assert list(expand(f"{tmp_path}/{pattern}")) == [f"{tmp_path}/{name}" for name in found]


@given(st.lists(st.text("ab-./", min_size=1, max_size=5), max_size=8))
def test_the_order_is_that_of_names(names: list[str]) -> None:
    """Whatever the names of files and folders, the walk gives whole names in order."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder, "x", *(part for part in name.split("/") if part.strip(".")))
            try:
                make(path.parent, path.name)
            except OSError:
                continue  # a file where a folder is to be, or the other way round
        found = [entry.name for entry in walk(folder)]
        assert found == sorted(found)

"""Names: no object leads out of the target, and none has a name that it cannot have."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.errors import UnsafeName
from forbear_transfer.plans.targets import Nesting, is_case_blind, object_name, relative_path


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../a", "another folder"),
        ("a/../b", "another folder"),
        ("a/..", "another folder"),
        ("./a", "another folder"),
        ("/etc/passwd", "begins with a slash"),
        ("a//b", "two in a row"),
        ("a\0b", "zero character"),
        ("", "empty part"),
        ("a\ud800b", "cannot be written in"),
    ],
)
def test_a_name_that_is_no_path_below_the_target_is_refused(name: str, says: str) -> None:
    """Whatever would lead elsewhere, or cannot be a file at all, says why."""
    with pytest.raises(UnsafeName, match=says) as caught:
        relative_path(name)
    assert caught.value.hint == "copy it by itself, to a file name of your choice"


@pytest.mark.parametrize("name", ["nul", "COM1.txt", "aux .c", "a\\b", "C:a", "a|b", "a.", "b /c", "a\tb"])
def test_names_that_windows_cannot_have_are_refused_there(name: str) -> None:
    """Devices, and what Windows reads as something else, are refused on Windows only."""
    relative_path(name, windows=False)
    with pytest.raises(UnsafeName):
        relative_path(name, windows=True)


@pytest.mark.parametrize("name", ["a b", "a\nb", "a#1", "100%", "what?", "ä/ö/漢字", "...", "a/.b", "-rf", "~"])
def test_odd_names_stay_as_they_are(name: str) -> None:
    """A name that is odd but harmless becomes the path unchanged."""
    assert relative_path(name) == name.replace("/", os.sep)


@given(st.text(st.sampled_from("ab./\\\0\n: ~"), max_size=12))
def test_no_name_leads_out_of_the_target(name: str) -> None:
    """Whatever the name, its path is refused or lies below the target."""
    folder = tempfile.gettempdir()
    try:
        path = f"{folder}{os.sep}{relative_path(name)}"
    except UnsafeName:
        return
    assert os.path.normpath(path).startswith(folder + os.sep)
    assert os.path.normpath(path) == path


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("a\nb", "line end"),
        ("a\rb", "line end"),
        ("\udcff", "not valid Unicode"),
        ("ä" * 513, "1024 bytes"),
        ("..", "'..'"),
    ],
)
def test_a_file_that_can_be_no_object_says_why(path: str, says: str) -> None:
    """The rules of Cloud Storage for names are known before anything is sent."""
    with pytest.raises(UnsafeName, match=says):
        object_name(path)


def test_an_object_below_another_one_is_noticed() -> None:
    """A file cannot be a folder as well, however many names come between the two."""
    nesting = Nesting()
    names = ["a", "a-1", "a.txt", "a/b", "a/b/c", "b/c", "b/c-", "b/c/d/e", "c", "cc/d"]
    assert [nesting.parent(name) for name in sorted(names)] == [
        None, None, None, "a", "a", None, None, "b/c", None, None,
    ]  # fmt: skip


@given(st.lists(st.text("ab/-", min_size=1, max_size=6), unique=True))
def test_nesting_is_what_comparing_all_names_would_find(names: list[str]) -> None:
    """Going by the order of names finds just what lies below a name that was taken."""
    nesting = Nesting()
    taken: list[str] = []
    for name in sorted(names):
        expected = any(name.startswith(f"{other}/") for other in taken if not other.endswith("/"))
        assert (nesting.parent(name) is not None) is expected
        if not expected:
            taken.append(name)


@pytest.fixture
def stick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a disk of its own, mounted there, which ignores the case of names."""
    root = tmp_path / "Stick"
    root.mkdir()
    real = os.lstat

    def lstat(path: Any, **more: Any) -> os.stat_result:
        if not os.fspath(path).startswith(str(root)):
            return real(path, **more)
        found = root
        for part in Path(path).relative_to(root).parts:
            found = next((one for one in found.iterdir() if one.name.lower() == part.lower()), found / part)
        values = list(real(found))
        values[2] += 1  # the device
        return os.stat_result(values)

    def lexists(path: str) -> bool:
        try:
            lstat(path)
        except FileNotFoundError:
            return False
        return True

    monkeypatch.setattr(os, "lstat", lstat)
    monkeypatch.setattr(os.path, "lexists", lexists)
    return root


@pytest.mark.parametrize("names", [[], ["1.2"], ["1", "a.txt"], ["Photos/"], ["\u00df"]], ids=str)
def test_the_disk_of_the_folder_is_asked(stick: Path, names: list[str]) -> None:
    """It may lie below another disk, and be empty or have no names with letters; nothing is left behind."""
    for name in names:
        (stick / name).mkdir() if name.endswith("/") else (stick / name).touch()
    assert is_case_blind(str(stick))
    assert is_case_blind(str(stick / "not" / "there"))
    if "Photos/" in names:
        assert is_case_blind(str(stick / "Photos" / "new"))
    assert sorted(path.name for path in stick.iterdir()) == sorted(name.rstrip("/") for name in names)
    assert not is_case_blind(str(stick.parent))


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_another_name_of_a_file_does_not_count(tmp_path: Path, link: Callable[[str, str], None]) -> None:
    """A link whose name differs only in case is another file for a disk that tells names apart."""
    if (tmp_path.parent / tmp_path.name.upper()).exists():
        pytest.skip("this disk ignores case")
    (tmp_path / "a").touch()
    link(str(tmp_path / "a"), str(tmp_path / "A"))
    assert not is_case_blind(str(tmp_path))


def test_a_disk_that_tells_nothing_is_that_of_the_system(stick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name to look up, and without the right to make one, the system decides."""

    def refuse(*_: object) -> int:
        raise PermissionError

    with monkeypatch.context() as patched:  # the folder of the test is deleted with the real functions
        patched.setattr(os, "open", refuse)
        for platform, blind in (("linux", False), ("darwin", True)):
            patched.setattr("sys.platform", platform)
            assert is_case_blind(str(stick)) is blind

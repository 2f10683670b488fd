"""Names: no object leads out of the target, and none has a name that it cannot have."""

import os
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.errors import UnsafeName
from forbear_transfer.plans.targets import Nesting, object_name, relative_path


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

"""Findings: their fingerprints, and the places of their files."""

from pathlib import Path

import pytest

from forbear_audit.findings import fingerprint_of, place_in
from forbear_audit.sarif import (
    fingerprints,
    sarif_log,
)


def test_fingerprints_do_not_depend_on_blanks() -> None:
    """The rule, the path and the words of the line count, and the number of the equal line."""
    same = fingerprint_of("UNSAFE", "src/shop.py", "    pay( 1)\n")
    assert fingerprint_of("UNSAFE", "src\\shop.py", "pay( 1)") == same
    assert fingerprints(same, 2) == {"forbear/v1": f"{same}:2"}
    others = ("NESTED", "src/shop.py", "pay( 1)"), ("UNSAFE", "shop.py", "pay( 1)"), ("UNSAFE", "src/shop.py", "pay(1)")
    assert len({same, *(fingerprint_of(*other) for other in others)}) == 4


def test_links_lead_to_one_place(tmp_path: Path) -> None:
    """A path through a link is the one below the root: as it is written, else where the link leads to."""
    root, other = tmp_path.resolve() / "root", tmp_path.resolve() / "other"
    (root / "src").mkdir(parents=True)
    other.mkdir()
    (other / "link").symlink_to(root)
    (root / "far").symlink_to(other)
    assert place_in(other / "link" / "src" / "a.py", root) == Path("src/a.py")
    assert place_in(other / ".." / "other" / "link" / "src" / "a.py", root) == Path("src/a.py")
    assert place_in(root / "far" / "a.py", root) == Path("far/a.py")
    assert place_in(other / "a.py", root) == other / "a.py"
    assert place_in(root / "src" / "..", root) == Path()


@pytest.mark.parametrize("path", ["loop", "loop/a.py", "loop/..", "loop/../a.py", "other/../loop/a.py"])
def test_a_circle_of_links_has_a_place(path: str, tmp_path: Path) -> None:
    """A path through a circle of links has a place in the folder, and a root that is one has an address."""
    (tmp_path / "loop").symlink_to("other")
    (tmp_path / "other").symlink_to("loop")
    place = place_in(tmp_path / path, tmp_path.resolve())  # which one depends on the version of Python
    assert not place.is_absolute()
    assert ".." not in place.parts
    log = sarif_log({}, (), (), tmp_path / "loop")
    assert log["runs"][0]["originalUriBaseIds"]["%SRCROOT%"]["uri"].startswith("file:///")

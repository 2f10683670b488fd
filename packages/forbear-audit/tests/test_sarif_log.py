"""SARIF, as audit and storm write it: logs, places, columns and fingerprints."""

from pathlib import Path

import pytest

from forbear_audit.findings import fingerprint_of, place_in
from forbear_audit.sarif_log import (
    SCHEMA,
    fingerprints,
    sarif_artifact,
    sarif_log,
    sarif_place,
    utf16_column,
)


def test_a_log_has_one_run(tmp_path: Path) -> None:
    """The log names its schema, and its run has the tool, the results, the notifications and the root of its paths."""
    log = sarif_log({"name": "tool"}, iter([{"ruleId": "A"}]), [{"level": "note"}], tmp_path)
    assert (log["$schema"], log["version"]) == (SCHEMA, "2.1.0")
    (run,) = log["runs"]
    assert run["tool"] == {"driver": {"name": "tool"}}
    assert run["results"] == [{"ruleId": "A"}]
    assert run["invocations"][0]["toolExecutionNotifications"] == [{"level": "note"}]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{tmp_path.resolve().as_uri()}/"}}


@pytest.mark.parametrize(
    ("path", "uri"), [("src/shop.py", "src/shop.py"), ("./my shop.py", "my%20shop.py"), ("src/../a.py", "a.py")]
)
def test_paths_count_from_the_root(path: str, uri: str, tmp_path: Path) -> None:
    """The URI of a file below the root is relative to it, also for an absolute path."""
    artifact = {"uri": uri, "uriBaseId": "%SRCROOT%"}
    assert sarif_artifact(path, tmp_path) == sarif_artifact(str(tmp_path.resolve() / uri.replace("%20", " ")), tmp_path)
    assert sarif_place(path, tmp_path) == {"physicalLocation": {"artifactLocation": artifact}}
    region = {"startLine": 3}
    assert sarif_place(path, tmp_path, region)["physicalLocation"] == {"artifactLocation": artifact, "region": region}


def test_other_files_are_absolute(tmp_path: Path) -> None:
    """The URI of a file elsewhere is absolute."""
    other = (tmp_path / "a.py").resolve().as_uri()
    assert sarif_artifact("../a.py", tmp_path / "b") == {"uri": other}


def test_columns_count_as_in_utf16() -> None:
    """A character beyond the first plane counts twice."""
    assert [utf16_column("aß\U0001f600b", column) for column in (1, 2, 3, 4)] == [1, 2, 3, 5]


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

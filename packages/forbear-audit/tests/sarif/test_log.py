"""SARIF, as audit and storm write it: logs, places and columns."""

from pathlib import Path

import pytest

from forbear_audit.sarif.log import (
    SCHEMA,
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

"""The hook for pre-commit: its manifest, and its entry as pre-commit runs it."""

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from forbear_testkit import ROOT

FIELDS = {
    "id": str,
    "name": str,
    "description": str,
    "entry": str,
    "language": str,
    "types_or": list,
    "additional_dependencies": list,
    "require_serial": bool,
    "minimum_pre_commit_version": str,
}


def hook() -> dict[str, Any]:
    """The only hook of the manifest, which is YAML of one line for each field."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert (text.startswith("- "), text.count("\n- ")) == (True, 0)
    pairs = (line[2:].partition(" #")[0].split(": ", 1) for line in text.splitlines())
    return {name: _value(value.strip()) for name, value in pairs}


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1].split(", ") if text.startswith("[") else text


def test_the_manifest_has_the_fields_that_pre_commit_reads() -> None:
    """Each field is one that pre-commit knows, of the right type, and the docs name the hook."""
    manifest = hook()
    assert {name: type(value) for name, value in manifest.items()} == FIELDS
    assert (manifest["language"], manifest["types_or"]) == ("python", ["python", "jupyter"])
    assert f"- id: {manifest['id']}" in (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def test_its_entry_and_its_packages_are_those_of_the_project() -> None:
    """The entry is a program of the project, and the packages are what the command and its extra need."""
    program, *_ = shlex.split(hook()["entry"])
    root, forbear, audit = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in ("", "packages/forbear", "packages/forbear-audit")
    )
    assert program in root["scripts"]
    needed = [text.partition(">")[0] for text in audit["dependencies"] if "forbear" not in text]
    assert "click" in {text.partition(">")[0] for text in forbear["optional-dependencies"]["cli"]}
    assert hook()["additional_dependencies"] == ["click", *needed]


def test_its_entry_runs_as_pre_commit_runs_it(tmp_path: Path) -> None:
    """The files come after the arguments; settings of the project hold, also `exclude`; findings fail the commit."""
    (tmp_path / "pyproject.toml").write_text("[tool.forbear.audit]\nexclude = ['old.py']\n")
    for name in ("a.py", "old.py"):
        (tmp_path / name).write_text("import tenacity\n\n\n@tenacity.retry\ndef f():\n    return g()\n")
    _, *words = shlex.split(hook()["entry"])
    run = [sys.executable, "-m", "forbear", *words, "--select", "UNBOUNDED"]
    done = subprocess.run([*run, "a.py", "old.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("1 error in 1 file\n")
    done = subprocess.run([*run, "old.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "no findings in 0 files\n")

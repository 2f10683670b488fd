"""`make mutants` runs: the tests that it chooses pass in the changed source, and notice what is changed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SAMPLE = "forbear.shared_budget.script.*"


@pytest.mark.soak
def test_a_sample_of_mutants(tmp_path: Path) -> None:
    """Of the changes to one module, the tests notice at least 85 %."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    package = tmp_path / "packages/forbear"
    shutil.copytree(ROOT / "packages/forbear", package, ignore=shutil.ignore_patterns("mutants", "__pycache__"))
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", SAMPLE]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    noticed, missed = (len(re.findall(f"^{mark}", done.stdout, re.MULTILINE)) for mark in ("🎉", "🙁|^🫥"))
    assert noticed >= 0.85 * (noticed + missed) > 0

"""Examples of the documentation are run in a shell and compared."""

import doctest
import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def shell_env(tmp_path: Path, env: dict[str, str]) -> dict[str, str]:
    """An environment in which `forbear` is this one."""
    program = tmp_path / "bin" / "forbear"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m forbear "$@"\n')
    program.chmod(0o755)
    return env | {"PATH": f"{program.parent}{os.pathsep}{env['PATH']}"}


def check(expected: str, got: str) -> None:
    """Compare; "..." stands for anything."""
    assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), got

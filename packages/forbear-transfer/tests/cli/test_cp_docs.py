"""docs/transfer.md: the commands in it do what it says they do, one after the other, in one folder and one cloud."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke
from forbear_testkit.cli.shown import check, shell_env

__all__ = ["shell_env"]

PAGE = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [found for block in BLOCKS for found in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]


def test_the_examples(
    tmp_path: Path, cloud: Cloud, invoke: Invoke, shell_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command prints what stands below it; those that are for a shell are given to one."""
    cloud.store.create_bucket("my-bucket")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    monkeypatch.chdir(tmp_path)
    assert len(EXAMPLES) > 10
    for command, expected in EXAMPLES:
        if command.startswith("forbear "):
            with virtual_time():
                got = invoke(*shlex.split(command)[1:]).output
        else:
            env = shell_env | {"STORAGE_EMULATOR_HOST": cloud.url}
            shell = subprocess.run(["sh", "-c", command], env=env, stdout=subprocess.PIPE, text=True, check=True)
            got = shell.stdout
        check(expected, got)

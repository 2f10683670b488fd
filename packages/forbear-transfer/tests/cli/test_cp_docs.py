"""docs/transfer.md: the commands in it do what it says they do, one after the other, in one folder and one cloud."""

import base64
import gzip
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke
from forbear_testkit.cli.shown import check, shell_env
from forbear_testkit.transfer.files import make

__all__ = ["shell_env"]

PAGE = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [found for block in BLOCKS for found in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("| what | `gsutil` |")[2].partition("\n\n")[0].splitlines()[2:]
]
COMMANDS = {row[0]: row[-1].strip("`") for row in ROWS if row[-1].startswith("`forbear")}
EFFECTS: dict[str, Callable[[Cloud], object]] = {
    "keep what exists": lambda cloud: cloud.store.object("my-bucket", "old/a.txt").data == b"old",
    "permissions": lambda cloud: metadata_of(cloud, "photos/1.jpg")["goog-reserved-posix-mode"] == "640",
    "leave out links": lambda cloud: "photos/link" not in cloud.store.bucket("my-bucket").objects,
    "compress": lambda cloud: cloud.store.object("my-bucket", "a.txt").fields["contentEncoding"] == "gzip",
    "content type": lambda cloud: cloud.store.object("my-bucket", "a.txt").fields["contentType"] == "text/csv",
    "caching": lambda cloud: cloud.store.object("my-bucket", "a.txt").fields["cacheControl"] == "no-store",
    "custom metadata": lambda cloud: metadata_of(cloud, "a.txt")["k"] == "v",
    "storage class": lambda cloud: cloud.store.object("my-bucket", "a.txt").fields["storageClass"] == "NEARLINE",
    "another class in place": lambda cloud: (
        cloud.store.object("my-bucket", "old/a").fields["storageClass"] == "NEARLINE"
    ),
    "delete the rest": lambda cloud: "old/a" not in cloud.store.bucket("my-bucket").objects,
    "try it first": lambda cloud: cloud.effects.count() == 0,
    "leave out names": lambda cloud: "photos/2.tmp" not in cloud.store.bucket("my-bucket").objects,
    "move": lambda cloud: "old/a" not in cloud.store.bucket("my-bucket").objects,
    "delete a folder": lambda cloud: not cloud.store.bucket("my-bucket").objects,
    "delete all versions": lambda cloud: "old/a" not in cloud.store.bucket("my-bucket").objects,
}


def metadata_of(cloud: Cloud, name: str) -> dict[str, str]:
    """Return the custom metadata of an object."""
    values: Any = cloud.store.object("my-bucket", name).fields["metadata"]
    return dict(values)


@pytest.fixture
def filled(here: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """A cloud that the environment names, and a folder, with all that the commands of the table name."""
    cloud.store.create_bucket("my-bucket")
    for name in ("old/a", "old/a.txt"):
        cloud.store.put("my-bucket", name, b"old")
    cloud.store.put("my-bucket", "old/packed.txt", gzip.compress(b"old"), {"contentEncoding": "gzip"})
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.url)
    make(here, "a.txt", "photos/1.jpg", "photos/2.tmp")
    (here / "photos" / "1.jpg").chmod(0o640)
    (here / "photos" / "link").symlink_to("1.jpg")
    (here / "list.txt").write_text("a.txt\n")
    (here / "key").write_text(base64.b64encode(bytes(range(32))).decode())
    return cloud


@pytest.mark.parametrize("what", COMMANDS)
def test_the_table_of_options(what: str, filled: Cloud, invoke: Invoke) -> None:
    """Each command of the table does on the embedded cloud what it is said to do."""
    with virtual_time():
        done = invoke(*shlex.split(COMMANDS[what])[1:])
    assert done.exit_code == 0, done.output
    assert filled.requests
    assert EFFECTS.get(what, bool)(filled)


def test_the_table_says_why_where_there_is_no_command() -> None:
    """Forty options at least; what is left out has a reason."""
    assert len(ROWS) > 40
    assert all(len(row) == 5 for row in ROWS)
    assert EFFECTS.keys() <= COMMANDS.keys()
    reasons = [row[-1] for row in ROWS if row[0] not in COMMANDS]
    assert all(re.match(r"left out( for now)?: |always: |`--", reason) for reason in reasons)


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

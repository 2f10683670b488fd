"""docs/cli.md: its examples do what it says they do, and it leaves no option out."""

import re
import shlex
import signal
import subprocess
from pathlib import Path

import click
import pytest

from forbear.cli.app import app
from forbear_cloud import Cloud
from forbear_testkit import ROOT
from forbear_testkit.cli.running import Invoke
from forbear_testkit.cli.shown import check

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## forbear (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLES = [
    (name, command.replace("\n> ", "\n"), expected)
    for name, section in SECTIONS.items()
    for block in re.findall(r"^```console\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    for command, expected in re.findall(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]
# What a program is started for: it starts programs itself, serves, or shares a line with others.
OF_ITS_OWN = [example for example in EXAMPLES if example[0] in ("run", "cloud") or set("|;>") & {*example[1]}]
PLAIN = [example for example in EXAMPLES if example not in OF_ITS_OWN]
# Commands whose examples need objects and files, and these.
ON_OBJECTS = {"ls", "du", "stat", "cat", "hash", "check", "mv", "rm"}
OBJECTS = {
    "report.csv": b"id,name\n1,cat\n2,dog\n",
    "logs/a.log": b"first\n",
    "logs/b.log": b"second\n",
    "logs/2026/c.log": b"third\n",
}
FILES = {"a.log": b"FIRST\n", "d.log": b"new\n"}


@pytest.fixture
def emulator(cloud: Cloud) -> dict[str, str]:
    """The environment that names a cloud with the bucket of the examples."""
    cloud.store.create_bucket("my-bucket")
    for name, data in OBJECTS.items():
        cloud.store.put("my-bucket", name, data, {"contentType": "text/plain"})
    return {"STORAGE_EMULATOR_HOST": cloud.url}


@pytest.mark.parametrize(("name", "command", "expected"), OF_ITS_OWN, ids=[command for _, command, _ in OF_ITS_OWN])
def test_examples_in_a_shell(name: str, command: str, expected: str, tmp_path: Path, shell_env: dict[str, str]) -> None:
    """An example prints the text below it; a server gets SIGINT after that."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}" if name == "cloud" else command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env=shell_env,
        text=True,
    )
    with process:
        assert process.stdout is not None
        got = ""
        if name == "cloud":
            got = "".join(process.stdout.readline() for _ in expected.splitlines())
            process.send_signal(signal.SIGINT)
        got += process.stdout.read()
    check(expected, got)


@pytest.mark.parametrize(("name", "command", "expected"), PLAIN, ids=[command for _, command, _ in PLAIN])
def test_examples(
    name: str,
    command: str,
    expected: str,
    invoke: Invoke,
    emulator: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An example that is nothing but a command of forbear prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    if name in ON_OBJECTS:
        (tmp_path / "logs").mkdir()
        for file, data in FILES.items():
            (tmp_path / "logs" / file).write_bytes(data)
        for variable, value in emulator.items():
            monkeypatch.setenv(variable, value)
    program, *args = shlex.split(command)
    assert program == "forbear"
    check(expected, invoke(*args).output)


def command_named(name: str) -> click.Command:
    """A command of the app."""
    found = app.get_command(click.Context(app), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", SECTIONS)
def test_every_option_is_described(name: str) -> None:
    """The section of a command names every option that its help names, and no other."""
    command = command_named(name)
    commands = command.commands.values() if isinstance(command, click.Group) else [command]
    shown = [option for each in commands for option in each.params if not getattr(option, "hidden", False)]
    options = {text for option in shown for text in option.opts if text.startswith("--")}
    named = set(re.findall(r"`(--[a-z-]+)", SECTIONS[name]))
    assert options <= named
    assert named <= options


def test_the_page_has_all_commands_of_its_own() -> None:
    """There are examples of each of these commands."""
    assert {"run", "curl", "explain", "schedule", "export", "cp", "rsync", "cloud", *ON_OBJECTS} <= {
        name for name, _, _ in EXAMPLES
    }

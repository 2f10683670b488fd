"""Shell completion: the scripts that shells load, and the names that they offer."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class

from forbear import export
from forbear.answers import tables
from forbear.cli.app import COMMANDS, app
from forbear.services import registry
from forbear.services.policies import policy_names


def offered(*words: str, incomplete: str = "") -> list[str]:
    """Return the values that are offered for the word after these words of a command line."""
    complete = ShellComplete(app, {}, "forbear", "_FORBEAR_COMPLETE")
    return [item.value for item in complete.get_completions(list(words), incomplete)]


PROFILES, SERVICES = list(policy_names()), list(registry.names())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), list(COMMANDS)),
        (("schedule",), PROFILES),
        (("run", "--profile"), PROFILES),
        (("curl", "--profile"), PROFILES),
        (("explain", "--profile"), PROFILES),
        (("export", "--profile"), PROFILES),
        (("cp", "--retry"), PROFILES),
        (("rsync", "--retry"), PROFILES),
        *(((name, "--retry"), PROFILES) for name in ("ls", "du", "stat", "cat", "hash", "check", "mv", "rm")),
        (("simulate", "run", "--policy"), PROFILES),
        (("simulate", "run", "--compare"), PROFILES),
        (("explain", "--service"), SERVICES),
        (("curl", "--service"), SERVICES),
        (("explain", "--operations"), list(tables.names())),
        (("export",), list(export.TARGETS)),
        (("schedule", "--jitter"), ["full", "equal", "documented", "decorrelated", "none"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_values(words: tuple[str, ...], expected: list[str]) -> None:
    """Each option offers the names that it accepts, and none that does not begin like the word so far."""
    assert sorted(offered(*words)) == sorted(expected)
    first = expected[0]
    assert first in offered(*words, incomplete=first[:2])
    assert all(name.startswith(first[:2]) for name in offered(*words, incomplete=first[:2]))
    assert offered(*words, incomplete="~no") == []


@pytest.mark.parametrize("words", [("cp",), ("cp", "a"), ("rsync",), ("hash",), ("hash", "a"), ("check", "a")])
def test_paths(words: tuple[str, ...]) -> None:
    """The shell completes paths by itself; addresses in the cloud are not looked up."""
    complete = ShellComplete(app, {}, "forbear", "_FORBEAR_COMPLETE")
    assert [(item.type, item.value) for item in complete.get_completions(list(words), "re")] == [("file", "re")]
    assert offered(*words, incomplete="gs://bkt/r") == []


@pytest.mark.parametrize("name", COMMANDS)
def test_options(name: str) -> None:
    """Every command offers its options, after arguments as well."""
    assert "--help" in offered(name, incomplete="--")


@pytest.mark.parametrize("words", [("perl",), ("perl", "--x"), ("explain", "redis", "SET"), ("curl", "-X")])
def test_words_that_mean_nothing(words: tuple[str, ...]) -> None:
    """A wrong command or foreign words offer nothing, and raise nothing: the shell would show a traceback."""
    assert offered(*words, incomplete="cloud_") == []


def test_a_real_shell(env: dict[str, str], tmp_path: Path) -> None:
    """Bash loads the script and completes a service and a table by it."""
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "forbear"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m forbear "$@"\n')
    program.chmod(0o755)
    script = """
eval "$(_FORBEAR_COMPLETE=bash_source forbear)"
complete -p forbear
COMP_WORDS=(forbear explain --operations cloud_storage.j); COMP_CWORD=3; _forbear_completion forbear
echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env=env | {"PATH": f"{tmp_path}{os.pathsep}{env['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _forbear_completion forbear",
        "cloud_storage.json",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(shell: str) -> None:
    """There is a script for each of these shells, which calls the program by its name."""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(app, {}, "forbear", "_FORBEAR_COMPLETE").source()
    assert "_FORBEAR_COMPLETE=" in script
    assert "forbear" in script


def test_python_m_forbear(env: dict[str, str]) -> None:
    """`python -m forbear` is the command line, with its name and exit codes."""
    for args, code, text in (
        (("schedule", "ci", "--attempts", "2"), 0, "ci: steps of 1 s"),
        (("schedule", "--nothing"), 2, "hint: see `forbear schedule --help`"),
    ):
        command = [sys.executable, "-m", "forbear", *args]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, text in done.stdout + done.stderr) == (code, True)


def test_packages_list_their_names() -> None:
    """`dir()` of a package has every public name, in a new interpreter in which nothing is loaded."""
    script = """
import importlib
for name in ("forbear", "forbear_audit", "forbear_audit.storm", "forbear_cloud", "forbear_simulate", "forbear_transfer",
             "forbear.services.iam", "forbear.services.redis", "forbear.services.cloud_storage",
             "forbear.services.memorystore", "forbear.services.resource_manager", "forbear.testing"):
    package = importlib.import_module(name)
    missing = {*package.__all__} - {*dir(package)}
    assert not missing, (name, missing)
"""
    subprocess.run([sys.executable, "-c", script], check=True)

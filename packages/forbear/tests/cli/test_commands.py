"""Commands of other packages join ours by entry points, and never get in their way."""

import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from forbear.cli.app import COMMANDS, Source
from forbear_testkit.cli.running import Invoke

GREET = '''\
import click

from forbear.cli.kit.output import BadInput


@click.command(name="greet")
@click.argument("name", default="you")
def command(name):
    """Greet somebody."""
    if name == "nobody":
        raise BadInput("there is nobody", "name somebody")
    click.echo(f"hello, {name}")


number = 7
'''


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package is installed, with commands that work, that do not, and that have a name of ours."""
    (tmp_path / "other_package.py").write_text(GREET)
    folder = tmp_path / "other_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[forbear.commands]\ngreet = other_package:command\nrun = other_package:command\n"
        "broken = other_package.gone:command\nodd = other_package:number\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "other_package", raising=False)


@pytest.mark.usefixtures("others")
def test_a_command_of_another_package(invoke: Invoke) -> None:
    """It is called by its name, and its errors look like ours."""
    done = invoke("greet", "Ann")
    assert (done.exit_code, done.stdout) == (0, "hello, Ann\n")
    failed = invoke("greet", "nobody")
    assert (failed.exit_code, failed.stderr) == (2, "error: there is nobody\nhint: name somebody\n")


@pytest.mark.usefixtures("others")
def test_the_help_has_the_commands_of_others(invoke: Invoke) -> None:
    """They come after ours with the first line of their own help; one that cannot be loaded is marked."""
    shown = invoke("--help")
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["greet", "Greet", "somebody."] in lines
    assert ["broken", "(cannot", "be", "loaded:", "other_package.gone:command)"] in lines
    assert shown.stdout.index("  rm ") < shown.stdout.index("  broken ")
    assert "warning: `forbear broken` cannot be loaded: ModuleNotFoundError" in shown.stderr
    assert "warning: `forbear odd` cannot be loaded: TypeError: other_package:number must be a click command" in (
        shown.stderr
    )


@pytest.mark.usefixtures("others")
def test_names_of_ours_stay_ours(invoke: Invoke) -> None:
    """An entry point named "run" does not replace `forbear run`."""
    assert "Run a program" in invoke("run", "--help").stdout


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("name", ["broken", "odd"])
def test_a_command_that_cannot_be_loaded(name: str, invoke: Invoke) -> None:
    """The error names the entry point, and what to do."""
    failed = invoke(name)
    assert failed.exit_code == 2
    assert failed.stderr.startswith(f"error: `forbear {name}` cannot be loaded: ")
    assert "hint: update or remove the package that has other_package" in failed.stderr


def test_a_group_without_a_command_shows_its_help(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `forbear` alone does: the help is no error message, and keeps its lines."""
    module = ModuleType("forbear_grouped")
    module.__dict__["command"] = click.Group("grouped", [click.Command("one", help="Do one thing.")], help="Do things.")
    monkeypatch.setitem(sys.modules, "forbear_grouped", module)
    monkeypatch.setitem(COMMANDS, "grouped", Source("Do things.", "forbear_grouped"))
    shown = invoke("grouped")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert shown.stderr.startswith("Usage: ")
    assert "\n  one  Do one thing.\n" in shown.stderr


def test_the_storm_is_an_option_of_pytest(invoke: Invoke) -> None:
    """Who looks for it among the commands finds it."""
    failed = invoke("storm")
    assert failed.exit_code == 2
    assert "hint: the storm is an option of pytest: pytest --forbear-storm; the commands are run" in failed.stderr


def test_a_package_of_ours_that_is_missing(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command whose package is not installed says how to install it, and is listed all the same."""
    monkeypatch.setitem(COMMANDS, "teleport", Source("Move.", "forbear_teleport.cli"))
    failed = invoke("teleport", "--help")
    assert failed.exit_code == 2
    assert failed.stderr == (
        "error: `forbear teleport` needs forbear-teleport, which is not installed\n"
        'hint: pip install "forbear[teleport]"\n'
    )
    assert "teleport" in invoke("--help").stdout
